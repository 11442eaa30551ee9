package config

import (
	"maps"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// FileSchema returns the JSON schema (draft-07, which editors know) of a file of settings at an address: names, types, ranges, defaults,
// examples and meanings. It accepts whatever Load accepts. Load also refuses contradictory settings, and invalid texts such as a store URL.
func FileSchema[C any](fields []Field[C], id, title string) Schema {
	s := MappingForm(fields)
	s["type"], s["$schema"], s["$id"], s["title"] = "object", "http://json-schema.org/draft-07/schema#", id, title
	rows := map[string]Row{}
	for _, r := range Rows(fields) {
		rows[r.Key] = r
	}
	properties, _ := s["properties"].(Schema)
	for i := range fields {
		f := &fields[i]
		property, _ := properties[f.Key].(Schema)
		row := rows[f.Key]
		property["description"] = Plain(strings.TrimSuffix(row.About+" ("+f.Allowed+"; default: "+f.Default+")", "."))
		if f.Value.kind != aSecret {
			property["examples"] = []any{f.typed(f.example())}
		}
		if text := f.DefaultValue(); text != "" {
			property["default"] = f.typed(text)
		}
	}
	return s
}

// MappingForm returns the schema of a mapping with the settings of fields, or of nothing.
func MappingForm[C any](fields []Field[C]) Schema {
	properties := Schema{}
	for i := range fields {
		properties[fields[i].Key] = fields[i].form()
	}
	return Schema{"type": []any{"object", "null"}, "additionalProperties": false, "properties": properties}
}

// form returns the schema of the value, with its range.
func (f *Field[C]) form() Schema {
	v := &f.Value
	switch {
	case f.Form != nil:
		return maps.Clone(f.Form)
	case v.kind == aNumber && v.low < v.high:
		return Schema{"anyOf": []any{
			Schema{"type": "integer", "minimum": v.low, "maximum": v.high},
			Schema{"type": "string", "pattern": "^(" + strings.Join(numbers(v.low, v.high), "|") + ")$"},
		}}
	case v.kind == aSpan:
		return DurationForm(time.Duration(max(v.low, 1)), time.Duration(v.high))
	case v.form != nil:
		return maps.Clone(v.form)
	case v.kind == aMapping:
		return maps.Clone(aStructure)
	case v.kind == aText, v.kind == aFile:
		return TextForm(maxText)
	}
	return Schema{"type": []any{"string", "number", "boolean"}, "minLength": 1}
}

// TextForm returns the schema of a text of one line of at most so many bytes.
func TextForm(most int) Schema {
	return Schema{
		"type": []any{"string", "number", "boolean"}, "minLength": 1, "maxLength": most,
		"pattern": `^[^\x00-\x20\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\x9f])?$`,
	}
}

// StoreForm returns the schema of a store URL: only the scheme is checked; the rest is left to ParseStore.
func StoreForm() Schema {
	schemes := regexp.QuoteMeta(strings.Join(schemeNames(), "|"))
	return Schema{"type": "string", "pattern": "^(" + strings.ReplaceAll(schemes, `\|`, "|") + ")://"}
}

// typed returns a value's text as in a YAML file without quotes.
func (f *Field[C]) typed(text string) any {
	if n, err := strconv.Atoi(text); err == nil && f.Value.kind == aNumber {
		return n
	}
	if f.Value.kind == aSwitch {
		return text == "true"
	}
	return text
}

// literal matches a default that is one value, followed by its meaning.
var literal = regexp.MustCompile("^`?([^`:; ]+(?:://)?)`?($|[:;])")

// DefaultValue returns the default if it is one value independent of other settings; else empty.
func (f *Field[C]) DefaultValue() string {
	m := literal.FindStringSubmatch(f.Default)
	if m == nil || bind([]Field[C]{*f}, fresh[C]())[0].put(m[1], "") != nil || m[1] == "none" {
		return ""
	}
	return m[1]
}

// fresh returns a new configuration.
func fresh[C any]() C {
	c, _ := reflect.TypeAssert[C](reflect.New(reflect.TypeFor[C]().Elem()))
	return c
}

// Bounds returns the minimum and maximum of a number, or of a duration in nanoseconds; 0 for none. A number of 0 is not set.
func (f *Field[C]) Bounds() (least, most int64) { return f.Value.low, f.Value.high }

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Plain removes the links from Markdown of one line.
func Plain(text string) string { return link.ReplaceAllString(text, "$1") }

// units are the units of durations.
var units = []struct {
	name string
	size int64
}{
	{"h", int64(time.Hour)},
	{"m", int64(time.Minute)},
	{"s", int64(time.Second)},
	{"ms", int64(time.Millisecond)},
	{"(us|µs|μs)", int64(time.Microsecond)},
	{"ns", 1},
}

// DurationForm returns the schema of a duration from low to high. It refuses a duration with a part above high, and a single part below
// low; it ignores the sum of several parts.
func DurationForm(low, high time.Duration) Schema {
	var out []string
	for _, u := range units {
		if least := int64(low) / u.size; least > 0 {
			out = append(out, "(0*("+strings.Join(numbers(0, least-1), "|")+`)(\.[0-9]*)?|\.[0-9]+)`+u.name)
		}
		most := int64(high) / u.size
		if high == 0 {
			continue
		}
		out = append(out, "(.*[a-zµμ])?0*("+strings.Join(above(most), "|")+`)(\.[0-9]*)?`+u.name+"([0-9.].*)?")
		if most > 0 && most*u.size == int64(high) {
			out = append(out, "0*"+strconv.FormatInt(most, 10)+
				`(\.0*[1-9][0-9]*`+u.name+`([0-9.].*)?|(\.0*)?`+u.name+"([1-9].*|[0.].*[1-9].*))")
		}
	}
	const part = `([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`
	return Schema{
		"type": "string", "pattern": `^\+?(` + part + ")+$",
		"not": Schema{"pattern": `^\+?([^1-9]*|` + strings.Join(out, "|") + ")$"},
	}
}

// above returns patterns of the whole numbers above n, without leading zeros.
func above(n int64) []string {
	digits := len(strconv.FormatInt(n, 10))
	patterns := []string{"[1-9][0-9]{" + strconv.Itoa(digits) + ",}"}
	if next := int64(math.Pow10(digits)) - 1; n < next {
		patterns = append(patterns, numbers(n+1, next)...)
	}
	return patterns
}

// numbers returns patterns of the whole numbers from low to high, both at least 0, without leading zeros.
func numbers(low, high int64) []string {
	var patterns []string
	for low <= high {
		// A block is all numbers with the digits of low except for the last ones, which are free.
		size, free := int64(1), 0
		for low >= size*10 && low%(size*10) == 0 && low+(size*10-1) <= high {
			size, free = size*10, free+1
		}
		first := low / size % 10
		last := first
		for next := low + size; last < 9 && next+(size-1) <= high; next += size {
			last++
		}
		text := ""
		if low/size >= 10 {
			text = strconv.FormatInt(low/size/10, 10)
		}
		text += "[" + strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(last, 10) + "]"
		if free > 0 {
			text += "[0-9]{" + strconv.Itoa(free) + "}"
		}
		patterns = append(patterns, text)
		low += (last - first + 1) * size
	}
	return patterns
}

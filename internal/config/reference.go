package config

import (
	"fmt"
	"slices"
	"strings"
)

// The types of settings in the reference.
const (
	aNumber   = "integer"
	aSpan     = "duration"
	aSwitch   = "boolean"
	aChoice   = "choice"
	aText     = "text"
	someLines = "lines"
	aFile     = "path"
	aURL      = "URL"
	aSecret   = "secret"
	aMapping  = "mapping"
)

// spelled maps a type to its description in Allowed. The reference names the type in a column of its own, and omits this.
var spelled = map[string][]string{
	aNumber:   {"a whole number"},
	aSpan:     {"a duration"},
	aSwitch:   {"`true` or `false`"},
	aText:     {"a text"},
	someLines: {"a text"},
	aFile:     {aPath},
	aURL:      {"a store URL", "an http or https URL"},
	aSecret:   {"a text, never printed"},
	aMapping:  {"a mapping"},
}

// Like returns the field with an example of its value, as a variable has it.
func (f Field[C]) Like(example string) Field[C] {
	f.Example = example
	return f
}

// In returns the field with the unit of its number.
func (f Field[C]) In(unit string) Field[C] {
	f.Unit = unit
	return f
}

// Also returns the field with allowed appended to its range.
func (f Field[C]) Also(allowed string) Field[C] {
	f.Allowed += allowed
	return f
}

// Only returns the number with another description of its range.
func (f Field[C]) Only(allowed string) Field[C] {
	f.Allowed = aWholeNumber + allowed
	return f
}

// UpTo returns the text with a maximum number of bytes.
func (f Field[C]) UpTo(most int) Field[C] {
	in := f.Value.in
	f.Range = func(c C) bool { return len(in(c).get()) <= most }
	f.Form = TextForm(most)
	return f
}

// About returns fields with one topic, which is their heading in the reference.
func About[C any](topic string, fields ...Field[C]) []Field[C] {
	out := slices.Clone(fields)
	for i := range out {
		out[i].Topic = topic
	}
	return out
}

// example returns the field's example. For a boolean it is true, for a choice the last word; for a secret or a file's path it follows from
// the key.
func (f *Field[C]) example() string {
	words, _ := f.Value.form["enum"].([]string)
	file, isFile := strings.CutSuffix(f.Key, "File")
	switch {
	case f.Example != "":
		return f.Example
	case f.Value.kind == aSwitch:
		return "true"
	case f.Value.kind == aChoice && len(words) > 0:
		return words[len(words)-1]
	case f.Value.kind == aSecret:
		return "s3cret"
	case f.Value.kind == aFile && isFile:
		return "/var/run/secrets/" + flagName(file)
	}
	return ""
}

// A Row is a setting in the reference. Range, Default and Doc are Markdown of one line.
type Row struct {
	Topic, Key                           string
	Variables                            []string
	Type, Range, Default, Example, About string
}

// Rows returns the reference of the settings in the order of the table.
func Rows[C any](fields []Field[C]) []Row {
	var rows []Row
	for i := range fields {
		f := &fields[i]
		row := Row{
			Topic: f.Topic, Key: f.Key, Variables: f.variables(), Type: f.Value.kind, Range: f.Allowed, Default: f.Default,
			Example: f.example(), About: f.Doc,
		}
		for _, form := range spelled[row.Type] {
			if rest, ok := strings.CutPrefix(row.Range, form); ok && !strings.HasPrefix(rest, "/") { // not of "a text/template"
				row.Range = strings.TrimLeft(rest, ",; ")
			}
		}
		if f.Unit != "" {
			row.Type += ", " + f.Unit
		}
		rows = append(rows, row)
	}
	return rows
}

// RowTable returns settings as a Markdown table.
func RowTable(rows []Row) string {
	var b strings.Builder
	b.WriteString("| Setting | Type | Allowed | Default | Example | What it does |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s`<br>`%s` | %s | %s | %s | `%s` | %s |\n",
			r.Key, strings.Join(r.Variables, "`<br>`"), r.Type, r.Range, r.Default, r.Example, r.About)
	}
	return b.String()
}

// Incomplete returns the parts of the reference that fields lack, and examples that are not allowed.
func Incomplete[C any](fields []Field[C]) []error {
	var faults []error
	for i := range fields {
		f := &fields[i]
		for what, text := range map[string]string{
			"type": f.Value.kind, "allowed": f.Allowed, "default": f.Default, "example": f.example(), "sentence": f.Doc,
		} {
			if text == "" {
				faults = append(faults, fmt.Errorf("setting %s has no %s", f.Key, what))
			}
		}
		if f.Value.high > 0 && f.Value.kind == aNumber && f.Unit == "" {
			faults = append(faults, fmt.Errorf("setting %s has no unit", f.Key))
		}
		if strings.ContainsAny(f.example(), "|`\n") {
			faults = append(faults, fmt.Errorf("the example of setting %s does not fit a table", f.Key))
		}
		for _, fault := range bind(fields[i:i+1], fresh[C]())[0].put(f.example(), "the example") {
			faults = append(faults, fault)
		}
	}
	return faults
}

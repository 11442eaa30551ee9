package config

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
)

// A Value is one field of a C, with its allowed range. The functions below return Values; each takes the address of the value in a C.
type Value[C any] struct {
	traits

	in func(c C) place
}

// traits are what a Value is in any C.
type traits struct {
	kind   string // its type, as in the reference
	secret bool
	hidden bool                     // not even users who may list the processes of a machine may see it
	hint   func(text string) string // the intended value of a text of the wrong form; nil: unknown
	form   Schema                   // in a file; nil: any single value
	low    int64                    // minimum of a number or a duration with a range; high is the maximum
	high   int64
	listed bool // a list in a file is one, too
}

// A place holds one value of one configuration, without the type of that.
type place struct {
	set     func(text string) bool // false: text does not have the form of a value; nil: see Block
	get     func() string          // as printed; empty for the zero value
	check   func() bool            // nil: every value of the type is allowed
	problem func() string          // of a secret: its fault, without the secret; nil: see check
	// block reads a value with structure; nil: it has none.
	block func(n *yaml.Node) []BlockFault
	// raw is the value with its secrets, never printed; nil: get.
	raw func() string
}

// value returns a text that differs between any two values.
func (p *place) value() string {
	if p.raw != nil {
		return p.raw()
	}
	return p.get()
}

// A format is how values of a type are written, and which of them are allowed.
type format[T comparable] struct {
	parse func(text string) (T, bool)
	show  func(T) string
	check func(T) bool // nil: all
}

func (f format[T]) place(at *T) place {
	return place{
		set: func(text string) (ok bool) {
			*at, ok = f.parse(text)
			return ok
		},
		get: func() string {
			var zero T
			if *at == zero {
				return ""
			}
			return f.show(*at)
		},
		check: func() bool { return f.check == nil || f.check(*at) },
		raw:   func() string { return fmt.Sprint(*at) },
	}
}

// within returns a format that allows zero, and values from least to most.
func within[T cmp.Ordered](f format[T], least, most T) format[T] {
	f.check = func(v T) bool {
		var zero T
		return v == zero || v >= least && v <= most
	}
	return f
}

// of returns a Value in a format.
func of[C any, T comparable](at func(C) *T, is traits, f format[T]) Value[C] {
	return Value[C]{is, func(c C) place { return f.place(at(c)) }}
}

// ofText is the format of a text that satisfies check.
func ofText[T ~string](check func(text T) bool) format[T] {
	return format[T]{func(text string) (T, bool) { return T(text), true }, func(text T) string { return string(text) }, check}
}

var (
	ofInt      = format[int]{parse: WholeNumber, show: strconv.Itoa}
	ofDuration = format[time.Duration]{parse: positive, show: duration.Short}
)

// Int is an integer: decimal digits without leading zeros, possibly after a minus sign.
func Int[C any](at func(C) *int) Value[C] {
	return of(at, traits{kind: aNumber, form: anInteger}, ofInt)
}

// WholeNumber parses an unambiguous integer: 010 is octal to some readers, 1_000 a thousand, and 1e3 not an integer.
func WholeNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && strconv.Itoa(n) == text
}

// Duration is a duration above 0, in the format of time.ParseDuration.
func Duration[C any](at func(C) *time.Duration) Value[C] {
	return of(at, traits{kind: aSpan, form: aDuration, hint: durationHint}, within(ofDuration, 0, math.MaxInt64))
}

func positive(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

// Bool is true or false.
func Bool[C any](at func(C) *bool) Value[C] {
	return of(at, traits{kind: aSwitch, form: aBoolean}, format[bool]{
		parse: func(text string) (is, ok bool) { return text == "true", text == "true" || text == "false" }, show: strconv.FormatBool,
	})
}

// Choice is one of some words; the first is the default.
func Choice[C any, T ~string](at func(C) *T, words ...T) Value[C] {
	all := asTexts(words)
	is := traits{kind: aChoice, form: Schema{"enum": all}, hint: func(text string) string { return didYouMean(text, all) }}
	return of(at, is, ofText(func(word T) bool { return word == "" || slices.Contains(words, word) }))
}

func asTexts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// Custom is a value that set reads, for a field that is never shown.
func Custom[C any](set func(c C, text string) bool) Value[C] {
	return Value[C]{in: func(c C) place { return place{set: func(text string) bool { return set(c, text) }} }}
}

// maxText is the maximum length of a setting, in bytes.
const maxText = 4096

// Text is a text of one line, without control characters and outer spaces.
func Text[C any](at func(C) *string) Value[C] { return of(at, traits{kind: aText}, ofText(isLine)) }

// Path is the path of a file or a folder.
func Path[C any](at func(C) *string) Value[C] { return of(at, traits{kind: aFile}, ofText(isLine)) }

func isLine(text string) bool {
	return len(text) <= maxText && utf8.ValidString(text) && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// maxLines is the maximum length of a setting of several lines, in bytes.
const maxLines = 1 << 16

// Lines is a text that may have several lines, without other control characters.
func Lines[C any](at func(C) *string) Value[C] {
	return of(at, traits{kind: someLines}, ofText(areLines))
}

func areLines(text string) bool {
	return len(text) <= maxLines && utf8.ValidString(text) && !strings.ContainsFunc(text, isUnprintable)
}

// isUnprintable reports whether a text of several lines must not have a character.
func isUnprintable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// Unshown returns f with faults that do not show its value, for values that often contain a secret, such as a URL. It ignores one final
// line end.
func Unshown[C any](f Field[C]) Field[C] {
	in := f.Value.in
	f.Value.secret = true
	f.Value.in = func(c C) place {
		p := in(c)
		p.problem = func() string { return unprintable(p.get()) }
		return p
	}
	return f
}

// unprintable names the first character that a text of several lines must not have; empty for none.
func unprintable(text string) string {
	for i, r := range text {
		if isUnprintable(r) {
			return fmt.Sprintf("has %s at byte %d", characterName(r), i+1)
		}
	}
	return ""
}

// Store is a store URL. It accepts any text; ParseStore finds faults. It is printed without secrets.
func Store[C any](at func(C) *string) Value[C] {
	f := ofText[string](nil)
	f.show = ShowStore
	return of(at, traits{kind: aURL, secret: true}, f)
}

// Endpoint is an http or https URL without user, query and fragment. A fault does not show it, because forbidden parts are often secrets.
func Endpoint[C any](at func(C) *string) Value[C] {
	f := ofText(isEndpoint)
	f.show = func(text string) string {
		if !isEndpoint(text) {
			return Redacted
		}
		return text
	}
	return of(at, traits{kind: aURL, secret: true, hint: endpointHint}, f)
}

func isEndpoint(text string) bool {
	u, err := url.Parse(text)
	return text == "" || err == nil && len(text) <= maxText && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && !strings.HasSuffix(text, "#")
}

// Redacted replaces a secret in printed text.
const Redacted = "(set, not shown)"

// Secret is a text that is never printed, by the rule of CleanSecret. set, which drops one line end, and reveal access the value; empty is
// not set.
func Secret[C any](set func(c C, text string), reveal func(c C) string) Value[C] {
	return Value[C]{traits{kind: aSecret, secret: true, hidden: true}, func(c C) place {
		return place{
			set: func(text string) bool { set(c, text); return true },
			get: func() string {
				if reveal(c) == "" {
					return ""
				}
				return Redacted
			},
			problem: func() string { return secretProblem(reveal(c)) },
			raw:     func() string { return reveal(c) },
		}
	}}
}

// The functions below make fields of the usual kinds. Each takes the key, texts for the reference (Default is Markdown, too), and the
// address of the value in a C. The zero value, which is the default, is always allowed.

// The allowed values in the reference.
const (
	aWholeNumber = "a whole number, "
	aPath        = "the path of a file"
)

// WithPrefix returns fields whose variables begin with prefix.
func WithPrefix[C any](prefix string, fields ...Field[C]) []Field[C] {
	out := slices.Clone(fields)
	for i := range out {
		out[i].Prefix = prefix
	}
	return out
}

// TextField is a text of one line.
func TextField[C any](key, allowed, byDefault, doc string, at func(C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: allowed, Default: byDefault, Doc: doc, Value: Text(at)}
}

// LinesField is a text that may have several lines.
func LinesField[C any](key, allowed, byDefault, doc string, at func(C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: allowed, Default: byDefault, Doc: doc, Value: Lines(at)}
}

// PathField is the path of a file.
func PathField[C any](key, byDefault, doc string, at func(C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: aPath, Default: byDefault, Doc: doc, Value: Path(at)}
}

// BoolField is true or false; the default is false.
func BoolField[C any](key, doc string, at func(C) *bool) Field[C] {
	return Field[C]{Key: key, Allowed: "`true` or `false`", Default: "`false`", Doc: doc, Value: Bool(at)}
}

// ChoiceField is one of several words; the first is the default.
func ChoiceField[C any, T ~string](key, doc string, at func(C) *T, words ...T) Field[C] {
	all := asTexts(words)
	last := len(all) - 1
	return Field[C]{
		Key: key, Allowed: "`" + strings.Join(all[:last], "`, `") + "` or `" + all[last] + "`", Default: "`" + all[0] + "`", Doc: doc,
		Value: Choice(at, words...),
	}
}

// BoolWord is a switch that one word turns on.
func BoolWord[C any](key, word, byDefault, doc string, at func(C) *bool) Field[C] {
	return Field[C]{
		Key: key, Allowed: "`" + word + "`", Default: byDefault, Doc: doc, Example: word,
		Value: of(at, traits{kind: aChoice, form: Schema{"enum": []string{word}}}, format[bool]{
			parse: func(text string) (is, ok bool) { return true, text == word }, show: func(bool) string { return word },
		}),
	}
}

// OrWord returns the field of a number that may also be a word, which turns a switch on.
func (f Field[C]) OrWord(word string, at func(C) *bool) Field[C] {
	f.Allowed += ", or `" + word + "`"
	f.Value.form = Schema{"anyOf": []any{f.Value.form, Schema{"enum": []string{word}}}}
	f.Value.low, f.Value.high = 0, 0
	number := f.Value.in
	f.Value.in = func(c C) place {
		p := number(c)
		set, get := p.set, p.get
		p.set = func(text string) bool {
			*at(c) = text == word
			return *at(c) || set(text)
		}
		p.get = func() string {
			if *at(c) {
				return word
			}
			return get()
		}
		return p
	}
	return f
}

// EndpointField is an http or https URL.
func EndpointField[C any](key, byDefault, doc string, at func(C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: "an http or https URL without user, query and fragment", Default: byDefault, Doc: doc, Value: Endpoint(at)}
}

// NumberField is a whole number from least to most.
func NumberField[C any](key string, least, most int, byDefault, doc string, at func(C) *int) Field[C] {
	is := traits{kind: aNumber, form: anInteger, low: int64(min(least, 0)), high: int64(most)} // 0 is not set
	return Field[C]{
		Key: key, Allowed: fmt.Sprintf("%s%d to %d", aWholeNumber, least, most), Default: byDefault, Doc: doc,
		Value: of(at, is, within(ofInt, least, most)),
	}
}

// DurationField is a duration from least to most.
func DurationField[C any](key string, least, most time.Duration, byDefault, doc string, at func(C) *time.Duration) Field[C] {
	is := traits{kind: aSpan, form: aDuration, hint: durationHint, low: int64(least), high: int64(most)}
	return Field[C]{
		Key: key, Allowed: fmt.Sprintf("a duration, `%s` to `%s`", duration.Short(least), duration.Short(most)),
		Default: byDefault, Doc: doc, Value: of(at, is, within(ofDuration, least, most)),
	}
}

package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Value reads, writes and checks one value in a C. The functions below return Values; each takes the address of the value in a C.
type Value[C any] struct {
	traits

	set func(c *C, text string) bool // false: text does not have the form of a value; nil: see Block
	get func(c *C) string            // as printed; empty for the zero value
	// block reads a value with structure; nil: it has none.
	block   func(c *C, n *yaml.Node) []BlockFault
	check   func(c *C) bool   // nil: every value of the type is allowed
	problem func(c *C) string // of a secret: its fault, without the secret; nil: see check
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
}

// of returns a Value that parse reads and show prints.
func of[C any, T comparable](at func(*C) *T, kind string, parse func(text string) (T, bool), show func(T) string) Value[C] {
	return Value[C]{
		traits: traits{kind: kind},
		set: func(c *C, text string) (ok bool) {
			*at(c), ok = parse(text)
			return ok
		},
		get: func(c *C) string {
			var zero T
			if *at(c) == zero {
				return ""
			}
			return show(*at(c))
		},
	}
}

// text returns a text that satisfies check.
func text[C any, T ~string](at func(*C) *T, kind string, check func(text T) bool) Value[C] {
	v := of(at, kind, func(text string) (T, bool) { return T(text), true }, func(text T) string { return string(text) })
	v.check = func(c *C) bool { return check(*at(c)) }
	return v
}

// Int is an integer: decimal digits without leading zeros, possibly after a minus sign.
func Int[C any](at func(*C) *int) Value[C] {
	v := of(at, aNumber, WholeNumber, strconv.Itoa)
	v.form = anInteger
	return v
}

// WholeNumber parses an unambiguous integer: 010 is octal to some readers, 1_000 a thousand, and 1e3 not an integer.
func WholeNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && strconv.Itoa(n) == text
}

// Duration is a duration above 0, in the format of time.ParseDuration.
func Duration[C any](at func(*C) *time.Duration) Value[C] {
	v := of(at, aSpan, func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d > 0
	}, limit.ShortDuration)
	v.form, v.hint = aDuration, durationHint
	v.check = func(c *C) bool { return *at(c) >= 0 }
	return v
}

// Bool is true or false.
func Bool[C any](at func(*C) *bool) Value[C] {
	v := of(at, aSwitch, func(text string) (is, ok bool) { return text == "true", text == "true" || text == "false" }, strconv.FormatBool)
	v.form = aBoolean
	return v
}

// Choice is one of some words; the first is the default.
func Choice[C any, T ~string](at func(*C) *T, words ...T) Value[C] {
	v := text(at, aChoice, func(word T) bool { return word == "" || slices.Contains(words, word) })
	v.form = Schema{"enum": asTexts(words)}
	v.hint = func(text string) string { return didYouMean(text, asTexts(words)) }
	return v
}

func asTexts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// Custom is a value that set reads, for a field that is never shown.
func Custom[C any](set func(c *C, text string) bool) Value[C] {
	return Value[C]{set: set}
}

// maxText is the maximum length of a setting, in bytes.
const maxText = 4096

// Text is a text of one line, without control characters and outer spaces.
func Text[C any](at func(*C) *string) Value[C] { return text(at, aText, isLine) }

// Path is the path of a file or a folder.
func Path[C any](at func(*C) *string) Value[C] { return text(at, aFile, isLine) }

func isLine(text string) bool {
	return len(text) <= maxText && utf8.ValidString(text) && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// maxLines is the maximum length of a setting of several lines, in bytes.
const maxLines = 1 << 16

// Lines is a text that may have several lines, without other control characters.
func Lines[C any](at func(*C) *string) Value[C] {
	return text(at, someLines, func(text string) bool {
		return len(text) <= maxLines && utf8.ValidString(text) && !strings.ContainsFunc(text, isUnprintable)
	})
}

// isUnprintable reports whether a text of several lines must not have a character.
func isUnprintable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// Unshown returns f with faults that do not show its value, for values that often contain a secret, such as a URL. It ignores one final
// line end.
func Unshown[C any](f Field[C]) Field[C] {
	get := f.Value.get
	f.Value.secret = true
	f.Value.problem = func(c *C) string {
		for i, r := range get(c) {
			if isUnprintable(r) {
				return fmt.Sprintf("has %s at byte %d", characterName(r), i+1)
			}
		}
		return ""
	}
	return f
}

// Store is a store URL. It accepts any text; ParseStore finds faults. It is printed without secrets.
func Store[C any](at func(*C) *string) Value[C] {
	v := text(at, aURL, func(string) bool { return true })
	v.secret = true
	v.get = func(c *C) string { return ShowStore(*at(c)) }
	return v
}

// Endpoint is an http or https URL without user, query and fragment. A fault does not show it, because forbidden parts are often secrets.
func Endpoint[C any](at func(*C) *string) Value[C] {
	v := text(at, aURL, isEndpoint)
	v.secret, v.hint = true, endpointHint
	v.get = func(c *C) string {
		if !isEndpoint(*at(c)) {
			return Redacted
		}
		return *at(c)
	}
	return v
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
func Secret[C any](set func(c *C, text string), reveal func(c *C) string) Value[C] {
	return Value[C]{
		traits: traits{kind: aSecret, secret: true, hidden: true},
		set:    func(c *C, text string) bool { set(c, text); return true },
		get: func(c *C) string {
			if reveal(c) == "" {
				return ""
			}
			return Redacted
		},
		problem: func(c *C) string { return secretProblem(reveal(c)) },
	}
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
func TextField[C any](key, allowed, byDefault, doc string, at func(*C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: allowed, Default: byDefault, Doc: doc, Value: Text(at)}
}

// LinesField is a text that may have several lines.
func LinesField[C any](key, allowed, byDefault, doc string, at func(*C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: allowed, Default: byDefault, Doc: doc, Value: Lines(at)}
}

// PathField is the path of a file.
func PathField[C any](key, byDefault, doc string, at func(*C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: aPath, Default: byDefault, Doc: doc, Value: Path(at)}
}

// BoolField is true or false; the default is false.
func BoolField[C any](key, doc string, at func(*C) *bool) Field[C] {
	return Field[C]{Key: key, Allowed: "`true` or `false`", Default: "`false`", Doc: doc, Value: Bool(at)}
}

// ChoiceField is one of several words; the first is the default.
func ChoiceField[C any, T ~string](key, doc string, at func(*C) *T, words ...T) Field[C] {
	all := asTexts(words)
	last := len(all) - 1
	return Field[C]{
		Key: key, Allowed: "`" + strings.Join(all[:last], "`, `") + "` or `" + all[last] + "`", Default: "`" + all[0] + "`", Doc: doc,
		Value: Choice(at, words...),
	}
}

// EndpointField is an http or https URL.
func EndpointField[C any](key, byDefault, doc string, at func(*C) *string) Field[C] {
	return Field[C]{Key: key, Allowed: "an http or https URL without user, query and fragment", Default: byDefault, Doc: doc, Value: Endpoint(at)}
}

// NumberField is a whole number from least to most.
func NumberField[C any](key string, least, most int, byDefault, doc string, at func(*C) *int) Field[C] {
	value := Int(at)
	value.low, value.high = int64(min(least, 0)), int64(most) // 0 is not set
	return Field[C]{
		Key: key, Allowed: fmt.Sprintf("%s%d to %d", aWholeNumber, least, most), Default: byDefault, Doc: doc, Value: value,
		Range: func(c *C) bool { return *at(c) == 0 || *at(c) >= least && *at(c) <= most },
	}
}

// DurationField is a duration from least to most.
func DurationField[C any](key string, least, most time.Duration, byDefault, doc string, at func(*C) *time.Duration) Field[C] {
	value := Duration(at)
	value.low, value.high = int64(least), int64(most)
	return Field[C]{
		Key: key, Allowed: fmt.Sprintf("a duration, `%s` to `%s`", limit.ShortDuration(least), limit.ShortDuration(most)),
		Default: byDefault, Doc: doc, Value: value,
		Range: func(c *C) bool { return *at(c) == 0 || *at(c) >= least && *at(c) <= most },
	}
}

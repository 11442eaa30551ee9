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
	kind   string // its type, as in the reference
	secret bool
	// hidden: not even users who may list the processes of a machine may see it.
	hidden bool
	// mapping: the file may have a mapping, which is converted to a line of YAML.
	mapping bool
	// block: the file may have a nested mapping; see Block.
	block   func(c *C, n *yaml.Node) []BlockFault
	set     func(c *C, text string) bool // false: text does not have the form of a value
	get     func(c *C) string            // as printed; empty for the zero value
	check   func(c *C) bool              // nil: every value of the type is allowed
	hint    func(text string) string     // the intended value of a text of the wrong form; nil: unknown
	form    Schema                       // in a file; nil: any single value
	low     int64                        // minimum of a number or a duration with a range; high is the maximum
	high    int64
	problem func(c *C) string // of a secret: its fault, without the secret; nil: see check
}

// Int is an integer: decimal digits without leading zeros, possibly after a minus sign.
func Int[C any](at func(*C) *int) Value[C] {
	return Value[C]{
		kind: aNumber,
		form: anInteger,
		set: func(c *C, text string) bool {
			n, ok := wholeNumber(text)
			if ok {
				*at(c) = n
			}
			return ok
		},
		get: func(c *C) string {
			if *at(c) == 0 {
				return ""
			}
			return strconv.Itoa(*at(c))
		},
	}
}

// wholeNumber parses an unambiguous integer: 010 is octal to some readers, 1_000 a thousand, and 1e3 not an integer.
func wholeNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && strconv.Itoa(n) == text
}

// Duration is a duration above 0, in the format of time.ParseDuration.
func Duration[C any](at func(*C) *time.Duration) Value[C] {
	return Value[C]{
		kind: aSpan,
		form: aDuration,
		set: func(c *C, text string) bool {
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				return false
			}
			*at(c) = d
			return true
		},
		hint: DurationHint,
		get: func(c *C) string {
			if *at(c) == 0 {
				return ""
			}
			return limit.ShortDuration(*at(c))
		},
		check: func(c *C) bool { return *at(c) >= 0 },
	}
}

// Bool is true or false.
func Bool[C any](at func(*C) *bool) Value[C] {
	return Value[C]{
		kind: aSwitch,
		form: aBoolean,
		set: func(c *C, text string) bool {
			*at(c) = text == "true"
			return text == "true" || text == "false"
		},
		get: func(c *C) string {
			if !*at(c) {
				return ""
			}
			return "true"
		},
	}
}

// Choice is one of some words; the first is the default.
func Choice[C any, T ~string](at func(*C) *T, words ...T) Value[C] {
	return Value[C]{
		kind:  aChoice,
		form:  Schema{"enum": asTexts(words)},
		set:   func(c *C, text string) bool { *at(c) = T(text); return true },
		get:   func(c *C) string { return string(*at(c)) },
		check: func(c *C) bool { return *at(c) == "" || slices.Contains(words, *at(c)) },
		hint:  func(text string) string { return didYouMean(text, asTexts(words)) },
	}
}

func asTexts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// maxText is the maximum length of a setting, in bytes.
const maxText = 4096

// Text is a text of one line, without control characters and outer spaces.
func Text[C any](at func(*C) *string) Value[C] {
	return Value[C]{
		kind:  aText,
		set:   func(c *C, text string) bool { *at(c) = text; return true },
		get:   func(c *C) string { return *at(c) },
		check: func(c *C) bool { return isLine(*at(c)) },
	}
}

// Path is the path of a file or a folder.
func Path[C any](at func(*C) *string) Value[C] {
	v := Text(at)
	v.kind = aFile
	return v
}

func isLine(text string) bool {
	return len(text) <= maxText && utf8.ValidString(text) && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, unicode.IsControl)
}

// Lines is a text that may have several lines, without other control characters.
func Lines[C any](at func(*C) *string) Value[C] {
	return Value[C]{
		kind:  someLines,
		set:   func(c *C, text string) bool { *at(c) = text; return true },
		get:   func(c *C) string { return *at(c) },
		check: func(c *C) bool { return areLines(*at(c)) },
	}
}

// Unshown returns f with faults that do not show its value, for values that often contain a secret, such as a URL. It ignores one final
// line end.
func Unshown[C any](f Field[C]) Field[C] {
	get := f.Value.get
	f.Value.secret = true
	f.Value.problem = func(c *C) string {
		for i, r := range get(c) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return fmt.Sprintf("has %s at byte %d", characterName(r), i+1)
			}
		}
		return ""
	}
	return f
}

// maxLines is the maximum length of a setting of several lines, in bytes.
const maxLines = 1 << 16

func areLines(text string) bool {
	return len(text) <= maxLines && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t'
	})
}

// Store is a store URL. It accepts any text; ParseStore finds faults. It is printed without secrets.
func Store[C any](at func(*C) *string) Value[C] {
	return Value[C]{
		kind:   aURL,
		secret: true,
		set:    func(c *C, text string) bool { *at(c) = text; return true },
		get:    func(c *C) string { return ShowStore(*at(c)) },
	}
}

// Endpoint is an http or https URL without user, query and fragment. A fault does not show it, because forbidden parts are often secrets.
func Endpoint[C any](at func(*C) *string) Value[C] {
	return Value[C]{
		kind:   aURL,
		secret: true,
		set:    func(c *C, text string) bool { *at(c) = text; return true },
		get: func(c *C) string {
			if *at(c) != "" && !isEndpoint(*at(c)) {
				return Redacted
			}
			return *at(c)
		},
		check: func(c *C) bool { return *at(c) == "" || isEndpoint(*at(c)) },
		hint:  endpointHint,
	}
}

func isEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxText && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && !strings.HasSuffix(text, "#")
}

// Secret is a text that is never printed, by the rule of CleanSecret. set, which drops one line end, and reveal access the value; empty is
// not set.
func Secret[C any](set func(c *C, text string), reveal func(c *C) string) Value[C] {
	return Value[C]{
		kind:   aSecret,
		secret: true,
		hidden: true,
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

// Redacted replaces a secret in printed text.
const Redacted = "(set, not shown)"

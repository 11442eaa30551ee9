package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The functions below make fields of the usual kinds. Each takes the key, texts for the reference (Default is Markdown, too), and the
// address of the value in a C. The zero value, which is the default, is always allowed.

// The allowed values in the reference.
const (
	aWholeNumber = "a whole number, "
	aPath        = "the path of a file"
)

// WithPrefix returns fields whose variables begin with prefix.
func WithPrefix[C any](prefix string, fields ...Field[C]) []Field[C] {
	out := make([]Field[C], len(fields))
	for i, f := range fields {
		f.Prefix = prefix
		out[i] = f
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
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + string(w) + "`"
	}
	last := len(quoted) - 1
	return Field[C]{
		Key: key, Allowed: strings.Join(quoted[:last], ", ") + " or " + quoted[last], Default: quoted[0], Doc: doc,
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

package opening

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// A Secret is a text that no print, log or marshaller shows, not even inside a struct printed with %#v. The zero Secret is not set.
type Secret struct {
	// A pointer, because package fmt prints unexported fields of a struct without calling their methods.
	text *string
	// inURL says that it stood in the store's URL.
	inURL bool
}

// fromURL returns the Secret of a text in the store's URL.
func fromURL(text string) Secret {
	s := NewSecret(text)
	s.inURL = true
	return s
}

// NewSecret is open.NewSecret.
func NewSecret(text string) Secret {
	text = config.TrimLineEnd(text)
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// IsSet reports whether there is a text.
func (s Secret) IsSet() bool { return s.text != nil }

// Reveal returns the text; empty if the secret is not set. It is the only way to read the text; never print the result.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String says only whether the secret is set.
func (s Secret) String() string {
	if !s.IsSet() {
		return "(not set)"
	}
	return config.Redacted
}

// Format prints String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String for package slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String for JSON, YAML and similar formats.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String prints the settings that differ from their defaults, without secrets.
func (c Config) String() string {
	var parts []string
	for _, s := range config.Show(fields, &c) {
		value := s.Value
		if strings.ContainsAny(value, " ,\"") && value != config.Redacted {
			value = strconv.Quote(value)
		}
		parts = append(parts, s.Key+": "+value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// GoString is String with the name of the type.
func (c Config) GoString() string { return "numathrottle.Config" + c.String() }

// Format prints GoString for %#v and String for every other verb.
func (c Config) Format(f fmt.State, verb rune) {
	text := c.String()
	if verb == 'v' && f.Flag('#') {
		text = c.GoString()
	}
	_, _ = io.WriteString(f, text)
}

// LogValue returns the settings that String prints, as a group.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, s := range config.Show(fields, &c) {
		attrs = append(attrs, slog.String(s.Key, s.Value))
	}
	return slog.GroupValue(attrs...)
}

// MarshalText is String for JSON and similar formats, so that nothing prints the store's URL unchanged.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

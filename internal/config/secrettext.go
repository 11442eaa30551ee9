package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AllowedSecret says what CleanSecret takes.
const AllowedSecret = "a text of one line; one line end behind it does not count" //nolint:gosec // what is allowed, and no secret

// CleanSecret is the common rule for secrets from all sources. It ignores one line end (\n or \r\n) at the end, because editors, echo and
// base64 add it. A byte-order mark at the beginning, any other control character and Unicode's line separators are faults. No login has
// them, and they would fail later without a visible cause. Spaces stay: a password may have them. problem names only the character and its
// byte position, counted from 1; it is empty for a usable text.
func CleanSecret(text string) (clean, problem string) {
	clean = TrimLineEnd(text)
	if problem = secretProblem(clean); problem != "" {
		return "", problem
	}
	return clean, ""
}

// secretProblem is the second half of CleanSecret, for a secret without line end.
func secretProblem(text string) string {
	const mark = "\ufeff"
	if strings.HasPrefix(text, mark) {
		return "begins with a byte-order mark"
	}
	for i, r := range text {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return fmt.Sprintf("has %s at byte %d", characterName(r), i+1)
		}
	}
	return ""
}

// TrimLineEnd returns text without one final line end (\n or \r\n).
func TrimLineEnd(text string) string {
	if cut, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.TrimSuffix(cut, "\r")
	}
	return text
}

// HeaderProblem says why a secret cannot be the value of an HTTP header, without any of it; empty if it can. One fault is outer spaces:
// net/http trims them, so that the service would get another secret.
func HeaderProblem(secret string) string {
	for i, r := range secret {
		switch {
		case r == utf8.RuneError, r > '~':
			return fmt.Sprintf("has a character that is not ASCII at byte %d, which a header cannot hold", i+1)
		case unicode.IsControl(r):
			return fmt.Sprintf("has %s at byte %d, which a header cannot hold", characterName(r), i+1)
		}
	}
	if strings.Trim(secret, " ") != secret {
		return "has a space at its beginning or end, which a header cannot hold"
	}
	return ""
}

// characterName names an invisible character.
func characterName(r rune) string {
	names := map[rune]string{0: "a NUL", '\t': "a tab", '\n': "a line feed", '\r': "a carriage return", 0x1b: "an escape", 0x7f: "a delete"}
	if name, ok := names[r]; ok {
		return fmt.Sprintf("%s (U+%04X)", name, r)
	}
	if unicode.IsControl(r) {
		return fmt.Sprintf("a control character (U+%04X)", r)
	}
	return fmt.Sprintf("a line separator (U+%04X)", r)
}

// ReadSecretFile returns the secret in a file, by the rule of CleanSecret. The error names the file and contains nothing of its content.
func ReadSecretFile(path string) (string, error) {
	content, err := ReadFile(path)
	if err != nil {
		return "", err
	}
	text, problem := CleanSecret(string(content))
	if problem != "" {
		return "", &SecretError{File: path, Problem: problem}
	}
	return text, nil
}

// A SecretError says why a secret in a file cannot be used.
type SecretError struct{ File, Problem string }

// Error names the file and the problem, and nothing of the secret.
func (e *SecretError) Error() string {
	return fmt.Sprintf("%s %s, allowed: %s", e.File, e.Problem, AllowedSecret)
}

// SecretFileFault returns the fault of a setting whose file has an unusable secret.
func SecretFileFault(key, path string, err error) *FieldError {
	if secret, ok := errors.AsType[*SecretError](err); ok {
		return &FieldError{Field: key, Problem: fmt.Sprintf("is %q, which %s", path, secret.Problem), Allowed: AllowedSecret}
	}
	return &FieldError{Field: key, Problem: fmt.Sprintf("is %q, which cannot be used: %v", path, withoutPath(err))}
}

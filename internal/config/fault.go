package config

import (
	"errors"
	"fmt"
	"strings"
)

// A FieldError is one fault of the configuration.
type FieldError struct {
	// Field names the setting, as in the file.
	Field string
	// Problem describes the fault, with the value unless it is a secret: `is "abc"`.
	Problem string
	// Source is the source of the value: the variable, or the file and line. Empty when it was set in Go.
	Source string
	// Allowed describes the allowed values; empty if Problem suffices.
	Allowed string

	meant string // the setting that an unknown name was most likely meant for
}

// Error returns field, problem, source and the allowed values in one line.
func (f *FieldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "numathrottle: %s %s", f.Field, f.Problem)
	if f.Source != "" {
		fmt.Fprintf(&b, " (%s)", f.Source)
	}
	if f.Allowed != "" {
		fmt.Fprintf(&b, ", allowed: %s", f.Allowed)
	}
	return b.String()
}

// Join returns one error with a line for each of errs, or nil for none. It splits joined errors, so that each fault has its own line.
func Join(errs []error) error { return errors.Join(Split(errs...)...) }

// Split splits errors joined by errors.Join, and drops nil ones.
func Split(errs ...error) []error {
	var out []error
	for _, err := range errs {
		// Errors wrapped deeper stay: splitting them would lose their context.
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			out = append(out, Split(joined.Unwrap()...)...)
		} else if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// quote prints a user's value in a fault, cut to fit a line.
func quote(text string) string {
	const longest = 60
	if len(text) > longest {
		return fmt.Sprintf("%.*q...", longest, text)
	}
	return fmt.Sprintf("%q", text)
}

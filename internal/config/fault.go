package config

import (
	"errors"
	"fmt"
	"strings"
)

// A FieldError is one thing wrong with the configuration.
type FieldError struct {
	// Field names the setting, as in the file.
	Field string
	// Problem says what is wrong with it, with the value if that is no secret:
	// `is "abc"`.
	Problem string
	// Source is where the value came from: the variable, or the file and line.
	// Empty when it was set in Go.
	Source string
	// Allowed says which values are; empty when the problem says it all.
	Allowed string

	meant string // the setting that an unknown name was most likely meant for
}

// Error says field, problem, source and what is allowed in one line.
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

// Join returns one error with a line for each of errs, or nil for none. What was
// joined before is taken apart, so that no fault stands in a line with another.
func Join(errs []error) error { return errors.Join(Split(errs...)...) }

// Split takes apart what errors.Join has put together, and leaves out what is nil.
func Split(errs ...error) []error {
	var out []error
	for _, err := range errs {
		// Not what is wrapped deeper: its text would lose what is around it.
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			out = append(out, Split(joined.Unwrap()...)...)
		} else if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// quote prints a value of the user's in a fault, cut to a length that fits a line.
func quote(text string) string {
	const longest = 60
	if len(text) > longest {
		return fmt.Sprintf("%.*q...", longest, text)
	}
	return fmt.Sprintf("%q", text)
}

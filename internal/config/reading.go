package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Reading is the result of reading settings: their sources, and all faults. The zero Reading is empty. It is not safe for concurrent use.
type Reading struct {
	sources map[string]string // by key
	faults  []error
	broken  []string // settings with a fault of their own
	meant   []string // settings that a misspelt name was most likely meant for
	blind   bool     // the file could not be read: it is unknown which settings are set
}

// Source returns the source of a setting, by its key: a variable, a flag, or a file with the line. Empty: the default, or filled in.
func (r *Reading) Source(key string) string { return r.sources[key] }

// Faults returns all faults, in the order in which they were found.
func (r *Reading) Faults() []error { return r.faults }

// Err returns one error with a line for each fault, or nil for none.
func (r *Reading) Err() error { return Join(r.faults) }

// Note adds faults of combinations of settings, or of the resources that they name. Each fault names the sources of its settings. It drops
// faults that follow from known ones: those of an unreadable setting, or of any setting if the file was unreadable.
func (r *Reading) Note(faults ...error) {
	for _, err := range Split(faults...) {
		named := []string{}
		f, isField := err.(*FieldError)      //nolint:errorlint // as above: not what is wrapped deeper
		of, isSetting := err.(*SettingError) //nolint:errorlint // the same
		switch {
		case isField:
			named = settingsIn(f.Field)
		case isSetting:
			named = []string{of.Key}
		}
		if r.blind || slices.ContainsFunc(named, func(key string) bool {
			return slices.Contains(r.broken, key) || r.sources[key] == "" && slices.Contains(r.meant, key)
		}) {
			continue
		}
		switch {
		case isField && f.Source == "":
			located := *f
			located.Source = r.where(named, f.Problem)
			err = &located
		case isSetting && r.where(named, of.Error()) != "":
			err = fmt.Errorf("%w (%s)", of.Err, r.where(named, of.Error()))
		}
		r.faults = append(r.faults, err)
	}
}

// A SettingError is an error whose text does not begin with its setting.
type SettingError struct {
	Key string
	Err error
}

// Error implements error.
func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *SettingError) Unwrap() error { return e.Err }

// found adds faults of the reading itself.
func (r *Reading) found(faults ...*FieldError) {
	for _, f := range faults {
		r.faults = append(r.faults, f)
		r.blind = r.blind || f.Field == FileVariable
		r.broken = append(r.broken, settingsIn(f.Field)...)
	}
}

// means notes the setting that a misspelt name was most likely meant for.
func (r *Reading) means(key string) { r.meant = append(r.meant, key) }

func (r *Reading) from(key, source string) {
	if r.sources == nil {
		r.sources = map[string]string{}
	}
	r.sources[key] = source
}

var (
	connectives = regexp.MustCompile(` and | or `)
	aKey        = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
)

// settingsIn returns the settings in the field of a fault: one, or several such as "storeCertFile and storeKeyFile". For a nested setting,
// such as quotas.other.total, it is the outermost.
func settingsIn(field string) []string {
	var keys []string
	for _, part := range connectives.Split(field, -1) {
		if key := aKey.FindString(part); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// where returns the sources of a fault's settings, and of those that its problem names outside of quoted values, paths and errors.
func (r *Reading) where(named []string, problem string) string {
	var of []string
	for _, key := range named {
		if source := r.sources[key]; source != "" {
			of = append(of, source)
		}
	}
	problem, _, _ = strings.Cut(problem, ", which cannot be ")
	for _, key := range aKey.FindAllString(quoted.ReplaceAllString(problem, ""), -1) {
		if source := r.sources[key]; source != "" && !slices.Contains(named, key) {
			named = append(named, key)
			of = append(of, key+": "+source)
		}
	}
	return strings.Join(of, "; ")
}

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

package config

import (
	"cmp"
	"reflect"
	"strings"
	"unicode"
)

// Prefix is the prefix of variables, except for fields with their own prefix.
const Prefix = "NUMATHROTTLE_"

// A Field describes one setting of a configuration. C is the pointer to that: for Go all pointers have one shape, so that the code for all
// configurations exists once.
type Field[C any] struct {
	// Key is the setting's name in the file, in camel case. The variable's name
	// follows from it; see Variable.
	Key string
	// Prefix is the prefix of the variable, for a program with settings of its own: capitals and a final underscore. Empty means the
	// constant Prefix.
	Prefix string
	// Shared means that the variable may also begin with the constant Prefix, because every program of this module has the setting. Only
	// one of the two may be set.
	Shared bool
	// Allowed describes the allowed values, Default the default, and Doc the meaning. They are Markdown of one line.
	Allowed, Default, Doc string
	// Topic is the heading in the reference, Unit the unit of a number, and Example a value as in the variable.
	Topic, Unit, Example string
	// Form extends the type of the value in a JSON schema; nil: nothing.
	Form Schema
	// Value is the setting's place in C.
	Value Value[C]
	// Range reports whether the value in c is allowed, beyond its form. nil: always. It holds for the zero value of C.
	Range func(c C) bool
}

// Variable returns the environment variable for a key: onStoreLoss is NUMATHROTTLE_ON_STORE_LOSS and storeCAFile is
// NUMATHROTTLE_STORE_CA_FILE.
func Variable(key string) string { return variable(Prefix, key) }

// Variable returns the field's environment variable.
func (f *Field[C]) Variable() string { return variable(f.prefix(), f.Key) }

// variables returns all environment variables of the field.
func (f *Field[C]) variables() []string {
	names := []string{f.Variable()}
	if shared := Variable(f.Key); f.Shared && shared != names[0] {
		names = append(names, shared)
	}
	return names
}

func (f *Field[C]) prefix() string { return cmp.Or(f.Prefix, Prefix) }

func variable(prefix, key string) string {
	var b strings.Builder
	b.WriteString(prefix)
	runes := []rune(key)
	for i, r := range runes {
		// A word begins at a capital after a small letter, and at the last capital
		// of a row of them when a small letter follows.
		if i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// A setting is a field of one configuration, without the type of that.
type setting struct {
	traits
	place

	key, allowed string
	inRange      func() bool             // nil: always
	keep         func() (restore func()) // remembers the configuration
}

// bind returns the settings of c.
func bind[C any](fields []Field[C], c C) []setting {
	whole := reflect.ValueOf(c).Elem()
	keep := func() func() {
		before := reflect.New(whole.Type()).Elem()
		before.Set(whole)
		return func() { whole.Set(before) }
	}
	out := make([]setting, len(fields))
	for i := range fields {
		f := &fields[i]
		out[i] = setting{traits: f.Value.traits, place: f.Value.in(c), key: f.Key, allowed: f.Allowed, keep: keep}
		if f.Range != nil {
			out[i].inRange = func() bool { return f.Range(c) }
		}
	}
	return out
}

// ok reports whether the value is allowed.
func (s *setting) ok() bool {
	return (s.check == nil || s.check()) && (s.problem == nil || s.problem() == "") && (s.inRange == nil || s.inRange())
}

func (s *setting) empty(source string) *FieldError {
	return &FieldError{Field: s.key, Problem: "is empty", Source: source, Allowed: s.allowed + "; leave it out for the default"}
}

// put sets the setting from text, and returns its faults. On a fault it keeps its value.
func (s *setting) put(text, source string) []*FieldError {
	if s.secret && !s.hidden { // a URL, which may contain a secret; a secret drops its line end itself
		text = TrimLineEnd(text)
	}
	switch {
	case text == "", s.hidden && TrimLineEnd(text) == "":
		return []*FieldError{s.empty(source)}
	case s.set == nil:
		return s.putBlock(text, source)
	}
	restore := s.keep()
	if s.set(text) && s.ok() {
		return nil
	}
	fault := s.fault(text)
	restore()
	fault.Source = source
	return []*FieldError{fault}
}

// fault describes the fault of the value. text is that value as it may be shown, unless it is a secret.
func (s *setting) fault(text string) *FieldError {
	if s.problem != nil {
		if problem := s.problem(); problem != "" {
			if s.hidden {
				return &FieldError{Field: s.key, Problem: problem, Allowed: AllowedSecret}
			}
			return &FieldError{Field: s.key, Problem: problem, Allowed: s.allowed}
		}
	}
	problem := "is " + quote(text)
	if s.secret {
		problem = "is not as it should be (not shown)"
	}
	if s.hint != nil {
		problem += s.hint(text)
	} else if s.key == "max" {
		problem += fractionHint(text)
	}
	return &FieldError{Field: s.key, Problem: problem, Allowed: s.allowed}
}

// keysOf returns the keys of settings.
func keysOf(settings []setting) []string {
	names := make([]string, len(settings))
	for i := range settings {
		names[i] = settings[i].key
	}
	return names
}

// Check returns a *FieldError for every field of c whose value is not allowed, in the
// order of the table. The zero value of every field is allowed.
func Check[C any](fields []Field[C], c C) []error {
	var faults []error
	for _, s := range bind(fields, c) {
		if !s.ok() {
			faults = append(faults, s.fault(s.get()))
		}
	}
	return faults
}

// A Setting is a field with its printable value.
type Setting struct{ Key, Value string }

// Show returns the settings of c that differ from their zero value, in the order
// of the table, and no secret.
func Show[C any](fields []Field[C], c C) []Setting {
	var out []Setting
	for i := range fields {
		if text := fields[i].Value.in(c).get(); text != "" {
			out = append(out, Setting{fields[i].Key, text})
		}
	}
	return out
}

// Changed returns the keys of the settings that differ between two configurations, secrets included.
func Changed[C any](fields []Field[C], a, b C) (keys []string) {
	for i := range fields {
		if one, other := fields[i].Value.in(a), fields[i].Value.in(b); one.value() != other.value() {
			keys = append(keys, fields[i].Key)
		}
	}
	return keys
}

// Flag returns the name of the field's flag, without leading dashes: onStoreLoss is on-store-loss. ok is false for a secret. Flags are visible
// to everyone who can list the processes of a machine.
func (f *Field[C]) Flag() (name string, ok bool) {
	return flagName(f.Key), !f.Value.hidden
}

func flagName(key string) string {
	return strings.ToLower(strings.ReplaceAll(variable("", key), "_", "-"))
}

// Lift converts fields of an A to fields of a B that contains an A. So a program can have them in one table with its own settings. at
// returns the address of the A.
func Lift[A, B any](fields []Field[A], at func(B) A) []Field[B] {
	lifted := make([]Field[B], len(fields))
	for i, f := range fields {
		lifted[i] = Field[B]{
			Key: f.Key, Prefix: f.Prefix, Shared: f.Shared, Allowed: f.Allowed, Default: f.Default, Doc: f.Doc,
			Topic: f.Topic, Unit: f.Unit, Example: f.Example, Form: f.Form,
			Value: Value[B]{f.Value.traits, func(b B) place { return f.Value.in(at(b)) }},
		}
		if f.Range != nil {
			lifted[i].Range = func(b B) bool { return f.Range(at(b)) }
		}
	}
	return lifted
}

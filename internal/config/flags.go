package config

import (
	"maps"
	"slices"
	"strings"
)

// Flag returns the name of the field's flag, without dashes: onStoreLoss is on-store-loss. ok is false for a secret, which is never a flag:
// every user who may list the processes of a machine sees all flags.
func (f *Field[C]) Flag() (name string, ok bool) {
	return flagName(f.Key), !f.Value.hidden
}

func flagName(key string) string {
	return strings.ToLower(strings.ReplaceAll(variable("", key), "_", "-"))
}

// Variable returns the field's environment variable.
func (f *Field[C]) Variable() string { return f.variable() }

// LoadFlags sets c from flags, which holds values by the key of their field. It returns a *FieldError for each wrong one, in the order of
// the keys; such a setting keeps its value.
func LoadFlags[C any](fields []Field[C], flags map[string]string, c *C) []error {
	var r Reading
	ReadFlags(fields, flags, c, &r)
	return r.Faults()
}

// ReadFlags is LoadFlags for a configuration already read from other sources; flags win.
func ReadFlags[C any](fields []Field[C], flags map[string]string, c *C, r *Reading) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		source := "--" + flagName(key)
		i := slices.IndexFunc(fields, func(f Field[C]) bool { return f.Key == key })
		if i < 0 || fields[i].Value.hidden {
			r.found(&FieldError{Field: quoteKey(key), Problem: "is not a setting that a flag can have", Source: source})
			continue
		}
		r.from(key, source)
		r.found(Split(fields[i].put(c, flags[key], source))...)
	}
}

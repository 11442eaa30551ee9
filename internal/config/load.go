package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FileVariable names the file with settings.
const FileVariable = Prefix + "CONFIG"

// requireStores is read by the module's own tests, whose processes inherit it. It is not a setting of a program.
const requireStores = Prefix + "REQUIRE_STORES"

// Load sets c from the file in NUMATHROTTLE_CONFIG, if it is set, and from the variables of environ, which has the form of os.Environ. A
// variable wins over the file. It returns a *FieldError for each fault: those of the file by line, those of the variables in the order of
// fields, and unknown (or misspelt) variables by name. A setting with a fault keeps its value.
func Load[C any](fields []Field[C], environ []string, c C) []error {
	return Read(fields, nil, environ, c).Faults()
}

// Read is Load for a program that needs the sources of settings, or that excludes some of the library's settings. without lists the keys of
// excluded settings. Their faults say that they are excluded.
func Read[C any](fields []Field[C], without, environ []string, c C) *Reading {
	return read(fields, others{without: without}, environ, c)
}

// ReadPart is Read for a program that looks at the settings of another one, and knows only some of them: others are no fault. Those that
// count have keys for which mine holds, so what can hardly be anything but a misspelt one of these is a fault.
func ReadPart[C any](fields []Field[C], mine func(key string) bool, environ []string, c C) *Reading {
	return read(fields, others{mine: mine}, environ, c)
}

// others says which settings there are beside those that are read.
type others struct {
	without []string              // of the library, but not of this program
	mine    func(key string) bool // of another program are all but these; nil: none is
}

// leave reports whether an unknown setting is another program's. nearest is the known one that it may mean; empty: none.
func (o others) leave(nearest string) bool {
	return o.mine != nil && (nearest == "" || !o.mine(nearest))
}

func read[C any](fields []Field[C], o others, environ []string, c C) *Reading {
	settings, v := bind(fields, c), vocabularyOf(fields)
	env := v.pick(environ)
	r := &Reading{}
	if name, ok := env[FileVariable]; ok {
		loadFile(settings, o, name, r)
	}
	delete(env, FileVariable)
	delete(env, requireStores)
	for i := range settings {
		s := &settings[i]
		before := ""
		for n, name := range v.known {
			text, ok := env[name]
			if !ok || v.keys[n] != s.key {
				continue
			}
			delete(env, name)
			if before != "" {
				r.found(&FieldError{Field: s.key, Problem: "is set by " + name + ", and by " + before, Allowed: "one of them"})
				continue
			}
			before = name
			r.from(s.key, name)
			r.found(s.put(text, name)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		i := v.nearest(name)
		if o.leave(keyAt(v.keys, i)) {
			continue
		}
		problem := "is not a variable of " + v.owner()
		if slices.ContainsFunc(o.without, func(key string) bool { return Variable(key) == name }) {
			problem = notTaken
		}
		if i >= 0 {
			problem += fmt.Sprintf("; did you mean %s?", v.known[i])
			r.means(v.keys[i])
		}
		r.found(&FieldError{Field: fullName("", name), Problem: problem})
	}
	return r
}

// keyAt returns the key at an index that may be -1, for none.
func keyAt(keys []string, i int) string {
	if i < 0 {
		return ""
	}
	return keys[i]
}

// LoadFlags sets c from flags, which holds values by the key of their field. It returns a *FieldError for each wrong one, in the order of
// the keys; such a setting keeps its value.
func LoadFlags[C any](fields []Field[C], flags map[string]string, c C) []error {
	var r Reading
	ReadFlags(fields, flags, c, &r)
	return r.Faults()
}

// ReadFlags is LoadFlags for a configuration already read from other sources; flags win.
func ReadFlags[C any](fields []Field[C], flags map[string]string, c C, r *Reading) {
	settings := bind(fields, c)
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		source := "--" + flagName(key)
		i := slices.Index(keysOf(settings), key)
		if i < 0 || settings[i].hidden {
			r.found(&FieldError{Field: fullName("", key), Problem: "is not a setting that a flag can have", Source: source})
			continue
		}
		r.from(key, source)
		r.found(settings[i].put(flags[key], source)...)
	}
}

// notTaken is the fault of an excluded setting of the library.
const notTaken = "is a setting of the library, and none of this program, which names its limits itself"

// A vocabulary is the variables of a program: their prefixes, and the variables with the keys of their settings.
type vocabulary struct{ prefixes, known, keys []string }

func vocabularyOf[C any](fields []Field[C]) *vocabulary {
	v := &vocabulary{prefixes: []string{Prefix}, known: []string{FileVariable}, keys: []string{""}}
	for i := range fields {
		f := &fields[i]
		if !slices.Contains(v.prefixes, f.prefix()) {
			v.prefixes = append(v.prefixes, f.prefix())
		}
		for _, name := range f.variables() {
			v.known, v.keys = append(v.known, name), append(v.keys, f.Key)
		}
	}
	return v
}

// owner names the program: by the first prefix of its own settings, or numathrottle.
func (v *vocabulary) owner() string {
	prefix := v.prefixes[min(1, len(v.prefixes)-1)]
	return strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(prefix, "_"), "_", "-"))
}

// pick returns the variables of environ that are meant for the program. It excludes those that Kubernetes sets in every pod of a namespace
// for a Service with such a name, such as numathrottle-redis: NUMATHROTTLE_REDIS_SERVICE_HOST, NUMATHROTTLE_REDIS_PORT,
// NUMATHROTTLE_REDIS_PORT_6379_TCP_ADDR and others.
func (v *vocabulary) pick(environ []string) map[string]string {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if _, ok := v.tail(name); ok {
			env[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		service, ok := strings.CutSuffix(name, "_SERVICE_HOST")
		if _, hasPort := env[service+"_SERVICE_PORT"]; !ok || !hasPort {
			continue
		}
		maps.DeleteFunc(env, func(name, _ string) bool {
			return name == service+"_PORT" || name == service+"_SERVICE_HOST" || name == service+"_SERVICE_PORT" ||
				strings.HasPrefix(name, service+"_SERVICE_PORT_") || strings.HasPrefix(name, service+"_PORT_")
		})
	}
	return env
}

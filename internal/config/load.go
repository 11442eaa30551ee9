package config

import (
	"fmt"
	"slices"
	"strings"
)

// FileVariable names the file with settings.
const FileVariable = Prefix + "CONFIG"

// notSettings are variables with the prefix that are not settings of a program.
var notSettings = []string{
	FileVariable,
	// Read by the module's own tests, whose processes inherit it.
	Prefix + "REQUIRE_STORES",
}

// Load sets c from the file in NUMATHROTTLE_CONFIG, if it is set, and from the variables of environ, which has the form of os.Environ. A
// variable wins over the file. It returns a *FieldError for each fault: those of the file by line, those of the variables in the order of
// fields, and unknown (or misspelt) variables by name. A setting with a fault keeps its value.
func Load[C any](fields []Field[C], environ []string, c *C) []error {
	return Read(fields, nil, environ, c).Faults()
}

// Read is Load for a program that needs the sources of settings, or that excludes some of the library's settings. without lists the keys of
// those; their faults say so instead of calling them unknown.
func Read[C any](fields []Field[C], without, environ []string, c *C) *Reading {
	starts, known := prefixes(fields), variables(fields)
	env := settingsOf(environ, starts, known)
	r := &Reading{}
	if name, ok := env[FileVariable]; ok {
		r.found(loadFile(fields, without, name, c, r.from)...)
	}
	for i := range fields {
		f := &fields[i]
		before := ""
		for _, name := range f.variables() {
			text, ok := env[name]
			switch {
			case !ok:
				continue
			case before != "":
				r.found(&FieldError{Field: f.Key, Problem: "is set by " + name + ", and by " + before, Allowed: "one of them"})
			default:
				r.from(f.Key, name)
				r.found(Split(f.put(c, text, name))...)
			}
			before = name
		}
	}
	for _, name := range sortedKeys(env) {
		if slices.Contains(known, name) || slices.Contains(notSettings, name) {
			continue
		}
		problem := "is not a variable of " + owner(fields)
		if slices.ContainsFunc(without, func(key string) bool { return Variable(key) == name }) {
			problem = notTaken
		}
		fault := &FieldError{Field: quoteKey(name), Problem: problem}
		if near, ok := nearestVariable(name, known, starts); ok {
			fault.Problem += fmt.Sprintf("; did you mean %s?", near)
			fault.meant = keyOf(fields, near)
		}
		r.found(fault)
	}
	return r
}

// keyOf returns the key of the setting that a variable sets.
func keyOf[C any](fields []Field[C], name string) string {
	i := slices.IndexFunc(fields, func(f Field[C]) bool { return slices.Contains(f.variables(), name) })
	if i < 0 {
		return ""
	}
	return fields[i].Key
}

// notTaken is the fault of an excluded setting of the library.
const notTaken = "is a setting of the library, and none of this program, which names its limits itself"

// owner names the program of the fields: by the prefix of its own settings, or numathrottle.
func owner[C any](fields []Field[C]) string {
	for _, p := range prefixes(fields) {
		if p != Prefix {
			return strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(p, "_"), "_", "-"))
		}
	}
	return strings.ToLower(strings.TrimSuffix(Prefix, "_"))
}

// prefixes returns the prefixes of all variables of fields.
func prefixes[C any](fields []Field[C]) []string {
	all := []string{Prefix}
	for i := range fields {
		if p := fields[i].prefix(); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// settingsOf returns the variables of environ that begin with one of the prefixes, in any case, or are meant to. It excludes those that
// Kubernetes sets for a Service of that name.
func settingsOf(environ, prefixes, known []string) map[string]string {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(upper, p) }) {
			env[name] = value
		} else if _, ok := meantBy(upper, prefixes, known); ok {
			env[name] = value
		}
	}
	for _, name := range sortedKeys(env) {
		if service, ok := strings.CutSuffix(name, "_SERVICE_HOST"); ok {
			dropService(env, service)
		}
	}
	return env
}

// dropService removes the variables that Kubernetes sets in every pod of a namespace for a Service such as numathrottle-redis:
// NUMATHROTTLE_REDIS_SERVICE_HOST, NUMATHROTTLE_REDIS_PORT, NUMATHROTTLE_REDIS_PORT_6379_TCP_ADDR and others.
func dropService(env map[string]string, service string) {
	if _, ok := env[service+"_SERVICE_PORT"]; !ok {
		return
	}
	for name := range env {
		if name == service+"_PORT" || name == service+"_SERVICE_HOST" || name == service+"_SERVICE_PORT" ||
			strings.HasPrefix(name, service+"_SERVICE_PORT_") || strings.HasPrefix(name, service+"_PORT_") {
			delete(env, name)
		}
	}
}

func variables[C any](fields []Field[C]) []string {
	names := []string{FileVariable}
	for i := range fields {
		names = append(names, fields[i].variables()...)
	}
	return names
}

func keys[C any](fields []Field[C]) []string {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Key
	}
	return names
}

func sortedKeys(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// didYouMean suggests the known name nearest to a wrong one, if one is near.
func didYouMean(name string, known []string) string {
	if near, ok := nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

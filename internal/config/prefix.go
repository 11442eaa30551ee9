package config

import (
	"slices"
	"strings"
)

// misspelt returns the variables of environ that were most likely meant for a setting, though they do not begin with
// one of the prefixes: NUMATHROTLE_MAX, NUMA_THROTTLE_MAX. Without a word such a variable would leave its setting at the default,
// which for a limit is none. Each name comes with the known variable that it resembles; empty for none.
//
// A name is misspelt when what stands in front differs from a prefix in at most two letters, underscores not
// counted. After a prefix of the program's own, which may be a common word, a known setting has to follow.
func misspelt(environ, prefixes, known []string) map[string]string {
	names := map[string]string{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		names[name] = ""
	}
	for _, name := range sortedKeys(names) {
		if service, ok := strings.CutSuffix(name, "_SERVICE_HOST"); ok {
			dropService(names, service)
		}
	}
	for name := range names {
		meant, ok := meantBy(strings.ToUpper(name), prefixes, known)
		if !ok {
			delete(names, name)
			continue
		}
		names[name] = meant
	}
	return names
}

// meantBy returns the known variable that a name in capitals resembles, if what it begins with resembles a prefix.
func meantBy(name string, prefixes, known []string) (meant string, ok bool) {
	if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return "", false // unknown settings behind a right prefix are told elsewhere
	}
	for _, p := range prefixes {
		for i := range name {
			if name[i] != '_' || !near(name[:i], p) {
				continue
			}
			variable := p + name[i+1:]
			if slices.Contains(known, variable) {
				return variable, true
			}
			if p == Prefix {
				ok = true
			}
		}
	}
	if !ok {
		return "", false
	}
	meant, _ = nearest(Prefix+name[strings.LastIndexByte(name, '_')+1:], known)
	return meant, true
}

// near tells whether a word in front of an underscore is one slip or two away from a prefix.
func near(head, prefix string) bool {
	plain := func(s string) string { return strings.ReplaceAll(s, "_", "") }
	head, prefix = plain(head), plain(prefix)
	slips := 1
	if len(prefix) >= len(Prefix)-1 {
		slips = 2
	}
	return distance(head, prefix) <= slips
}

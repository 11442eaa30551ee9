package config

import (
	"slices"
	"strings"
)

// meantBy reports whether a name in capitals was most likely meant for a setting, though it begins with none of the prefixes:
// NUMATHROTLE_MAX, NUMA_THROTTLE_MAX. If it were ignored, its setting would keep the default, which for a limit is none. meant is the known
// variable that it resembles; empty for none.
//
// The beginning may differ from the library's prefix in two letters, and from a shorter one in none; underscores do not count. After a
// program's own prefix, which may be a common word, a known setting must follow.
func meantBy(name string, prefixes, known []string) (meant string, ok bool) {
	if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return "", false // unknown settings behind a right prefix are reported elsewhere
	}
	for _, k := range known {
		if onlyLetters(name) == onlyLetters(k) { // NUMATHROTTLEMAX, NUMATHROTTLE-MAX
			return k, true
		}
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

// near reports whether a word in front of an underscore passes for a prefix.
func near(head, prefix string) bool {
	plain := func(s string) string { return strings.ReplaceAll(s, "_", "") }
	head, prefix = plain(head), plain(prefix)
	slips := 0
	if len(prefix) >= len(Prefix)-1 {
		slips = 2
	}
	return distance(head, prefix) <= slips
}

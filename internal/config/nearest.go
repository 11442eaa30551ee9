package config

import (
	"slices"
	"strings"
	"unicode"
)

// DidYouMean suggests the known name that a wrong one was most likely meant for, as a suffix of an error: "; did you mean max?". Empty:
// none is near. A prefix of a known name suffices.
func DidYouMean(name string, known []string) string {
	if near := didYouMean(name, known); near != "" {
		return near
	}
	i := slices.IndexFunc(known, func(k string) bool { return len(letters(name)) >= 3 && strings.HasPrefix(letters(k), letters(name)) })
	if i < 0 {
		return ""
	}
	return "; did you mean " + known[i] + "?"
}

// didYouMean is DidYouMean without prefixes of known names.
func didYouMean(name string, known []string) string {
	if i := nearest(name, known); i >= 0 {
		return "; did you mean " + known[i] + "?"
	}
	return ""
}

// nearest returns the index of the known name most likely meant by another one; -1 for none. It differs in at most two letters, and in at
// most a third of them; otherwise the name begins with it, as store_url does with store. Case and punctuation do not count.
func nearest(name string, known []string) int {
	const longest = 64
	word := letters(name)
	if len(word) > longest {
		return -1
	}
	best, slips := -1, min(2, len(word)/3)+1
	for i, k := range known {
		if d := distance(word, letters(k)); d < slips {
			best, slips = i, d
		}
	}
	if best >= 0 {
		return best
	}
	// A longer form of a known name, the longest one first.
	longer := 2
	for i, k := range known {
		if l := letters(k); len(l) > longer && strings.HasPrefix(word, l) {
			best, longer = i, len(l)
		}
	}
	return best
}

// tail returns the part of a variable behind its prefix. ok is false for a variable that is not meant for the program. Misspelt names are:
// NUMATHROTLE_MAX, NUMA_THROTTLE_MAX. If they were ignored, their setting would keep the default, which for a limit is none.
//
// The beginning may differ from the library's prefix in two letters, and from a shorter one in none; case and underscores do not count.
// After a program's own prefix, which may be a common word, a known setting must follow.
func (v *vocabulary) tail(name string) (tail string, ok bool) {
	name = strings.ToUpper(name)
	for _, p := range v.prefixes {
		if tail, ok := strings.CutPrefix(name, p); ok {
			return tail, true
		}
	}
	for _, k := range v.known {
		if onlyLetters(name) == onlyLetters(k) { // NUMATHROTTLEMAX, NUMATHROTTLE-MAX
			return v.tail(k)
		}
	}
	for _, p := range v.prefixes {
		for i := range name {
			if name[i] == '_' && isNear(name[:i], p) {
				tail, ok = name[i+1:], ok || p == Prefix
				if slices.Contains(v.known, p+tail) {
					return tail, true
				}
			}
		}
	}
	return tail, ok
}

// isNear reports whether a word in front of an underscore passes for a prefix.
func isNear(head, prefix string) bool {
	slips := 0
	if len(prefix) >= len(Prefix)-1 {
		slips = 2
	}
	return distance(onlyLetters(head), onlyLetters(prefix)) <= slips
}

// nearest returns the index of the known variable that another one was most likely meant for; -1 for none. The same setting under another
// prefix comes first: the suggestion for HTTP_SINK_MAX is NUMATHROTTLE_MAX. A similar one under another prefix comes last.
func (v *vocabulary) nearest(name string) int {
	tails := make([]string, len(v.known))
	for i, k := range v.known {
		tails[i], _ = v.tail(k)
	}
	tail, _ := v.tail(name)
	if i := slices.IndexFunc(tails, func(t string) bool { return letters(t) == letters(tail) }); i >= 0 {
		return i
	}
	if i := nearest(name, v.known); i >= 0 {
		return i
	}
	return nearest(tail, tails)
}

// onlyLetters returns the letters and digits of a name in capitals.
func onlyLetters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, strings.ToUpper(name))
}

// letters returns the part of a name that counts in a comparison.
func letters(name string) string {
	return onlyLetters(strings.TrimPrefix(strings.ToUpper(name), Prefix))
}

// distance is the number of insertions, deletions and replacements of letters, and swaps of neighbours, that turn a into b: the
// Damerau-Levenshtein distance in which no letter is changed twice.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}

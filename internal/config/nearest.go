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

// nearest returns the known name most likely meant by another one. It differs in at most two letters, and in at most a third of them;
// otherwise the name begins with it, as store_url does with store. Case and punctuation do not count.
func nearest(name string, known []string) (string, bool) {
	const longest = 64
	word := letters(name)
	if len(word) > longest {
		return "", false
	}
	best, bestDistance := "", 0
	for _, k := range known {
		d := distance(word, letters(k))
		if best == "" || d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best != "" && bestDistance <= min(2, len(word)/3) {
		return best, true
	}
	// A longer form of a known name, the longest one first.
	best = ""
	for _, k := range known {
		if l := letters(k); len(l) >= 3 && strings.HasPrefix(word, l) && len(l) > len(letters(best)) {
			best = k
		}
	}
	return best, best != ""
}

// nearestVariable is nearest for a variable. The same setting under another prefix comes first: the suggestion for HTTP_SINK_MAX is
// NUMATHROTTLE_MAX. A similar one under another prefix comes last.
func nearestVariable(name string, known, prefixes []string) (string, bool) {
	tails := make([]string, len(known))
	for i, k := range known {
		tails[i] = tail(k, prefixes)
	}
	word := tail(name, prefixes)
	if meant, ok := meantBy(strings.ToUpper(name), prefixes, known); ok && meant != "" {
		return meant, true
	}
	if i := slices.IndexFunc(tails, func(t string) bool { return letters(t) == letters(word) }); i >= 0 {
		return known[i], true
	}
	if near, ok := nearest(name, known); ok {
		return near, true
	}
	if near, ok := nearest(word, tails); ok {
		return known[slices.Index(tails, near)], true
	}
	return "", false
}

// tail returns the name of a variable without its prefix.
func tail(name string, prefixes []string) string {
	upper := strings.ToUpper(name)
	for _, p := range prefixes {
		if strings.HasPrefix(upper, p) {
			return upper[len(p):]
		}
	}
	return upper
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

package config

import (
	"strings"
	"unicode"
)

// nearest returns the known name that is most likely meant by another one: that
// which differs in at most two letters, and in no more than a third of them, or
// else that which the name begins with, as store_url does with store. Case and
// punctuation do not count.
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

// letters returns what of a name counts in a comparison.
func letters(name string) string {
	name = strings.TrimPrefix(strings.ToUpper(name), Prefix)
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// distance is the number of letters to insert, delete or replace to make b of a
// (Levenshtein's distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// aRange is a word like 3..5 or retryafter=3s.. with the name, and both ends. times is a word like 3..5*4.
var (
	aRange = regexp.MustCompile(`^(\w+=)?(.*)\.\.(.*)$`)
	times  = regexp.MustCompile(`^(.+)\*(\d+)$`)
)

// Fits reports whether words are as wanted: the same, or in a range.
func Fits(want, got []string) bool {
	want, got = spread(want), spread(got)
	for i, w := range want {
		m := aRange.FindStringSubmatch(w)
		switch {
		case w == "...":
			return true
		case i >= len(got), m == nil && w != got[i]:
			return false
		case m != nil && !inRange(m, got[i]):
			return false
		}
	}
	return len(want) == len(got)
}

func inRange(m []string, word string) bool {
	if len(word) < len(m[1]) || word[:len(m[1])] != m[1] {
		return false
	}
	is, ok := figure(word[len(m[1]):])
	least, lower := figure(m[2])
	most, upper := figure(m[3])
	return ok && (!lower || is >= least) && (!upper || is <= most)
}

// spread repeats words that are counted.
func spread(words []string) (all []string) {
	for _, w := range words {
		m := times.FindStringSubmatch(w)
		if m == nil {
			all = append(all, w)
			continue
		}
		n, _ := strconv.Atoi(m[2]) // the expression has digits only
		all = append(all, slices.Repeat([]string{m[1]}, n)...)
	}
	return all
}

// counted replaces words that are repeated, other than figures, by one with their number.
func counted(words []string) []string {
	for i := 0; i < len(words); i++ {
		n := 1
		for i+n < len(words) && words[i+n] == words[i] {
			n++
		}
		if _, isFigure := figure(words[i]); n > 1 && !isFigure {
			words = slices.Replace(words, i, i+n, fmt.Sprintf("%s*%d", words[i], n))
		}
	}
	return words
}

// figure returns the number in a word, or the seconds of a time.
func figure(word string) (f float64, ok bool) {
	if d, err := time.ParseDuration(word); err == nil {
		return d.Seconds(), true
	}
	f, err := strconv.ParseFloat(word, 64)
	return f, err == nil
}

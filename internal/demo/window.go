package main

import (
	"slices"
	"time"
)

// maxWindow returns the largest number of the moments that lie within any window
// of length d (half open), and where that window begins. moments need not be sorted.
func maxWindow(moments []time.Time, d time.Duration) (most int, at time.Time) {
	sorted := slices.Clone(moments)
	slices.SortFunc(sorted, time.Time.Compare)
	first := 0
	for i, m := range sorted {
		for m.Sub(sorted[first]) >= d {
			first++
		}
		if n := i - first + 1; n > most {
			most, at = n, sorted[first]
		}
	}
	return most, at
}

// countBetween returns how many of the moments are in [from, to).
func countBetween(moments []time.Time, from, to time.Time) (n int) {
	for _, m := range moments {
		if !m.Before(from) && m.Before(to) {
			n++
		}
	}
	return n
}

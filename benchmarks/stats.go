package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// median returns the middle value, of two the lower one; 0 of nothing.
func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

// quantile returns the smallest value that at least the fraction q of the values
// does not exceed; the zero value of nothing.
func quantile[T cmp.Ordered](values []T, q float64) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	i := int(q * float64(len(sorted)))
	if float64(i) == q*float64(len(sorted)) {
		i--
	}
	return sorted[max(0, min(i, len(sorted)-1))]
}

// ratios returns a over b, pair by pair.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// uncertainty returns by how much the mean of values, drawn independently, is off at most, in 95 of 100 cases: 1.96 standard
// errors, each of which is the sample's standard deviation over the root of its size. It is infinite for less than two.
func uncertainty(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return math.Inf(1)
	}
	var mean, squares float64
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return 1.96 * math.Sqrt(squares/(n-1)/n)
}

// worstSecond returns the most of the moments, which are sorted, that lie in
// any window of a second, half open.
func worstSecond(moments []time.Duration) (most int) {
	first := 0
	for i, m := range moments {
		for m-moments[first] >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// between counts the moments, which are sorted, in [from, to).
func between(moments []time.Duration, from, to time.Duration) int {
	a, _ := slices.BinarySearch(moments, from)
	b, _ := slices.BinarySearch(moments, to)
	return b - a
}

// reached returns how long after from the moments, which are sorted, have the
// rate per second: the first time at which both the next quarter of a second and
// the next whole one hold it. ok is false if they do not by the time to.
func reached(moments []time.Duration, from, to time.Duration, rate float64) (after time.Duration, ok bool) {
	const step = 10 * time.Millisecond
	holds := func(t, d time.Duration) bool {
		return float64(between(moments, t, t+d)) >= rate*d.Seconds()
	}
	for t := from; t+time.Second <= to; t += step {
		if holds(t, time.Second/4) && holds(t, time.Second) {
			return t - from, true
		}
	}
	return to - from, false
}

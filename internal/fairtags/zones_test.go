package fairtags_test

import "math"

// What follows stands for the servers in FoundationDB's tests, whose health says what limits a tag. In the product each
// processor finds that out by itself, from what the service makes of its calls: see package ceiling.

// A serverHealth is a part of the called service that can be in a bad state by itself.
type serverHealth struct {
	// Calls is how many of the tag's calls it takes, per second.
	Calls float64
	// Ratio is what of the present rate it can take: above 0, and +Inf while nothing is wrong.
	Ratio float64
}

const (
	// witnesses is how many zones a tag must have for the worst of them to be ignored.
	witnesses = 3
	// counts is the part of a tag's calls that a zone must take to count.
	counts = 0.01
)

// limitingOf returns the most that a tag may use, in the unit of its present rate over the whole pool, so that the worst of
// its zones can take it: +Inf while nothing limits it. A zone that takes less than 1 % of the tag's calls does not
// count, and of three or more that count, the worst is ignored: what one of many refuses may be its own fault.
func limitingOf(present float64, zones []serverHealth) float64 {
	calls := 0.0
	for _, z := range zones {
		calls += z.Calls
	}
	worst, second, n := math.Inf(1), math.Inf(1), 0
	for _, z := range zones {
		if z.Calls <= 0 || z.Calls < counts*calls {
			continue
		}
		n++
		switch ratio := max(z.Ratio, 0); {
		case ratio < worst:
			worst, second = ratio, worst
		case ratio < second:
			second = ratio
		}
	}
	if n >= witnesses {
		worst = second
	}
	if math.IsInf(worst, 1) {
		return worst
	}
	return present * worst
}

package fairtags

import "math"

// A Zone is a part of the called service that can be in a bad state by itself, such as a destination or, where those are not
// known, a processor.
type Zone struct {
	// Calls is how many of the tag's calls it takes, per second.
	Calls float64
	// Ratio is what of the present rate it can take: above 0, and +Inf while nothing is wrong. See Ratio.
	Ratio float64
}

const (
	// tolerance is the part of the calls that a zone may refuse without being limited.
	tolerance = 0.02
	// witnesses is how many zones a tag must have for the worst of them to be ignored.
	witnesses = 3
	// counts is the part of a tag's calls that a zone must take to count.
	counts = 0.01
	// mild is the part of refused calls up to which a zone is cut to mildCut. cut is what is left otherwise, and how far one look
	// at what was accepted is trusted.
	mild, mildCut, cut = 0.1, 0.85, 0.7
)

// Ratio returns what a zone can take of the present rate, by how many calls per second, of whatever tags, it accepted and
// refused. It is +Inf while at most 2 % were refused, and else what a cut of an adaptive limit leaves: 0.85 where at most
// a tenth was refused, 0.7 of what was accepted otherwise, 0.49 at the least.
func Ratio(accepted, refused float64) float64 {
	calls := rate(accepted) + rate(refused)
	switch part := rate(refused) / calls; {
	case calls == 0 || part <= tolerance:
		return math.Inf(1)
	case part <= mild:
		return mildCut
	default:
		return cut * max(1-part, cut)
	}
}

// Limiting returns the most that a tag may use, in the unit of its present rate over the whole pool, so that the worst of
// its zones can take it: +Inf while nothing limits it. A zone that takes less than 1 % of the tag's calls does not
// count, and of three or more that count, the worst is ignored: what one of many refuses may be its own fault.
func Limiting(present float64, zones []Zone) float64 {
	calls := 0.0
	for _, z := range zones {
		calls += rate(z.Calls)
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
	return rate(present) * worst
}

// Culprit returns the index of the tag that made more than half of the calls that a zone refused: it is limited alone. It is
// -1 when there is none: then it is the pool that uses too much, and its ceiling falls.
func Culprit(refused []float64) int {
	sum, most := 0.0, -1
	for i, r := range refused {
		sum += rate(r)
		if most < 0 || rate(r) > rate(refused[most]) {
			most = i
		}
	}
	if most < 0 || rate(refused[most]) <= sum/2 {
		return -1
	}
	return most
}

package ceiling

import (
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// Agree returns the limit that the called service announces to a pool of so many processors, from the limits announced to each; the zero Rate:
// none that is agreed. Of three processors and more the lowest report is ignored, so that two must report; with fewer, the lowest counts. first
// is the limit before anything was announced; the zero Rate: the configured one. The only report of three processors and more counts above it.
func Agree(reports []Rate, processors int, first Rate) Rate {
	slices.SortFunc(reports, func(a, b Rate) int {
		switch {
		case a.Below(b):
			return -1
		case b.Below(a):
			return 1
		}
		return 0
	})
	switch n := len(reports); {
	case n == 0, n == 1 && processors >= backoff.Witnesses && (first.Max == 0 || reports[0].Below(first)):
		return Rate{}
	case n == 1 || processors < backoff.Witnesses:
		return reports[0]
	}
	return reports[1]
}

// follow lowers a limit to the one that the pool follows; before that is known, to First.
func (l *Law) follow(limit Rate) Rate {
	a := l.Announced
	if a.Max == 0 {
		a = Rate{l.First, l.Config.Limit.Per}
	}
	if a.Max > 0 && a.Below(limit) {
		return a
	}
	return limit
}

package limit

import (
	"math"
	"time"
)

// Usage is what a limiter has used since it was made. All fields but Waiting, Empty, Paused and
// Served are running totals, so that only differences mean something.
type Usage struct {
	// Used counts the tokens that were granted, less those that were given back, and
	// Offered those that the share has earned.
	Used, Offered float64
	// Granted and Refused count tokens that were granted, whatever became of them,
	// and refused: traffic is when one of them moves.
	Granted, Refused int64
	// Waiting tells that somebody waits at this moment, and Empty that less than a
	// token is at hand.
	Waiting, Empty bool
	// Paused tells that nothing is granted at this moment, because of a pause.
	Paused bool
	// Served is what the called service made of the calls, as far as it was reported.
	Served Served
}

// Since returns what was used and what could have been used since an earlier Usage, d ago.
// Both are rates in 1e-9 of most tokens per period: used rounded up, offered rounded down.
//
// A call is traffic, though it was refused or gave everything back: used is at least 1
// then. Where callers lack tokens everything offered counts as used, for what is left
// is less than they need, and no want of use.
func (u Usage) Since(before Usage, d time.Duration, most int, per time.Duration) (used, offered int64) {
	if d <= 0 || most <= 0 || per <= 0 {
		return 0, 0
	}
	whole := float64(most) * float64(d) / float64(per) / float64(WholeShare)
	clamp := func(rate float64) int64 { return int64(max(0, min(rate, float64(MaxShare)))) }
	if !u.Paused {
		offered = clamp(math.Floor((u.Offered - before.Offered) / whole))
	}
	used = clamp(math.Ceil((u.Used - before.Used) / whole))
	refused := u.Refused != before.Refused
	if u.Waiting || refused || u.Granted != before.Granted {
		used = max(used, 1)
	}
	if u.Waiting || refused && u.Empty {
		used = max(used, offered)
	}
	return used, offered
}

// Served is what a Throttle was told by Permit.Report, for the pool's law.
type Served struct {
	// Cuts is that of the lease under which the calls were granted that were refused.
	Cuts uint64
	// Accepted, Refused and Overloaded are rates of the last second, or of the last few calls, in
	// tokens per second. A refusal counts only if its call was granted since the pool's last cut was in
	// force everywhere (Lease.Settling).
	Accepted, Refused, Overloaded float64
	// Active tells that calls were reported in the last ten seconds.
	Active bool
}

// A Report is what a limiter tells its pool at one moment.
type Report struct {
	// Demand is the fraction of the limit in force (Lease.Ceiling), in 1e-9, that this
	// processor would use if it could: what was used, waits and was refused over the window,
	// plus debt. It is WholeShare when callers lacked tokens in the last half of the window
	// and most of what was earned in it was used, and 0 when nothing happened in it.
	// With a hard limit it is at least the share that grants the largest draw that lacked
	// one, unless it is 0.
	Demand int64
	// Debt is how long the share in force takes to earn what was used above estimates and is
	// owed. 0: nothing is owed. A limiter that leaves keeps its claim for so long, so that the
	// others do not use what it has used already. Where tokens are issued it is 0: nobody can
	// keep a claim, and what is owed is forgotten.
	Debt time.Duration
	// InUse is the share that calls under way use, in 1e-9, rounded up: the smallest that
	// would allow them all. It may be above the share in force, which has fallen since. 0 for
	// what is used at once, as tokens are.
	InUse int64
	// Usage is running totals, of which a ramp sees whether the limit is used.
	Usage Usage
	// Waiting counts the callers that wait, and Throttled says why a draw of one token would have to
	// wait; empty: it would not, or there is no demand. Operators are told. With a window of 0 there is neither.
	// OfTag: it is the quota of Tag, or its pause, that holds most callers back; Tag is empty for all tags
	// without a quota of their own.
	Waiting   int
	Throttled Reason
	OfTag     bool
	Tag       string
	// Hold says more of what holds callers back.
	Hold Hold
}

// A Hold details, for operators, the reason that holds callers back.
type Hold struct {
	// Callers counts those that it holds, and Longest is how long the first of them has waited; 0: not known.
	Callers int
	Longest time.Duration
	// Left is how long it goes on, of a budget that is spent; 0: not known.
	Left time.Duration
	// Rate is the tag's total in tokens per second where that holds it; 0: not known. Blocked says that the total is 0.
	Rate    float64
	Blocked bool
	// Owed is how long the share takes to earn what calls used above what they drew; 0: nothing, or not known.
	Owed time.Duration
}

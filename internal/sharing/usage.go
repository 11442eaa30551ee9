package sharing

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Usage says how much a limiter has used since it was made. All fields except Waiting, Empty, Paused and Served are running totals, so only
// differences mean something.
type Usage struct {
	// Used counts the tokens granted, less those given back. Offered counts the tokens that the share has earned.
	Used, Offered float64
	// Granted counts the tokens granted, even if given back later, and Refused the tokens refused. There was traffic if one of them
	// changes.
	Granted, Refused int64
	// Waiting says that a caller waits now, and Empty that less than a token is available.
	Waiting, Empty bool
	// Paused says that nothing is granted now, because of a pause.
	Paused bool
	// Served is the reported outcome of the calls at the called service.
	Served Served
}

// Since returns how much was used and offered since an earlier Usage, d ago. Both are rates in 1e-9 of most tokens per period: used is
// rounded up, offered rounded down.
//
// A call counts as traffic even if it was refused or gave everything back: used is then at least 1. If callers lack tokens, everything
// offered counts as used: the rest is less than they need and shows no lack of demand.
func (u Usage) Since(before Usage, d time.Duration, most int, per time.Duration) (used, offered int64) {
	if d <= 0 || most <= 0 || per <= 0 {
		return 0, 0
	}
	whole := float64(most) * float64(d) / float64(per) / float64(limit.WholeShare)
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

// Served sums up the outcomes passed to Permit.Report, for the pool's adaptive law.
type Served struct {
	// Cuts is Lease.Cuts of the lease under which the refused calls were granted.
	Cuts uint64
	// Accepted, Refused and Overloaded are rates of the last second or of the last few calls, in tokens per second. A refusal counts only
	// if its call was granted after the pool's last cut was in force everywhere (Lease.Settling).
	Accepted, Refused, Overloaded float64
	// Active says that calls were reported in the last ten seconds.
	Active bool
}

// A Report is a limiter's report to its pool at one moment.
type Report struct {
	// Demand is the fraction of the limit in force (Lease.Ceiling), in 1e-9, that this processor would use if it could: the tokens used,
	// waiting and refused over the window, plus debt. It is WholeShare if callers lacked tokens in the last half of the window and most of
	// the tokens earned in the window were used. It is 0 if nothing happened in the window. With a hard limit, unless it is 0, it is at
	// least the share that grants the largest draw that lacked tokens.
	Demand int64
	// Needs are the smallest and the largest share that a waiting draw needs which the even share of the processor can never grant; 0: there
	// is none. Only a hard limit has such draws.
	Needs [2]int64
	// Debt is how long the share in force takes to earn the usage above estimates that is still owed; 0 if nothing is owed. A limiter that
	// leaves keeps its claim for that time, so that the others do not use the same tokens again. It is 0 if tokens are issued: nobody can
	// keep a claim then, and the debt is dropped.
	Debt time.Duration
	// InUse is the share that calls under way use, in 1e-9, rounded up: the smallest that would allow them all. It may exceed the share in
	// force, if that has fallen since. It is 0 for things used up at once, such as tokens.
	InUse int64
	// Usage holds running totals, which show a ramp whether the limit is used.
	Usage Usage
	// Waiting counts the waiting callers. Throttled says why a draw of one token would have to wait; it is empty if it would not, or
	// without demand. Both are for operators, and zero with a window of 0. OfTag says that the quota or the pause of Tag holds most callers
	// back; Tag is empty for all tags without a quota of their own.
	Waiting   int
	Throttled limit.Reason
	OfTag     bool
	Tag       string
	// Hold gives details about why callers are held back.
	Hold Hold
	// Announced is the limit that the called service announced to this processor lately, in tokens per period of the configured limit; 0: none.
	Announced int64
}

// A Hold details, for operators, the reason that holds callers back.
type Hold struct {
	// Callers counts the callers held back, and Longest is how long the first has waited; 0 means unknown.
	Callers int
	Longest time.Duration
	// Tags counts the tags that hold them back for the reason; 0 means unknown.
	Tags int
	// Left is how long a spent budget still holds them back; 0 means unknown.
	Left time.Duration
	// Rate is the tag's total in tokens per second if that holds them back; 0 means unknown. Blocked says that the total is 0.
	Rate    float64
	Blocked bool
	// Owed is how long the share takes to earn the usage above what calls drew; 0 means nothing or unknown.
	Owed time.Duration
}

// Never is a time, in nanoseconds, that no clock reaches.
const Never = math.MaxInt64

// MaxShare is the largest possible share: an override may raise a limit to 64 times the value configured at this processor.
const MaxShare int64 = 64 * limit.WholeShare

// A Refusal says why a draw was refused.
type Refusal struct {
	Reason limit.Reason
	// Cost is the number of tokens asked for.
	Cost int
	// RetryAfter is how long the tokens would have taken; 0 if unknown. Frozen is how long the store's freeze goes on.
	RetryAfter, Frozen time.Duration
	// Fallback says that a budget of the tag is spent, and that its messages go to a fallback then.
	Fallback bool
}

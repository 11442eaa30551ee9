package throttle

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
)

// A Limit is the number of tokens that a pool may use in a period. The zero Limit
// is no limit.
type Limit struct {
	// Max is the number of tokens per Per, over the whole pool: 0 to 1e9.
	// 0 means no limit.
	Max int
	// Per is the period: 1 ms to 31 days. Defaults to one second.
	Per time.Duration
	// Burst is how many tokens the whole pool can save up: 0 to 1e9. Defaults to
	// what Max earns in 100 ms, at least 1.
	Burst int
	// Hard promises at most Max tokens in any window of length Per, over the whole pool, regardless of the burst, the number of processors
	// and changes of shares. It is for services that ban callers who exceed the limit. Without it a window may see the burst, and a token
	// for each processor, on top of Max.
	//
	// It costs part of the limit: the pool is granted (Max + 1 - Burst) / 1.0833 per Per; see Rate. Burst is at most Max then. It defaults
	// to a tenth of Max, at most the larger of 100 and 100 ms worth, and at least the smaller of 8 and half of Max. It bounds the number of
	// processors that can draw at a time and the cost of a draw. A processor grants n tokens at once only while its share of Burst is at
	// least n, and nothing while that is below 1 (ReasonShareTooSmall). So Burst should be well above the number of busy processors times
	// the largest cost.
	//
	// Tokens given back late are not credited, so it is better to estimate costs closely than to settle them down. The promise covers
	// neither use above a permit's cost nor a window in which an override lowers the limit. An override never raises a hard limit:
	// processors of one pool use the same one. Without the store nothing may be used: the processors of the pool need consensus.Stop, and a
	// degraded share (Lease.Degraded) grants nothing.
	Hard bool

	// Min and RampUpDuration let the limit ramp up: from Min to Max tokens per Per in RampUpDuration at the earliest, as one ceiling for
	// the whole pool. Either one turns the ramp on. Min is 1 to Max, and with Hard at least Max / Burst; it defaults to 1. RampUpDuration
	// is 1 ms to 31 days; it defaults to one second.
	Min            int
	RampUpDuration time.Duration
	// Mode says when the ceiling rises: RampScheduled, RampRelaxed (the default), RampOnlyIfUsed or RampGoBackN. Only with a ramp, like the next two.
	Mode Mode
	// ResumedRampUp lets an empty pool continue its ramp if the first processor is back within TTL. Without it such a pool starts from Min.
	ResumedRampUp bool
	// TTL is the longest silence of a pool after which its ramp still counts: 1 s to
	// 24 h. Defaults to 180 s.
	TTL time.Duration
	// Adaptive lets the limit follow the capacity of the called service. When calls are reported as refused (Permit.Report), the limit in
	// force falls below Max, and rises again while they are not. It is never above Max, nor above a ramp's ceiling. With WithQuotas a tag
	// that makes more than half of the refused calls is slowed down alone. See docs/limits.md.
	Adaptive bool
	// AdaptiveMin is how much stays usable however many calls are refused, in tokens per Per over the whole pool. It is 1 to Max, and with
	// Hard at least Max / Burst. Defaults to a hundredth of Max, or the least possible. With Hard it always leaves each processor a bucket
	// that is worth a token. Only with Adaptive.
	AdaptiveMin int
	// Strict promises at most one token every Per / Max, and no saved-up bursts, over the whole pool. Each token is a slot of its own,
	// which the store issues and keeps apart on its clock. A draw of n takes n slots, and is granted at the last. A slot not used within a
	// tenth of Per / Max, at least 250 ms and at most 2.5 s, is void. A slot drawn and not used is void too. Without the store nothing is
	// granted.
	//
	// It needs a Sharer that is a *consensus.Member; without any Sharer it holds within the process. It allows no Hard, no ramp, no Burst
	// above 1, and at most 1,000,000 tokens per second. A limit too low to be divided is issued in the same way by itself.
	Strict bool
	// MaxReserved is how many slots the pool may reserve ahead of the one that is due, where tokens are issued: 0 to 1000. With 0, the
	// first caller to ask when a slot is due gets it, and the store is asked at each slot. With more, callers know their slot in advance
	// and several slots take one request, but the slots reserved by a dying processor are lost. After a store has lost its state, no slot
	// comes for so many spacings longer. Defaults to 0. A limit that is not strict still reserves one for each waiting processor, unless
	// that is more than a few seconds ahead.
	MaxReserved int

	// MaxDebt bounds the debt of calls that used more than they drew (Permit.Settle, Charge): no more than the whole limit earns in
	// MaxDebt, 1 ms to 31 days. Use beyond it is dropped, logged and counted (Status.DebtDropped), so that one wrong number does not stop a
	// limit for months. It bounds the debt of each processor, and of each tag by the earnings of its quota. Defaults to three times Per,
	// and at least ten minutes. See also Throttle.ForgiveDebt.
	MaxDebt time.Duration

	following following
}

// Bounds of a Limit's fields.
const (
	maxTokens = 1_000_000_000
	minPer    = time.Millisecond
	maxPer    = 31 * 24 * time.Hour
)

// Validate returns an error that names every field out of bounds, or nil.
func (l Limit) Validate() error {
	var errs []error
	bad := func(field string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("limit: %s is %v, allowed: %s", field, value, allowed))
	}
	if l.Max < 0 || l.Max > maxTokens {
		bad("max", l.Max, "0 (no limit) to 1000000000")
	}
	if l.Per != 0 && (l.Per < minPer || l.Per > maxPer) {
		bad("per", l.Per, "1ms to 744h")
	}
	if l.Burst < 0 || l.Burst > maxTokens {
		bad("burst", l.Burst, "0 (100 ms worth of max) to 1000000000")
	}
	if l.Hard && l.Max > 0 && l.Burst > l.Max {
		bad("burst", l.Burst, fmt.Sprintf("at most max with hard, which is %d", l.Max))
	}
	if l.MaxDebt != 0 && (l.MaxDebt < minPer || l.MaxDebt > maxPer) {
		bad("maxDebt", l.MaxDebt, "1ms to 744h")
	}
	l.checkStrict(bad)
	l.checkAdaptive(bad)
	if len(errs) == 0 && l.Max > int(l.withDefaults().Per) { // above one per nanosecond
		bad("max per "+l.withDefaults().Per.String(), l.Max, "at most 1000000000 tokens per second")
	}
	return errors.Join(append(errs, l.validateRamp()...)...)
}

// withDefaults returns the limit with every default filled in.
func (l Limit) withDefaults() Limit {
	if l.Per == 0 {
		l.Per = time.Second
	}
	switch {
	case l.Burst > 0 || l.Max <= 0:
	case l.Hard:
		l.Burst = bucket.HardBurst(l.Max, l.Per)
	case l.Strict:
		l.Burst = 1
	default:
		l.Burst = max(1, l.earnedIn(100*time.Millisecond))
	}
	return l.withRampDefaults().withAdaptiveDefaults()
}

// earnedIn returns how many tokens Max earns in d. Per must be set.
func (l Limit) earnedIn(d time.Duration) int {
	return bucket.EarnedIn(d, l.Max, l.Per)
}

// Rate returns the long-run rate of the whole pool in tokens per second: 0 for no limit, Max per Per, or less for a hard limit. The limit
// must be valid.
func (l Limit) Rate() float64 {
	l = l.withDefaults()
	return l.perPeriod() / l.Per.Seconds()
}

// perPeriod returns the tokens granted per Per in the long run. l has its defaults filled in.
func (l Limit) perPeriod() float64 {
	return l.bucket().PerPeriod()
}

// bucket returns the limit in the form of package bucket. l has its defaults filled in.
func (l Limit) bucket() bucket.Config {
	return bucket.Config{Max: l.Max, Per: l.Per, Burst: l.Burst, Hard: l.Hard, Debt: l.owable()}
}

// owable returns the largest debt in tokens: at least one. l has its defaults filled in.
func (l Limit) owable() int {
	return int(min(max(math.Ceil(float64(l.Max)*float64(l.maxDebt())/float64(l.Per)), 1), math.MaxInt32<<20))
}

// leastDebt is the lower bound of the default MaxDebt: calls that cost a minute's worth are common where Per is a second.
const leastDebt = 10 * time.Minute

// maxDebt returns MaxDebt, or its default. l has its other defaults filled in.
func (l Limit) maxDebt() time.Duration {
	if l.MaxDebt > 0 {
		return l.MaxDebt
	}
	return max(3*l.Per, leastDebt)
}

// maxCost returns the largest cost of one draw. A larger one would be above the limit by itself or, with a hard limit, never granted at
// once.
func (l Limit) maxCost() int {
	return l.bucket().MaxCost()
}

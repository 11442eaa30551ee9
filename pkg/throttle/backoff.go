package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// This file handles refusals for a Throttle with an adaptive limit. It reports them to its sharer, which lowers the ceiling of the whole
// pool (sharing.Served). That takes a moment, and one processor alone lowers nothing where there are others. So a Throttle also reduces its
// own use at once to a part of its share, by the same law (ceiling.Part). Without a pool, and while the store is lost, that is all there
// is. A cut by the pool is based on more knowledge, so the Throttle then starts over (Lease.Cuts).
//
// While tokens are issued one by one, only the pool's law holds.

// A localBackoff holds what an adaptive Throttle knows of refusals. The Throttle's lock guards it.
type localBackoff struct {
	config ceiling.Config
	leased limit.Lease // as leased by the sharer
	pooled bool        // the sharer moves the pool's ceiling

	pool     backoff.Tally // reported to the pool
	poolFrom start
	part     ceiling.Part // of the share, used by the Throttle
	partFrom start
	reported backoff.Totals

	// Use of the share. flow is the usage at time at, where the next measurement starts; used and offered are of the last one.
	flow          sharing.Usage
	at            int64
	used, offered int64

	timer sharing.Timer
}

// A start is when a tally began. The tally counts refusals of calls granted from then on. It also says when a call was granted: one of the
// two that is not known is never.
type start struct {
	position int64 // in the total of grants
	time     int64
}

// before reports whether a call was granted since the tally began.
func (s start) before(call start) bool { return s.position <= call.position && s.time <= call.time }

// grantedAt returns when a call was granted whose tokens were drawn then; the zero Time is now.
func (t *rateLimiter) grantedAt(then time.Time) start {
	if then.IsZero() {
		return start{never, never}
	}
	return start{never, t.gate.At(then)}
}

// startAt returns the start of a tally that begins now.
func (t *rateLimiter) startAt(now int64) start { return start{t.bucket.Granted(), now} }

// Times of a Throttle's own steps.
const (
	// backoffEvery is the time between two steps while only a part of the share is used.
	backoffEvery = 100 * time.Millisecond
	// usedEvery is how often a step measures whether the share is used.
	usedEvery = 500 * time.Millisecond
)

// beginBackoff prepares an adaptive limit.
func (t *rateLimiter) beginBackoff() {
	if !t.limit.Adapts() {
		return
	}
	_, static := t.sharer.(*static)
	b := &localBackoff{config: t.limit.ceilingConfig(), pooled: t.sharer != nil && !static}
	t.backoff = b
	b.timer = t.gate.AfterFunc(centuries, t.onBackoff)
}

// totals returns n tokens under the outcome of their call; zero for an outcome of a later release.
func (o Outcome) totals(n int) (calls backoff.Totals) {
	switch o {
	case OutcomeAccepted:
		calls.Accepted = int64(n)
	case OutcomeRefused:
		calls.Refused = int64(n)
	case OutcomeOverloaded:
		calls.Overloaded = int64(n)
	}
	return calls
}

// report books the outcome of a call of n tokens. The lock is not held.
func (t *rateLimiter) report(n int, o Outcome, granted start) {
	if t.backoff == nil {
		return
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	t.bookReport(t.gate.Now(), t.noteReport(n, o), granted)
}

// noteReport counts the outcome of a call of n tokens, and returns what to book of it: nothing after Close. The lock is held.
func (t *rateLimiter) noteReport(n int, o Outcome) (calls backoff.Totals) {
	if t.gate.Closed.Load() {
		return calls
	}
	calls = o.totals(max(n, 0))
	t.backoff.reported = t.backoff.reported.Plus(calls)
	return calls
}

// bookReport books reported calls as calls of the limit. The lock is held.
func (t *rateLimiter) bookReport(now int64, calls backoff.Totals, granted start) {
	if calls == (backoff.Totals{}) {
		return
	}
	b := t.backoff
	if b.pool.Count(now/1000, calls, b.poolFrom.before(granted)) && t.sharer != nil {
		t.sharer.Poke()
	}
	if b.part.Tally.Count(now/1000, calls, b.partFrom.before(granted)) && !t.issuing() {
		t.stepBackoff(now)
	}
}

// concerns reports whether the refusal of a call says something of the ceiling in force. It does if the call was granted after the effect of
// the last cut, by the pool or here. The lock is held.
func (t *rateLimiter) concerns(granted start) bool {
	b := t.backoff
	return b.poolFrom.before(granted) && b.partFrom.before(granted) && !b.part.Tally.Settling()
}

// lower returns a lease after the Throttle's own backoff. The lock is held.
func (t *rateLimiter) lower(now int64, l limit.Lease) limit.Lease {
	b := t.backoff
	if b == nil {
		return l
	}
	cut, settled := l.Cuts != b.leased.Cuts, b.pool.Settling() && !l.Settling
	b.leased = l
	if cut { // by the pool, which knows better
		b.part.Restart(now / 1000)
		b.partFrom = t.startAt(now)
	}
	if cut && t.reserver != nil {
		t.reserver.cut()
	}
	if cut || settled {
		b.pool.Begin(now/1000, l.Settling)
		b.poolFrom = t.startAt(now)
	}
	return t.lowered(now)
}

// lowered returns the lease in force at now. The lock is held.
func (t *rateLimiter) lowered(now int64) limit.Lease {
	b := t.backoff
	l := b.leased
	if b.part.State.Free() || l.Issuing {
		return l
	}
	part := b.part.Of(t.partConfig(), now/1000)
	l.Share = int64(float64(l.Share) * part)
	l.Adapted = l.Adapted || part < 1
	if !b.pooled {
		if l.Ceiling == 0 {
			l.Ceiling = float64(t.limit.Max)
		}
		l.Ceiling *= part
	}
	return l
}

// partConfig returns the law for the Throttle's own share of any size. The reserve is a part of the pool's ceiling, or for a hard limit a
// bucket that holds a token.
func (t *rateLimiter) partConfig() backoff.Config {
	of, least := t.backoff.leased.Ceiling, 0.0
	if of <= 0 {
		of = float64(t.limit.Max)
	}
	if t.limit.Hard {
		least = float64(t.bucket.Units(1)) / float64(t.bucket.HardUnits()) / (float64(t.backoff.leased.Share) / float64(wholeShare))
	}
	return t.backoff.config.Part(of, least)
}

// stepBackoff makes a step of the Throttle's own backoff. The lock is held.
func (t *rateLimiter) stepBackoff(now int64) {
	b := t.backoff
	if b.part.Settle(now / 1000) {
		b.partFrom = t.startAt(now)
	}
	if d := time.Duration(now - b.at); d >= usedEvery {
		flow := t.usageAt(now)
		b.used, b.offered = flow.Since(b.flow, d, t.limit.Max, t.limit.Per)
		b.flow, b.at = flow, now
	}
	if rate := t.limit.Rate() * float64(b.leased.Share) / float64(wholeShare); rate > 0 {
		t.stepPart(now, rate)
	}
	if !b.part.State.Free() {
		b.timer.Reset(backoffEvery)
	}
}

// stepPart is stepBackoff for a share above 0, in tokens per second.
func (t *rateLimiter) stepPart(now int64, rate float64) {
	b := t.backoff
	if b.part.Step(t.partConfig(), now/1000, rate, b.used, b.offered) {
		b.partFrom = t.startAt(now)
		if t.reserver != nil {
			t.reserver.cut()
		}
		b.flow, b.at, b.used, b.offered = t.usageAt(now), now, 1, 1 // until it is known
	}
	t.put(now, t.lowered(now))
}

// onBackoff makes the next step while only a part of the share is used.
func (t *rateLimiter) onBackoff() {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.gate.Closed.Load() || t.backoff.part.State.Free() {
		return
	}
	t.stepBackoff(t.gate.Now())
}

// stop ends the steps.
func (b *localBackoff) stop() {
	if b != nil {
		b.timer.Stop()
	}
}

// served returns the reported outcomes for the pool's law. The lock is held.
func (t *rateLimiter) served(now int64) sharing.Served {
	b := t.backoff
	if b == nil {
		return sharing.Served{}
	}
	if !b.pool.Active(now / 1000) {
		return sharing.Served{Cuts: b.leased.Cuts}
	}
	const unit = backoff.Whole / 1e6 // a Report's numbers are then millionths of a token per second
	r := b.pool.Report(unit, 0, now/1000)
	rate := func(n int64) float64 { return float64(n) * unit / backoff.Whole }
	return sharing.Served{Cuts: b.leased.Cuts, Accepted: rate(r.Accepted), Refused: rate(r.Refused), Overloaded: rate(r.Overloaded), Active: true}
}

// A Backoff describes how an adaptive Throttle responds to the called service; the zero value for another limit.
type Backoff struct {
	// Part is the part of its share that the Throttle uses, 0 to 1. It is below 1 after refusals that the pool does not know of yet, or
	// does not hold against all. Lease.Share includes it.
	Part float64
	// Cuts counts how often the Throttle lowered Part by itself; Lease.Cuts counts how often the pool lowered its ceiling.
	Cuts int64
	// Accepted, Refused and Overloaded count the tokens of the calls that were reported.
	Accepted, Refused, Overloaded int64
}

// backoffStatus returns the Throttle's Backoff. The lock is held.
func (t *rateLimiter) backoffStatus(now int64) Backoff {
	b := t.backoff
	if b == nil {
		return Backoff{}
	}
	s := Backoff{Part: 1, Cuts: b.part.Cuts, Accepted: b.reported.Accepted, Refused: b.reported.Refused, Overloaded: b.reported.Overloaded}
	if !b.part.State.Free() && !b.leased.Issuing {
		s.Part = b.part.Of(t.partConfig(), now/1000)
	}
	return s
}

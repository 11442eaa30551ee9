package protocol

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// urgency is how soon the next request goes out.
type urgency int

const (
	urgencyNone urgency = iota // one interval after the last
	urgencyFast                // one fast interval after the last
	urgencyNow                 // at once, but at most once per fast interval
)

// SyncTimeout is how long one sync may take before it counts as failed.
func SyncTimeout(lease time.Duration) time.Duration {
	return min(max(lease/6, 500*time.Millisecond), time.Second)
}

// Interval returns the current time between syncs, stretched while the store is slow. A replaced processor may not know that the pool's
// lease is now as short as possible. If it is the only processor still asking, gaps above a quarter of that lease count as no time, and its
// successor would never be removed.
func (c *core) Interval() time.Duration {
	if c.state == StateReplaced {
		return min(wire.Interval(c.Lease, c.Answer.Live), wire.Interval(driver.MinLease, 0))
	}
	return c.load.stretched(c.Lease, c.Answer.Live)
}

// fast is the time between syncs of a processor that waits for a share that others can
// give. It is a tenth of an interval, or longer in a large pool, which asks at most
// maxFastRate times a second. In a large pool it doubles with each request that brought
// nothing. While the store is slow, it grows with the square of the stretch.
func (p *Processor) fast() time.Duration {
	each := max(p.Interval()/10, time.Duration(p.Answer.Live)*time.Second/maxFastRate)
	if p.Answer.Live >= largePool {
		each <<= min(p.vain, 5)
	}
	return min(time.Duration(float64(each)*p.load.stretch()), p.Interval())
}

const (
	// maxFastRate bounds the fast requests of a pool, per second.
	maxFastRate = 4000
	// largePool is the number of processors from which on fast requests are limited
	// further. In a smaller pool they ask for less than a hundred processors do all the time.
	largePool = 64
	// thawRate spreads the requests at the end of a freeze, which comes at the same
	// moment for all: so many per second.
	thawRate = 400
)

// patient reports whether shares change with regular requests only. In a large pool with a
// slow store, a second request for each change would make the store even slower.
func (p *Processor) patient() bool {
	return p.Answer.Live >= largePool && p.load.stretch() > 1
}

// backoff is the longest time from a failed request to the next one; half of it is
// random. A store that refuses at once may be back soon: the first wait is a quarter of an
// interval. One that answers late, or not in time, has too much to do: the first wait is a
// whole interval. Each further failure doubles the wait, up to half a lease. A share without
// the store's consent rests on the newest request and may last for less than that, so a
// processor with one waits for at most 0.3 leases.
//
// A processor with a good lease waits for at most half of the time left, but at least for
// an interval, or two in a large pool. So its lease outlasts an outage that takes most of
// the lease, and the store gets no more requests than in steady state. In pools of 250 and more two
// intervals are half a lease: there an outage of a few seconds can end some leases. More
// requests towards their end would keep a store that serves in order overloaded forever.
func (p *Processor) backoff() time.Duration {
	usual := wire.Interval(p.Lease, p.Answer.Live)
	each := usual
	if !p.load.late {
		each = usual / 4
	}
	most := p.Lease / 2
	if p.degraded {
		most = p.Lease * 3 / 10
	}
	if p.state == StateHolding && (p.held > 0 || p.issuing || p.winding) {
		least := usual
		if p.Answer.Live >= largePool {
			least = 2 * usual
		}
		most = min(most, max(least, (p.until-p.attempt)/2))
	}
	return min(each<<min(p.failures-1, 10), most)
}

// patience is the longest gap between requests of a process that was not stalled.
func (c *core) patience() time.Duration {
	return max(2*c.Interval(), c.Lease/2) + SyncTimeout(c.Lease)
}

// Next returns the local time at which the next request is due. The random number spread, from 0 to 1, keeps the processors of a pool out
// of step. It may stay the same until the next request is sent.
func (p *Processor) Next(now time.Duration, spread float64) time.Duration {
	if p.seq == 0 && p.urgentAt == 0 {
		return now
	}
	// after is the end of a delay with a random part.
	after := func(d time.Duration, random float64) time.Duration {
		return p.attempt + time.Duration(float64(d)*(1-random+random*spread))
	}
	if p.failures > 0 {
		return after(p.backoff(), 0.5)
	}
	next := after(p.Interval(), p.load.jitter())
	if p.frozen > p.attempt && p.held < p.want { // the first moment at which it can grow
		thaw := time.Duration(spread * float64(p.Answer.Live) * float64(time.Second) / thawRate)
		next = min(next, max(p.frozen+thaw, p.attempt+p.fast()))
	}
	switch p.urgency {
	case urgencyNow:
		next = min(next, max(now, p.urgentAt+after(p.fast(), 0.05)-p.attempt))
	case urgencyFast:
		next = min(next, after(p.fast(), 0.05))
	case urgencyNone:
	}
	return next
}

// Poke reports a waiting or refused caller. It brings the next request forward if the store does not know yet, or no share is held.
func (p *Processor) Poke(now time.Duration) {
	p.Tick(now)
	if p.state == StateReplaced || p.state == StateLeft || p.urgency == urgencyNow || p.unreadable() != nil || p.patient() {
		return
	}
	if p.tags.buckets && p.held > 0 {
		if p.tags.extra.take(now, p.tags.pokeEvery(&p.core)) {
			p.urgency = max(p.urgency, urgencyFast)
		}
		return
	}
	if p.demand < driver.Whole || p.held == 0 && !p.issuing && p.hope(now) {
		p.urgency = urgencyFast
	}
}

// A split is the division of the limit among the processors for an answer and a demand.
type split struct {
	slots  int            // into which the limit is divided; 0: into any shares
	part   bool           // the last answer had a part of a slot, which the next request gives back and does not ask for again
	wants  []driver.Share // by the policy, in the order of the roster; nil: not known
	self   int
	demand driver.Share
}

// choose works out the share to ask for and lowers the share in force to it at once. A higher share takes effect when granted. In a frozen
// pool nothing is given up: nobody else could have it, and it would not come back before the freeze ends.
func (p *Processor) choose(now time.Duration) {
	if p.unreadable() != nil {
		p.want = p.held // which ends with its lease
		return
	}
	if p.state == StateJoining || len(p.Answer.Roster) == 0 {
		return // nothing is known: ask for all there is room for
	}
	wants, self := p.wants(now)
	if self < 0 {
		return
	}
	p.want = wants[self]
	if p.want >= p.held {
		if p.split.part {
			p.want = p.held
		}
		return
	}
	if p.frozen > now {
		p.want = p.held
		return
	}
	// An excess below 5 % of the wanted share may be kept while no other processor lacks it.
	if (p.held-p.want)*20 < p.want && !p.ceiling.law.Hard && !lacking(p.Answer.Roster, wants, self) {
		p.want = p.held
		return
	}
	p.held = p.want
}

// wants applies the policy to the roster with this processor's own newest figures.
// The result stays good until the roster or the demand changes.
func (p *Processor) wants(now time.Duration) (wants []driver.Share, self int) {
	if p.split.wants != nil && p.split.demand == p.demand {
		return p.split.wants, p.split.self
	}
	self = -1
	rows := make([]driver.RosterRow, len(p.Answer.Roster))
	copy(rows, p.Answer.Roster)
	for i := range rows {
		if rows[i].ID == p.Cfg.ID {
			self = i
			rows[i].Demand = p.demand
		}
	}
	byTags, ok := p.tags.wants(&p.core, now, rows, self)
	pick := inTurn(p.turn())
	switch {
	case ok && p.tags.slots.most > 0:
		pick = byPart(p.turn(), byTags, rows, p.split.slots)
	case ok:
		byTags = firstShares(p.Answer.Closed, p.tags.token(p.Interval()), byTags, rows, p.tags.floors())
	default:
		byTags = leave(p.Answer.Closed, p.Cfg.Policy(rows))
	}
	p.split.wants, p.split.self, p.split.demand = byTags, self, p.demand
	if n := p.split.slots; n > 0 {
		p.split.wants = wholeSlots(p.split.wants, rows, n, pick)
	}
	if self >= 0 && p.ceiling.law.Hard {
		p.gather(rows, ok)
	}
	return p.split.wants, self
}

// evenShare returns the share that the processor will soon hold if it reports a lack of tokens, regardless of its current share. It is at
// most the equal part: the others may lack some by then, too.
func (p *Processor) evenShare() driver.Share {
	rows := slices.Clone(p.Answer.Roster)
	self := slices.IndexFunc(rows, func(r driver.RosterRow) bool { return r.ID == p.Cfg.ID })
	if self < 0 {
		return 0
	}
	rows[self].Demand = driver.Whole
	return min(leave(p.Answer.Closed, p.Cfg.Policy(rows))[self], driver.Whole/driver.Share(len(rows)))
}

// lacking reports whether another processor holds over 5 % less than it should.
func lacking(rows []driver.RosterRow, wants []driver.Share, self int) bool {
	for i := range rows {
		if i != self && rows[i].Claim < wants[i]-wants[i]/20 {
			return true
		}
	}
	return false
}

// hope reports whether another request soon can bring a larger share: another processor has more than it should. A processor without a
// share also counts unclaimed room, and the small excess of each of many others.
func (p *Processor) hope(now time.Duration) bool {
	if p.frozen > now {
		return false
	}
	if len(p.Answer.Roster) == 0 {
		return p.held == 0 && p.demand > 0 // nothing is known yet
	}
	wants, self := p.wants(now)
	spare := driver.Whole - p.Answer.Closed
	for i, row := range p.Answer.Roster {
		if i == self {
			continue
		}
		if row.Claim > wants[i]+wants[i]/20 {
			return true
		}
		spare -= min(row.Claim, wants[i])
	}
	return p.held == 0 && p.demand > 0 && spare > p.want/20
}

// unasked reports whether there is room that this processor should have and did not know of when it asked: another processor has left or
// was removed. It may ask at once, because it will not find the same room again.
func (p *Processor) unasked(now time.Duration) bool {
	if p.frozen > now || p.sent.wanted >= p.want {
		return false
	}
	_, self := p.wants(now)
	free := driver.Whole - p.Answer.Closed
	for i, row := range p.Answer.Roster {
		if i != self {
			free -= row.Claim
		}
	}
	return free-p.held > p.want/20
}

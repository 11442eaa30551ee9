package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// urgency says how soon the next request goes out.
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

// interval is the present time between syncs; fast the one while a share is awaited.
// A replaced processor does not know the pool's lease, which may have become as short
// as can be. It may be the only one left to ask, and a gap above a quarter of that
// lease counts as no time: the one that replaced it would never be removed.
func (p *Processor) interval() time.Duration {
	if p.state == StateReplaced {
		return min(driver.Interval(p.lease, p.answer.Live), driver.Interval(MinLease, 0))
	}
	return driver.Interval(p.lease, p.answer.Live)
}
func (p *Processor) fast() time.Duration { return p.interval() / 10 }

// patience is the longest gap between requests of a process that was not stalled.
func (p *Processor) patience() time.Duration {
	return 2*p.interval() + SyncTimeout(p.lease)
}

// Next returns the local time at which the next request is due. spread is a
// random number from 0 to 1 that keeps the processors of a pool out of step;
// it may be the same until the next request is sent.
func (p *Processor) Next(now time.Duration, spread float64) time.Duration {
	if p.seq == 0 && p.urgentAt == 0 {
		return now
	}
	jitter := func(d time.Duration) time.Duration { return time.Duration(float64(d) * (0.95 + 0.05*spread)) }
	next := p.attempt + jitter(p.interval())
	if p.frozen > p.attempt && p.held < p.want {
		next = min(next, max(p.frozen, p.attempt+p.fast())) // the first moment at which it can grow
	}
	switch {
	case p.failures > 0:
		next = min(next, p.attempt+jitter(p.fast()<<min(p.failures-1, 2)))
	case p.urgency == urgencyNow:
		next = min(next, max(now, p.urgentAt+jitter(p.fast())))
	case p.urgency == urgencyFast:
		next = min(next, p.attempt+jitter(p.fast()))
	}
	return next
}

// Poke says that a caller waits or was refused. It brings the next request
// forward if the store does not know yet, or no share is held.
func (p *Processor) Poke(now time.Duration) {
	p.Tick(now)
	if p.state == StateReplaced || p.state == StateLeft || p.urgency == urgencyNow || p.ceiling.readable() != nil {
		return
	}
	if p.tags.tills && p.held > 0 {
		if p.tags.extra.take(now, p.interval()) {
			p.urgency = max(p.urgency, urgencyFast)
		}
		return
	}
	if p.demand < Whole || p.held == 0 && p.frozen <= now && !p.issuing {
		p.urgency = urgencyFast
	}
}

// choose works out what to ask for and lowers the share in force to it at once;
// a higher one takes effect when granted. In a frozen pool nothing is given up:
// nobody else could have it, and it would not come back before the freeze ends.
func (p *Processor) choose(now time.Duration) {
	if p.ceiling.readable() != nil {
		p.want = p.held // which ends with its lease
		return
	}
	if p.state == StateJoining || len(p.answer.Roster) == 0 {
		return // nothing is known: ask for all there is room for
	}
	wants, self := p.wants(now)
	if self < 0 {
		return
	}
	p.want = wants[self]
	if p.want >= p.held {
		return
	}
	if p.frozen > now {
		p.want = p.held
		return
	}
	// A little too much, up to 5 % of what it should be, may be kept while nobody lacks it.
	if (p.held-p.want)*20 < p.want && !lacking(p.answer.Roster, wants, self) {
		p.want = p.held
		return
	}
	p.held = p.want
}

// wants applies the policy to the roster with this processor's own newest figures.
// The result stays good until the roster or the demand changes.
func (p *Processor) wants(now time.Duration) (wants []Share, self int) {
	if p.split.wants != nil && p.split.demand == p.demand {
		return p.split.wants, p.split.self
	}
	self = -1
	rows := make([]RosterRow, len(p.answer.Roster))
	copy(rows, p.answer.Roster)
	for i := range rows {
		if rows[i].ID == p.cfg.ID {
			self = i
			rows[i].Demand = p.demand
		}
	}
	byTags, ok := p.tagWants(now, rows, self)
	if !ok {
		byTags = p.cfg.Policy(rows)
	}
	p.split.wants, p.split.self, p.split.demand = byTags, self, p.demand
	if p.slots > 0 {
		p.split.wants = wholeSlots(p.split.wants, rows, p.slots, p.turn())
	}
	return p.split.wants, self
}

// lacking tells whether another processor holds at least 5 % less than it should.
func lacking(rows []RosterRow, wants []Share, self int) bool {
	for i := range rows {
		if i != self && rows[i].Claim < wants[i]-wants[i]/20 {
			return true
		}
	}
	return false
}

// hope tells whether asking again soon can bring a larger share: another
// processor has more than it should, or this one has nothing.
func (p *Processor) hope(now time.Duration) bool {
	if p.frozen > now {
		return false
	}
	if p.held == 0 && p.demand > 0 {
		return true
	}
	wants, self := p.wants(now)
	for i, row := range p.answer.Roster {
		if i != self && row.Claim > wants[i]+wants[i]/20 {
			return true
		}
	}
	return false
}

// unasked tells whether there is room that this processor should have and did not
// ask for, because it knew nothing of it: another one has left or was removed. It
// may ask at once, for it will not find the same again.
func (p *Processor) unasked(now time.Duration) bool {
	if p.frozen > now || p.sent.wanted >= p.want {
		return false
	}
	_, self := p.wants(now)
	free := Whole
	for i, row := range p.answer.Roster {
		if i != self {
			free -= row.Claim
		}
	}
	return free-p.held > p.want/20
}

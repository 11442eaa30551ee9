package protocol

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Processors that wait for the same slots spread their next requests over a time. It is long enough
// that not all of them ask the store for each slot, and short enough that each slot is soon taken.
// All draw from the same range, so that each has the same chance.
const (
	// spreadPart contenders spread over one spacing, and a slot is late by a fortieth of it on
	// average.
	spreadPart = 40
	// spreadLeast is the minimum per contender, for slots that are closer together than the store
	// should be asked.
	spreadLeast = time.Millisecond
	// calmAfter is how many requests per contender must succeed in a row until slots count as
	// plenty, and nobody needs to stand back.
	calmAfter = 4
)

// reservations is the part of a processor that requests slots from the store.
type reservations struct {
	strict     bool // tokens are issued one by one, at any rate
	contenders int  // processors that use the limit, this one included

	asked    time.Duration // when the last request was made
	furthest time.Duration // the last slot that any brought, on the processor's clock
	calm     int           // requests in a row that brought something
	missed   int           // requests in a row that brought nothing
	failures int           // in a row
}

func (s *reservations) restart() { s.contenders = 1 }

// report reports how far ahead the processor's last usable slot lies; see Request.Reach. Returned slots
// count too.
func (s *reservations) report(_ *core, now time.Duration, req *request) {
	req.Strict, req.Reach = s.strict, min(max(s.furthest-now, 0), wire.MaxReach)
}

// take counts the contenders.
func (s *reservations) take(c *core, _ time.Duration, a *driver.Answer) urgency {
	s.contenders = 1
	for i := range a.Roster {
		if a.Roster[i].Demand > 0 && a.Roster[i].ID != c.Cfg.ID {
			s.contenders++
		}
	}
	return urgencyNone
}

// ahead is how many slots may be reserved ahead for an order. If tokens are issued only because the
// limit is low, it is at least one per contender, so that nobody asks in vain. But no slot is
// further away than counts as time between two syncs: a processor's reservations die with it, and
// lengthen a freeze.
func (s *reservations) ahead(o sharing.Order, lease time.Duration) int {
	if s.strict || o.Spacing <= 0 {
		return o.Ahead
	}
	return max(o.Ahead, min(s.contenders, int(wire.Clamp(lease)/o.Spacing), wire.MaxAhead))
}

// Reserve returns the request for an order at now, and the order as sent. The order is spaced by
// the limit in force, with as many slots ahead as the pool needs.
func (p *Processor) Reserve(now time.Duration, o sharing.Order) (driver.Reserve, sharing.Order) {
	o.Spacing = p.ceiling.pacedAt(&p.core, now, o.Spacing)
	o.Ahead = p.permits.ahead(o, p.Lease)
	p.permits.asked = now
	return driver.Reserve{
		Pool: p.Cfg.Pool, Count: o.Count, Spacing: o.Spacing, Ahead: o.Ahead,
		Revision: p.revision, Lease: p.Cfg.Lease, Return: o.Return, Unused: o.Unused,
	}, o
}

// Reserved turns the store's answer to an order, or the error in its place, into slots for a
// Throttle. The order is as sent, and the answer took so long. The random number chance is from 0
// to 1. The error wraps err, or ErrWrongAnswer for an impossible answer.
func (p *Processor) Reserved(o sharing.Order, res driver.Reserved, took time.Duration, chance float64, err error) (sharing.Slots, error) {
	s := &p.permits
	if err == nil {
		err = res.Check(o.Count)
	}
	if err != nil { // nothing of the answer is believed
		s.failures++
		wait := min(p.fast()<<min(s.failures-1, 10), p.Interval())
		return sharing.Slots{Again: wait/2 + time.Duration(chance*float64(wait/2))}, err
	}
	s.failures = 0
	if p.state != StateLeft {
		p.revision = max(p.revision, res.Revision)
	}
	slots := sharing.Slots{
		Count: res.Count, Wait: res.Wait, Spacing: max(res.Spacing, o.Spacing), Last: res.Last,
		Next: res.Wait + time.Duration(res.Count)*max(res.Spacing, o.Spacing), Part: max(1, (o.Ahead+1)/s.contenders),
	}
	retry := max(0, slots.Next-time.Duration(o.Ahead)*o.Spacing)
	if res.Count == 0 {
		if retry, slots.Next = res.Retry, res.Retry; res.Spacing > 0 { // all allowed slots are reserved
			slots.Next += time.Duration(o.Ahead) * o.Spacing
		}
		s.calm, s.missed = 0, s.missed+1
	} else {
		s.calm, s.missed = s.calm+1, 0
		s.furthest = max(s.furthest, s.asked+took+res.Wait+time.Duration(res.Count-1)*slots.Spacing)
	}
	// A processor that has missed more than the others comes sooner.
	chance /= 1 + float64(s.missed)/float64(s.contenders)
	slots.Again = again(&slots, retry, o, took, s.contenders, s.calm, chance)
	return slots, nil
}

// again returns how long after a request, which took so long, the next one should go out. Nothing
// can be had before retry. chance is a random number from 0 to 1.
func again(s *sharing.Slots, retry time.Duration, o sharing.Order, took time.Duration, contenders, calm int, chance float64) time.Duration {
	scarce := contenders > o.Ahead+1 // there is not one for each
	if !scarce && s.Count > 0 {
		return retry
	}
	from, over := retry, s.Spacing/spreadPart*time.Duration(contenders)
	if calm <= calmAfter*contenders {
		over = max(over, spreadLeast*time.Duration(contenders))
		if scarce {
			// A processor with a slot stands back until the slot has come, and then has no better
			// chance than the others. If the store is further away than the next slot, nobody can
			// aim at one; all that asked at once would ask in step.
			if s.Count > 0 {
				from = max(from, took+s.Wait)
			}
			if took >= s.Spacing {
				from, over = max(from, took), max(over, s.Spacing)
			}
		}
	}
	if from == 0 {
		return 0
	}
	return from + time.Duration(chance*float64(over))
}

// paced turns the spacing of the configured limit into that of the limit in force. It leaves out
// the ramp: the pool keeps a reported spacing for a removal time after it falls.
func (l *poolCeiling) paced(spacing time.Duration) time.Duration {
	return l.pacedBy(l.law.Limit().Tokens(l.limit.Per), spacing)
}

// pacedFor names the document that paced follows: the override or the file, unless something of the processor's
// own keeps it below that.
func (l *poolCeiling) pacedFor(spacing time.Duration) string {
	switch {
	case spacing == 0 || l.limit.Max == 0:
	case l.law.Overridden():
		return limitDocument
	case l.law.Filed():
		return fileDocument
	}
	return ""
}

// pacedAt is paced at now, with the ramp.
func (l *poolCeiling) pacedAt(c *core, now, spacing time.Duration) time.Duration {
	return l.pacedBy(l.tokens(c, now, 0), spacing)
}

func (l *poolCeiling) pacedBy(tokens float64, spacing time.Duration) time.Duration {
	if spacing == 0 || l.limit.Max == 0 || tokens == float64(l.limit.Max) {
		return spacing
	}
	wide := math.Ceil(float64(spacing) * float64(l.limit.Max) / tokens)
	return time.Duration(max(float64(wire.MinSpacing), min(wide, float64(wire.MaxSpacing))))
}

package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Orders are what the holder of a processor's share must have in force. It takes them in the order of the fields.
type Orders struct {
	// Pauses are those in force, each tag once.
	Pauses []limit.Paused
	// Quotas are those in force; nil: they are the same as at the last call.
	Quotas *limit.Quotas
	// Grants are the grants for tags that are new since the last call; nil: there are none.
	Grants []sharing.TagGrant
	// SlotGrants are the same for tags of calls in flight.
	SlotGrants []sharing.TagSlotGrant
	// Lease has the share in force.
	Lease limit.Lease
	// Forgiven is how often debt was forgiven. A holder forgets its debt each time that it rises.
	Forgiven int
}

// Orders returns what the holder must have in force from now on. base is the origin of local time. The lease holds until ahead from now at
// least: a falling ceiling counts before it has fallen, a rising one when it has risen.
func (p *Processor) Orders(now, ahead time.Duration, base time.Time) Orders {
	p.Tick(now)
	o := Orders{Pauses: paused(p.Pauses.inForce(now), base), Lease: p.leaseOf(now, ahead, base), Forgiven: p.ceiling.forgiving.times}
	if p.tags.on {
		if p.tags.fresh {
			q := p.tags.book.quotas
			o.Quotas, p.tags.fresh = &q, false
		}
		if p.tags.slots.most > 0 {
			o.SlotGrants, p.tags.slots.grants = p.tags.slots.grants, nil
			return o
		}
		o.Grants = p.tags.book.grants(base, now)
		for i := range o.Grants {
			o.Grants[i].Soon = o.Lease.Soon
		}
	}
	return o
}

// leaseOf returns the lease of Orders.
func (p *Processor) leaseOf(now, ahead time.Duration, base time.Time) limit.Lease {
	l := limit.Lease{Degraded: p.degraded, Reason: limit.ReasonStoreLost}
	l.Share, l.Ceiling = p.ceiling.apply(&p.core, p.held, now, ahead)
	l.Adapted, l.Cuts, l.Settling = p.ceiling.adapted(p.clock.logical(now))
	if l.Share > 0 && !l.Degraded && p.frozen <= now {
		l.Even, _ = p.ceiling.apply(&p.core, p.even, now, ahead)
	}
	l.Soon = p.tags.soon(&p.core)
	l.Issuing = p.isIssuing(now)
	if l.Share > 0 || l.Issuing {
		l.Until = base.Add(p.until)
	}
	if p.frozen > now {
		l.Frozen = base.Add(p.frozen)
	}
	switch p.state {
	case StateJoining:
		l.Reason = limit.ReasonNoShare
	case StateHolding:
		if l.Share == 0 {
			l.Reason = limit.ReasonNoShare
		}
		if p.slotless(now) {
			l.Reason = limit.ReasonInFlight // others have them all
		}
	case StateReplaced:
		l.Reason = limit.ReasonReplaced
	case StateLeft:
		l.Reason = limit.ReasonClosed
	case StateLost:
	}
	if (l.Share == 0 || l.Reason == limit.ReasonStoreLost) && p.unreadable() != nil {
		l.Reason = limit.ReasonUnreadable
	}
	return l
}

// Left reports whether the processor has left its pool.
func (p *Processor) Left() bool { return p.state == StateLeft }

// settings is Settings of the roster, whose notes have been read already.
func (p *Processor) settings() []Setting {
	return settingsOf(p.Answer.Roster, p.notes)
}

// Situation returns the input of a logbook after a sync that ended with err.
func (p *Processor) Situation(now time.Duration, err error) Situation {
	spent, removed := p.tags.spent.news, p.removed
	if err == nil {
		p.tags.spent.news, p.removed = nil, nil
	}
	usual := wire.Interval(p.Lease, p.Answer.Live)
	return Situation{
		err: err, state: p.state, share: p.held, left: p.until - now, degraded: p.degraded,
		issuing: p.isIssuing(now), onLoss: p.Cfg.OnStoreLoss, frozen: p.frozen - now, frozenBy: p.frozenBy,
		interval: p.Interval(), usual: usual, slow: p.load.slow > 1, stretched: p.Interval() > usual,
		quotas:   p.tags.unreadable,
		stopped:  p.unreadable(),
		spent:    spent,
		orders:   p.orders(now),
		removed:  removed,
		settings: Disagreement(p.settings(), p.ceiling.override.Max > 0 || p.files.file.Max > 0),
	}
}

// NeverAnswered reports whether requests were sent and none was answered.
func (p *Processor) NeverAnswered() bool { return p.last.Seq == 0 && p.failures > 0 }

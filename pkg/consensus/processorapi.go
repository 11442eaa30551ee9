package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// ID names the processor in its pool.
func (p *Processor) ID() string { return p.cfg.ID }

// Left reports whether the processor has left its pool.
func (p *Processor) Left() bool { return p.state == StateLeft }

// NeverAnswered reports whether the store has failed without ever answering a request.
func (p *Processor) NeverAnswered() bool { return p.last.Seq == 0 && p.failures > 0 }

// TookOver reports whether the store knows of the death of a previous process.
func (p *Processor) TookOver() bool { return p.takeover.done }

// Live counts the live processors, as of the last answer.
func (p *Processor) Live() int { return p.answer.Live }

// Roster lists the live processors by rising ID, as of the last answer. It must not be changed.
func (p *Processor) Roster() []RosterRow { return p.answer.Roster }

// Timeout is how long one call of the store may take.
func (p *Processor) Timeout() time.Duration { return SyncTimeout(p.lease) }

// DemandSpan is the time that a demand covers: two intervals, so that the next answer comes within it.
func (p *Processor) DemandSpan() time.Duration { return 2 * p.interval() }

// Suspended reports whether a wall clock that is ahead by so much means that the machine was suspended.
func (p *Processor) Suspended(ahead time.Duration) bool { return ahead > p.lease/20 }

// Lease returns the limiter's lease from now on; base is the origin of local time. It holds until ahead
// from now at least; see Apply.
func (p *Processor) Lease(now, ahead time.Duration, base time.Time) limit.Lease {
	l := limit.Lease{Degraded: p.degraded, Reason: limit.ReasonStoreLost}
	l.Share, l.Ceiling = p.Apply(now, ahead)
	l.Adapted, l.Cuts, l.Settling = p.Adapted(now)
	if l.Share > 0 && !l.Degraded && p.frozen <= now {
		l.Even, _ = p.ceiling.apply(&p.core, p.even, now, ahead)
	}
	l.Issuing = p.Issuing(now)
	if l.Share > 0 || l.Issuing {
		l.Until = base.Add(p.Until())
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

// settings is Settings of the roster, whose notes have been read already.
func (p *Processor) settings() []Setting {
	return settingsOf(p.answer.Roster, p.notes)
}

// situation returns the input of a logbook after a sync that ended with err.
func (p *Processor) situation(now time.Duration, err error) situation {
	spent := p.tags.spent.news
	if err == nil {
		p.tags.spent.news = nil
	}
	usual := driver.Interval(p.lease, p.answer.Live)
	return situation{
		err: err, state: p.state, share: p.held, left: p.until - now, degraded: p.degraded,
		issuing: p.Issuing(now), onLoss: p.cfg.OnStoreLoss, frozen: p.frozen - now, frozenBy: p.frozenBy,
		interval: p.interval(), usual: usual, slow: p.load.slow > 1, stretched: p.interval() > usual,
		quotas:   p.tags.unreadable,
		stopped:  p.unreadable(),
		spent:    spent,
		settings: Disagreement(p.settings(), p.ceiling.override.Max > 0),
	}
}

package protocol

import (
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A poolCeiling is the part of a processor that knows the limit in force in its pool. It feeds the
// law (package internal/ceiling) from answers: the documents, the limits in the notes of
// others, and the pool's clock. It proposes the steps that are due.
//
// It has nothing to do with claims: a share is the same fraction of any limit.
type poolCeiling struct {
	limit   ceiling.Rate // as configured; the zero Rate: there is nothing to move
	law     ceiling.Law
	spacing time.Duration // of the configured limit; see Processor.Configure
	strict  bool
	digest  digest // of the configuration; empty: not computed yet

	override   Override
	file       File // the document "file"; the last readable one
	ending     ending
	forgiving  forgiving
	unreadable error // why the override cannot be read; nil: it can

	calls        ownCalls
	used, offers int64 // own rates, as last observed
	announced    int64 // to this processor, as last observed
}

// configure sets the limit of this processor.
func (l *poolCeiling) configure(t *sharing.Terms) {
	l.limit, l.law.Config, l.spacing, l.strict, l.digest = t.Ceiling.Limit, t.Ceiling, t.Spacing, t.Strict, ""
}

// restart drops what an incarnation has seen. The override, the ramp and the backoff stay.
func (l *poolCeiling) restart() {
	l.law.Unsure, l.law.Others, l.law.Lowest, l.law.Announced = false, 0, ceiling.Rate{}, ceiling.Rate{}
	l.calls.haste = haste{}
}

// take applies what an answer says about the limit. The next request is urgent if the store lacks
// a document since this answer: it should get it at once. If the store does not take it, this is
// not repeated. It is urgent as well if the ceiling is to be cut.
func (l *poolCeiling) take(c *core, now time.Duration, a *driver.Answer) urgency {
	lacked := c.lacked || l.law.Changed()
	l.law.Others, l.law.Lowest = 0, ceiling.Rate{}
	var announced announcements
	for n := range c.others {
		if n.limit.Max == 0 {
			continue
		}
		l.law.Others++
		announced.add(n)
		if l.law.Lowest.Max == 0 || n.limit.Below(l.law.Lowest) {
			l.law.Lowest = n.limit
		}
	}
	announced.add(&Note{announced: l.announced, limit: l.limit, follows: l.law.Follows, first: l.law.First})
	_, l.law.Announced = announced.agreed(l.law.Others + 1)
	for _, name := range c.changed {
		doc := c.docs.Find(name).Document
		switch name {
		case limitDocument:
			l.takeOverride(c.clock.moment(now), doc)
		case fileDocument:
			if file, err := fileDoc.Read(doc); err == nil {
				l.file, l.law.File = file, file.rate()
			}
		case rampDocument:
			l.law.Ramp, _ = rampDoc.Read(doc) // else it is Unreadable
		case backoffDocument:
			l.law.Backoff, _ = backoffDoc.Read(doc)
		}
	}
	l.forgiving.take(c.docs.Find(debtDocument).Document)
	live := len(a.Roster)
	l.law.Unsure = c.clock.answers == 1 && a.Epoch == 0 && live <= 1
	l.calls.lag = ceiling.Lag(wire.Interval(a.Lease, live))
	l.law.Settle(state.Present{Now: a.Time, Epoch: a.Epoch, Silence: a.Silence.Microseconds(), Clamp: c.clock.clamp})
	if lacks := c.docs.Lost() || l.law.Changed(); lacks && !lacked || l.cutDue(c, now) {
		return urgencyNow
	}
	return urgencyNone
}

// report proposes the steps that are due, and reports the limit to the others. With neither a ramp
// nor an adaptive limit, nobody needs to know what the processor uses.
func (l *poolCeiling) report(c *core, now time.Duration, req *request) {
	random := uint16(req.Nonce)
	if next, due := l.stepOverride(c, now); due {
		req.Documents = propose(req.Documents, &limitDoc, &c.docs, next, random)
	}
	if next, due := l.stepRamp(c, now, req.paused); due {
		req.Documents = propose(req.Documents, &rampDoc, &c.docs, next, random)
	}
	if next, due := l.stepBackoff(c, now); due {
		req.Documents = propose(req.Documents, &backoffDoc, &c.docs, next, random)
	}
	req.Spacing, req.SpacingBy = l.paced(l.spacing), l.pacedFor(l.spacing)
	n := &req.note
	n.standing.Granted = l.law.Config.Granted
	if l.limit.Max > 0 || n.standing.Slots > 0 {
		if l.digest == "" {
			l.digest = digestOf(&c.Cfg, &l.law.Config, l.strict)
		}
		n.settings = l.digest
	}
	switch {
	case l.limit.Max == 0:
	case !l.law.Ramps && !l.law.Adapts:
		setLimit(n, l.law.Config, 0, 0)
	default:
		setLimit(n, l.law.Config, l.used, l.offers)
		l.calls.report(n, l.law.Adapts)
	}
	n.announced, n.follows, n.first = l.announced, l.law.Follows, l.law.First
}

// propose adds the next version of a document to the reports of a request.
func propose[T any](list []driver.DocumentReport, doc *pooldoc.Doc[T], docs *pooldoc.Cache, value T, random uint16) []driver.DocumentReport {
	if d, ok := doc.Propose(docs.Find(doc.Name), value, random); ok {
		list = pooldoc.Report(list, d)
	}
	return list
}

// stepRamp returns the next step of the ramp, if one is due. paused says that the whole pool is.
func (l *poolCeiling) stepRamp(c *core, now time.Duration, paused bool) (next state.Shared[ramp.State], due bool) {
	if !l.law.Ramps || c.clock.answers == 0 {
		return next, false
	}
	t := c.clock.logical(now)
	if c.clock.lost(now) {
		t = c.clock.time // perhaps nobody asked meanwhile, and the logical clock stood still
	}
	used, offered := l.flow(c)
	if c.Answer.Issuing && (now < c.frozen || paused) { // else the limiters know
		offered = 0
	}
	return l.law.NextRamp(ramp.Step{Now: t, Used: used, Offered: offered, Halted: offered == 0})
}

// flow returns the rates that the pool uses and is offered: the sums of the last reports of
// its processors.
func (l *poolCeiling) flow(c *core) (used, offered int64) {
	used, offered = l.used, l.offers
	for n := range c.others {
		used += n.used
		offered += n.offered
	}
	if c.Answer.Issuing {
		// Nobody has a share: the pool is offered all that the ceiling allows, in whole
		// tokens. Processors may miss a few.
		offered = int64(l.tokens(c, c.clock.at, 0) / float64(l.limit.Max) * ramp.Whole)
		if used >= offered-offered/10 {
			used = max(used, offered)
		}
	}
	// Only their ratio counts, and whether there is traffic at all.
	if most := max(used, offered); most > ramp.Whole {
		scale := float64(ramp.Whole) / float64(most)
		used, offered = max(int64(float64(used)*scale), min(used, 1)), int64(float64(offered)*scale)
	}
	return used, offered
}

// tokens returns the ceiling in tokens per period of the configured limit: the lowest from
// now until ahead from now. 0: there is no limit.
func (l *poolCeiling) tokens(c *core, now, ahead time.Duration) float64 {
	return l.law.At(c.clock.logical(now), c.clock.logical(now+ahead))
}

// apply converts a share of the pool to a share of the configured limit, rounded down. It
// also returns the ceiling if that differs from the configured limit.
func (l *poolCeiling) apply(c *core, held driver.Share, now, ahead time.Duration) (share int64, tokens float64) {
	tokens = l.tokens(c, now, ahead)
	if l.limit.Max == 0 || tokens == float64(l.limit.Max) {
		return int64(held), 0
	}
	// Less by more than floating-point numbers are rounded.
	share = int64(float64(held) * tokens / float64(l.limit.Max) * (1 - 0x1p-50))
	return max(0, min(share, sharing.MaxShare)), tokens
}

// readable returns why the override cannot be read; nil: it can.
func (l *poolCeiling) readable() error {
	if l.unreadable != nil {
		return fmt.Errorf("consensus: the limit cannot be read: %w", l.unreadable)
	}
	return nil
}

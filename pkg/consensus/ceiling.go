package consensus

import (
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A poolCeiling is what a processor knows of the limit in force in its pool. It feeds the
// law (package internal/ceiling) from answers: the documents, the limits in the notes of
// others, and the pool's clock. It proposes the steps that are due.
//
// It has nothing to do with claims: a share is the same fraction of any limit. It has no
// clock and no I/O; it is a part of Processor.
type poolCeiling struct {
	id    string
	limit ceiling.Rate // as configured; the zero Rate: there is nothing to move
	law   ceiling.Law
	docs  pooldoc.Cache

	pauses pausing
	asked  time.Duration // local time at which the request that is answered next was sent

	override   Override
	ending     ending
	forgiving  forgiving
	unreadable error // why the override cannot be read; nil: it can

	// urgent: the store lacks a document since the last answer, and should get it at once.
	// If the store does not take it, this is not repeated.
	urgent bool

	calls ownCalls
	retry retryAfter

	answers      int           // taken by this incarnation
	time         int64         // logical time of the last answer
	at           time.Duration // local time at which it came
	floor        int64         // logical time by the previous answer, when the last one came
	began        int64
	slept        time.Duration
	clamp        time.Duration
	others       []note        // of all live processors but this one
	told         []toldLimit   // of all live processors, in the order of the roster
	issuing      bool          // no shares: tokens are issued one by one
	frozen       time.Duration // a processor without a share is granted nothing until then
	used, offers int64         // own rates, as last observed
}

// configure sets the limit of this processor.
func (c *poolCeiling) configure(l ceiling.Config) { c.limit, c.law.Config = l.Limit, l }

// restart drops what an incarnation has seen, and keeps the documents.
func (c *poolCeiling) restart() {
	c.answers, c.law.Unsure = 0, false
	c.know(nil)
	c.calls.haste = haste{}
}

// know sets the notes of the other live processors.
func (c *poolCeiling) know(others []note) {
	c.others, c.law.Others, c.law.Lowest = others, len(others), ceiling.Rate{}
	for i := range others {
		if n := &others[i]; c.law.Lowest.Max == 0 || n.limit.Below(c.law.Lowest) {
			c.law.Lowest = n.limit
		}
	}
}

// take applies what an answer says about the limit; sent are the reports of its request.
func (c *poolCeiling) take(now time.Duration, sent []driver.DocumentReport, a *driver.Answer) {
	before := c.lacking()
	defer func() { c.urgent = c.lacking() && !before }()
	c.answers++
	if c.floor = c.logical(now); c.answers == 1 || time.Duration(c.floor-a.Time)*time.Microsecond > c.clamp {
		c.floor = 0 // another clock, or a clock that stood still
	}
	c.time, c.at, c.began, c.slept, c.clamp, c.issuing = a.Time, now, a.Epoch, a.Silence, driver.Clamp(a.Lease), a.Issuing
	c.frozen = now + a.Frozen
	c.takeNotes(a.Roster)
	for _, name := range c.docs.Take(sent, a.Documents) {
		doc := c.docs.Find(name).Document
		switch name {
		case limitDocument:
			c.takeOverride(now, doc)
		case rampDocument:
			c.law.Ramp, _ = rampDoc.Read(doc) // else it is Unreadable
		case backoffDocument:
			c.law.Backoff, _ = backoffDoc.Read(doc)
		}
	}
	c.forgiving.take(c.docs.Find(debtDocument).Document)
	c.pauses.take(c.moment(now), c.asked, c.docs.Find(pauseDocument))
	live := len(a.Roster)
	c.law.Unsure = c.answers == 1 && a.Epoch == 0 && live <= 1
	c.calls.lag, c.retry.live = ceiling.Lag(driver.Interval(a.Lease, live)), live
	c.law.Settle(state.Present{Now: a.Time, Epoch: a.Epoch, Silence: a.Silence.Microseconds(), Clamp: c.clamp})
}

// takeNotes reads the notes of a roster. The limits of all are kept for the log.
func (c *poolCeiling) takeNotes(roster []RosterRow) {
	others := make([]note, 0, len(c.others)) // leaves a copy of the processor unchanged
	c.retry.others, c.told = 0, make([]toldLimit, len(roster))
	for i := range roster {
		n := noteIn(roster[i].Note)
		if c.told[i] = toldLimitOf(&n); roster[i].ID == c.id {
			continue
		}
		c.retry.others = max(c.retry.others, n.retryAt)
		if n.limit.Max > 0 {
			others = append(others, n)
		}
	}
	c.know(others)
}

// lacking reports whether the store lacks a document, or has one that is out of date.
func (c *poolCeiling) lacking() bool { return c.docs.Lost() || c.law.Changed() }

// reports returns what a request says about the documents. random is drawn for this request.
func (c *poolCeiling) reports(now time.Duration, random uint16) []driver.DocumentReport {
	out := c.docs.Reports()
	if d, ok := c.pauses.propose(c.moment(now), c.docs.Find(pauseDocument), random); ok {
		out = pooldoc.Report(out, d)
	}
	if next, due := c.stepOverride(now); due {
		out = propose(out, &limitDoc, &c.docs, next, random)
	}
	if next, due := c.stepRamp(now); due {
		out = propose(out, &rampDoc, &c.docs, next, random)
	}
	if next, due := c.stepBackoff(now); due {
		out = propose(out, &backoffDoc, &c.docs, next, random)
	}
	return out
}

// propose adds the next version of a document to the reports of a request.
func propose[T any](list []driver.DocumentReport, doc *pooldoc.Doc[T], docs *pooldoc.Cache, value T, random uint16) []driver.DocumentReport {
	if d, ok := doc.Propose(docs.Find(doc.Name), value, random); ok {
		list = pooldoc.Report(list, d)
	}
	return list
}

// moment is the present, on the pool's clock as well.
func (c *poolCeiling) moment(now time.Duration) moment {
	m := moment{now: now, clamp: c.clamp}
	if m.clamp == 0 {
		m.clamp = driver.Clamp(DefaultLease)
	}
	// The clock of a new record may not be known before its second step (0). It may have
	// stood still for a processor without an answer for long.
	if c.answers > 0 && c.time > 0 && !c.lost(now) {
		m.logical, m.began, m.slept = c.logical(now), c.began, c.slept
	}
	return m
}

// lost reports whether there was no answer for longer than one step adds to the clock.
func (c *poolCeiling) lost(now time.Duration) bool {
	clamp := c.clamp
	if clamp == 0 {
		clamp = driver.Clamp(DefaultLease)
	}
	return now-c.at > clamp
}

// stepRamp returns the next step of the ramp, if one is due.
func (c *poolCeiling) stepRamp(now time.Duration) (next state.Shared[ramp.State], due bool) {
	if !c.law.Ramps || c.answers == 0 {
		return next, false
	}
	t := c.logical(now)
	if c.lost(now) {
		t = c.time // perhaps nobody asked meanwhile, and the logical clock stood still
	}
	used, offered := c.flow()
	if c.issuing && (now < c.frozen || c.pauses.has(now, "")) { // else the limiters know
		offered = 0
	}
	return c.law.NextRamp(ramp.Step{Now: t, Used: used, Offered: offered, Halted: offered == 0})
}

// flow returns the rates that the pool uses and is offered: the sums of the last reports of
// its processors.
func (c *poolCeiling) flow() (used, offered int64) {
	used, offered = c.used, c.offers
	for i := range c.others {
		used += c.others[i].used
		offered += c.others[i].offered
	}
	if c.issuing {
		// Nobody has a share: the pool is offered all that the ceiling allows, in whole
		// tokens. Processors may miss a few.
		offered = int64(c.tokens(c.at, 0) / float64(c.limit.Max) * ramp.Whole)
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

// logical returns the logical time: that of the last answer plus the local time since it
// came. It is late by the answer's travel time, so that no ceiling rises too early. On a
// Deferred store it is also late by the age of the previous step. It stands still rather
// than go back when an answer took longer than the previous one.
func (c *poolCeiling) logical(now time.Duration) int64 {
	return max(c.time+(now-c.at).Microseconds(), c.floor)
}

// tokens returns the ceiling in tokens per period of the configured limit: the lowest from
// now until ahead from now. 0: there is no limit.
func (c *poolCeiling) tokens(now, ahead time.Duration) float64 {
	return c.law.At(c.logical(now), c.logical(now+ahead))
}

// apply converts a share of the pool to a share of the configured limit, rounded down. It
// also returns the ceiling if that differs from the configured limit.
func (c *poolCeiling) apply(held Share, now, ahead time.Duration) (share int64, tokens float64) {
	tokens = c.tokens(now, ahead)
	if c.limit.Max == 0 || tokens == float64(c.limit.Max) {
		return int64(held), 0
	}
	// Less by more than floating-point numbers are rounded.
	share = int64(float64(held) * tokens / float64(c.limit.Max) * (1 - 0x1p-50))
	return max(0, min(share, limit.MaxShare)), tokens
}

// note returns what the processor reports to the others and to operators.
func (p *Processor) note(now time.Duration) string {
	n := p.ceiling.note(now)
	n.standing = p.standing(now)
	return n.String()
}

// note returns what the others need to know. With neither a ramp nor an adaptive limit,
// nobody needs to know what the processor uses.
func (c *poolCeiling) note(now time.Duration) note {
	var n note
	switch {
	case c.limit.Max == 0:
	case !c.law.Ramps && !c.law.Adapts:
		n = noteOf(c.law.Config, 0, 0)
	default:
		n = noteOf(c.law.Config, c.used, c.offers)
		c.tell(&n)
	}
	n.paused, n.retryAt = c.pauses.receipt(), c.retry.until(c.logical(now), now)
	return n
}

// readable returns why a document that limits this processor cannot be read; nil: all can.
func (c *poolCeiling) readable() error {
	if c.unreadable != nil {
		return fmt.Errorf("consensus: the limit cannot be read: %w", c.unreadable)
	}
	return c.pauses.readable()
}

package consensus

import (
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ramp"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A ceiling is what a processor knows of the limit in force: how many tokens the whole
// pool may use at a moment. It is the override if there is one, else the lowest limit that a
// live processor is configured with; and if the processor's own limit ramps, no more
// than where the pool's ramp stands.
//
// It has nothing to do with claims: a share is the same fraction of whatever the limit
// is. It has no clock and no I/O; it is a part of Processor.
type ceiling struct {
	id    string
	limit throttle.Limit // as configured; the zero Limit: there is nothing to move
	shelf shelf

	pauses pausing
	asked  time.Duration // local time at which the request was sent that is answered next

	override   Override
	unreadable error // why the override cannot be read; nil: it can

	ramp rampState
	// moved: ramp is not what is on record, because the pool has begun anew or the
	// store's clock is another one. It has to be proposed at once.
	moved bool
	// urgent: the store lacks a document since the last answer, and should get it at once.
	// One that does not take it is not told so more than once.
	urgent bool
	// foreign: the document on record is none that this release knows. The ramp stands at Min,
	// and nothing is proposed.
	foreign bool

	slow adapting
	told told

	answers      int           // taken by this incarnation
	time         int64         // logical time of the last answer
	at           time.Duration // local time at which it came
	floor        int64         // logical time as told when it came
	began        int64
	slept        time.Duration
	clamp        time.Duration
	others       []note // of all live processors but this one
	issuing      bool   // no shares: tokens are issued one by one
	unsure       bool   // the first answer cannot tell whether the pool has just begun
	used, offers int64  // own rates, as observed last
}

// restart forgets what an incarnation has seen, and keeps the documents.
func (c *ceiling) restart() {
	c.answers, c.others, c.unsure = 0, nil, false
	c.slow.haste = haste{}
}

// take takes what an answer says of the limit; sent are the reports of its request.
func (c *ceiling) take(now time.Duration, sent []DocumentReport, a *Answer) {
	before := c.lacking()
	defer func() { c.urgent = c.lacking() && !before }()
	c.answers++
	if c.floor = c.logical(now); c.answers == 1 || time.Duration(c.floor-a.Time)*time.Microsecond > c.clamp {
		c.floor = 0 // another clock, or a clock that stood still
	}
	c.time, c.at, c.began, c.slept, c.clamp, c.issuing = a.Time, now, a.Began, a.Slept, Clamp(a.Lease), a.Issuing
	c.others = make([]note, 0, len(c.others)) // what a copy of the processor has stays as it is
	live := 0
	c.told.others = 0
	var room noteWords
	for i := range a.Roster {
		row := &a.Roster[i]
		live++
		words, more, ok := room.split(row.Note)
		if !ok || row.ID == c.id {
			continue
		}
		c.told.others = max(c.told.others, aloneOf(words, more))
		if n, ok := readNote(words, more); ok {
			c.others = append(c.others, n)
		}
	}
	for _, name := range c.shelf.take(sent, a.Documents) {
		switch name {
		case limitDocument:
			c.override, c.unreadable = parseOverride(c.shelf.find(name).Body)
		case rampDocument:
			c.load()
		case ceilingDocument:
			c.slow.load(c.shelf.find(name).Body)
		}
	}
	c.pauses.take(c.moment(now), c.asked, c.shelf.find(pauseDocument))
	c.unsure = c.answers == 1 && a.Began == 0 && live <= 1
	c.slow.lag, c.told.live = cutLag(a.Lease, live), live
	c.settle(a)
	c.settleCeiling(a)
}

// load takes the ramp from the shelf.
func (c *ceiling) load() {
	r, err := parseRampState(c.shelf.find(rampDocument).Body)
	c.ramp, c.moved, c.foreign = r, false, err != nil
}

// settle brings the ramp into the present life of the pool and its clock. A ramp of
// another life begins anew, or resumes; one of another clock, of a store that was emptied
// or fell back to an older copy, goes on from where it stood, as does one that had arrived
// at Max and made no steps for long before the limit was changed.
func (c *ceiling) settle(a *Answer) {
	if !c.limit.Ramps() || c.foreign || c.unsure {
		return
	}
	cfg, s := c.config(), c.ramp.state
	none := s == (ramp.State{})
	anew := a.Began != 0 && a.Began != c.ramp.began && (c.ramp.began != 0 || s.At < a.Began)
	switch gap := time.Duration(a.Time-s.At) * time.Microsecond; {
	case none, anew:
		s, _ = cfg.Next(s, ramp.Step{Now: a.Time, Empty: true, Silence: a.Slept.Microseconds()})
	case cfg.Risen(s):
		return // it stands still whatever the time
	case (gap > c.stale() || gap < -c.clamp) && !skip(ruleResume):
		s = s.Resume(a.Time)
	default:
		if a.Began != 0 {
			c.ramp.began = a.Began
		}
		return
	}
	c.ramp.state, c.moved = s, true
	if a.Began != 0 {
		c.ramp.began = a.Began
	}
}

// lacking tells whether the store lacks a document, or has one that is out of date.
func (c *ceiling) lacking() bool {
	return c.shelf.lost() || c.limit.Ramps() && c.moved && !c.foreign || c.limit.Adapts() && c.slow.moved && !c.slow.foreign
}

// rampStep is the least time between two steps of the ramp: the pool makes one a second.
const rampStep = 900 * time.Millisecond

// reports returns what a request says of the documents. random is drawn for this request.
func (c *ceiling) reports(now time.Duration, random uint16) []DocumentReport {
	out := c.shelf.reports()
	if d := c.pauses.propose(c.moment(now), c.shelf.find(pauseDocument), random); d != nil {
		out = report(out, *d)
	}
	if body := c.step(now); body != nil {
		out = report(out, c.proposal(rampDocument, body, random))
	}
	if body := c.stepCeiling(now); body != nil {
		out = report(out, c.proposal(ceilingDocument, body, random))
	}
	return out
}

// proposal is the next version of a document.
func (c *ceiling) proposal(name string, body []byte, random uint16) DocumentReport {
	held := c.shelf.find(name)
	d := DocumentReport{Name: name, Version: NextVersion(held.Version, random), Base: held.Version, Body: body}
	if held.lost {
		d.Base = d.Version // given back, one step on
	}
	return d
}

// report puts d into a list in the place of another one of that document.
func report(list []DocumentReport, d DocumentReport) []DocumentReport {
	i := slices.IndexFunc(list, func(o DocumentReport) bool { return o.Name == d.Name })
	switch {
	case i >= 0:
		list[i] = d
	case len(list) < MaxDocuments:
		list = append(list, d)
	}
	return list
}

// moment is the present, on the pool's clock as well.
func (c *ceiling) moment(now time.Duration) moment {
	m := moment{now: now, clamp: c.clamp}
	if m.clamp == 0 {
		m.clamp = Clamp(DefaultLease)
	}
	// The clock of a new record may not be known before its second step (0), and it may
	// have stood still for who was not answered for long.
	if c.answers > 0 && c.time > 0 && now-c.at <= m.clamp {
		m.logical, m.began, m.slept = c.logical(now), c.began, c.slept
	}
	return m
}

// step returns the document after the next step of the ramp, or nil if none is due.
func (c *ceiling) step(now time.Duration) []byte {
	if !c.limit.Ramps() || c.answers == 0 || c.foreign || c.unsure || c.ramp.state == (ramp.State{}) {
		return nil
	}
	cfg, t := c.config(), c.logical(now)
	if now-c.at > c.clamp {
		t = c.time // perhaps nobody asked meanwhile, and the logical clock stood still
	}
	age := time.Duration(t-c.ramp.state.At) * time.Microsecond
	if !c.moved && (age < rampStep || cfg.Risen(c.ramp.state)) {
		return nil
	}
	used, offered := c.flow()
	s, _ := cfg.Next(c.ramp.state, ramp.Step{Now: t, Used: used, Offered: offered})
	body, err := rampState{s, c.ramp.began}.body()
	if err != nil {
		return nil
	}
	return body
}

// stale is the age of a ramp in which no step was made though the pool was there.
func (c *ceiling) stale() time.Duration { return max(2*c.clamp, 5*time.Second) }

// flow is what the pool uses of what it could use: each processor at the rates that it
// reported last.
func (c *ceiling) flow() (used, offered int64) {
	used, offered = c.used, c.offers
	for _, n := range c.others {
		used += n.used
		offered += n.offered
	}
	if c.issuing {
		// Nobody has a share: the pool is offered all that the ceiling allows, in whole
		// tokens that a processor may miss by a few.
		offered = int64(c.tokens(c.at, 0) / float64(c.limit.Max) * ramp.Whole)
		if used >= offered-offered/10 {
			used = max(used, offered)
		}
	}
	// What counts is their ratio, and whether there is traffic at all.
	if most := max(used, offered); most > ramp.Whole {
		scale := float64(ramp.Whole) / float64(most)
		used, offered = max(int64(float64(used)*scale), min(used, 1)), int64(float64(offered)*scale)
	}
	return used, offered
}

// logical is the logical time: that of the last answer, and the local time since it
// came. It is late by the way of the answer, so that no ceiling rises too early, and on a
// Deferred store by the age of the step before: it stands still rather than go back when
// that is more than last time.
func (c *ceiling) logical(now time.Duration) int64 {
	return max(c.time+(now-c.at).Microseconds(), c.floor)
}

// own is the configured limit.
func (c *ceiling) own() quota { return quota{int64(c.limit.Max), c.limit.Per} }

// quota is the limit in force, without the ramp.
func (c *ceiling) quota() quota {
	own := c.own()
	q := own
	for _, n := range c.others {
		if n.limit.below(q) && !skip(ruleLowest) {
			q = n.limit
		}
	}
	if c.override.Max > 0 {
		q = quota{int64(c.override.Max), c.override.Per}
		if q.per == 0 {
			q.per = own.per
		}
	}
	top := quota{own.max * MaxRaise, own.per}
	if c.limit.Hard && !skip(ruleHard) {
		top = own
	}
	if top.below(q) {
		q = top
	}
	return q
}

// config is the ramp to the limit in force. Min keeps its rate, but is never above Max.
func (c *ceiling) config() ramp.Config {
	cfg, q := c.limit.RampConfig(), c.quota()
	if q == c.own() {
		return cfg
	}
	low := quota{cfg.Min, cfg.Per}.tokens(q.per)
	if q.max > maxNoteTokens { // an override far above a large limit: any finer unit will do
		q.max, low = maxNoteTokens, low*maxNoteTokens/float64(q.max)
	}
	cfg.Max, cfg.Per = q.max, q.per
	cfg.Min = max(1, min(int64(low), cfg.Max))
	return cfg
}

// tokens returns the ceiling at now, in tokens per period of the configured limit: the
// lowest from now until ahead from now, so that one that falls is in force before it has
// fallen. 0: there is no limit.
func (c *ceiling) tokens(now, ahead time.Duration) float64 {
	if c.limit.Max == 0 {
		return 0
	}
	configured := c.unadapted(now, ahead)
	if !c.limit.Adapts() {
		return configured
	}
	return min(configured, c.adaptive(now))
}

// tokenEach is the ceiling of a hard limit that leaves an even share of the burst one token, in tokens per
// period of the configured limit. Below it none of the processors, if all are busy, could draw at all, and a
// ramp that waits for what is used would stay where it is. 0 for any other limit.
func (c *ceiling) tokenEach() float64 {
	if !c.limit.Hard {
		return 0
	}
	return float64(len(c.others)+1) * float64(c.limit.Max) / float64(c.limit.Burst) * (1 + 1e-6)
}

// unadapted is tokens whatever the called service refuses. There is a limit.
func (c *ceiling) unadapted(now, ahead time.Duration) float64 {
	q := c.quota()
	whole := q.tokens(c.limit.Per)
	if !c.limit.Ramps() {
		return whole
	}
	s := c.ramp.state
	if c.foreign || c.unsure || s == (ramp.State{}) {
		return min(whole, max(float64(c.limit.RampConfig().Min), c.tokenEach()))
	}
	line := c.config().Ceiling(s)
	at := min(line.At(c.logical(now)), line.At(c.logical(now+ahead))) * float64(c.limit.Per.Microseconds()) / float64(s.Per)
	return min(whole, max(at, c.tokenEach()))
}

// apply returns what a share of the pool comes to of the configured limit, rounded
// down, and the ceiling if that is another than the configured limit.
func (c *ceiling) apply(held Share, now, ahead time.Duration) (share int64, tokens float64) {
	tokens = c.tokens(now, ahead)
	if c.limit.Max == 0 || tokens == float64(c.limit.Max) {
		return int64(held), 0
	}
	// Less by more than floating-point numbers are rounded.
	share = int64(float64(held) * tokens / float64(c.limit.Max) * (1 - 0x1p-50))
	return max(0, min(share, throttle.MaxShare)), tokens
}

// note is what the processor tells the others. Without a ramp, and with a limit that is not
// adaptive, nobody needs to know what it uses, and the note is always the same.
func (c *ceiling) note(now time.Duration) string {
	var n note
	switch {
	case c.limit.Max == 0:
	case !c.limit.Ramps() && !c.limit.Adapts():
		n = noteOf(c.limit, 0, 0)
	default:
		n = noteOf(c.limit, c.used, c.offers)
		c.tell(&n)
	}
	n.paused, n.alone = c.pauses.receipt(), c.told.until(c.logical(now), now)
	return n.String()
}

// readable tells whether everything is understood that limits this processor.
func (c *ceiling) readable() error {
	if c.unreadable != nil {
		return fmt.Errorf("consensus: the limit cannot be told: %w", c.unreadable)
	}
	return c.pauses.readable()
}

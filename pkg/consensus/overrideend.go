package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// An override with an end is ended by the processors: whoever finds that it is over proposes, with its
// next request, that there is none. So it ends as it does when somebody clears it, once for all.
//
// Like the end of a pause, that of an override is on the pool's logical clock. Who saves it from outside does
// not know that clock: the first processor that reads it writes the time in. So it does when the pool had slept,
// and when the store has lost the record, whose next one has another clock.

// An overrideEnd is what the document "limit" says of the end of an override.
type overrideEnd struct {
	at   int64         // the logical time of writing, in microseconds; 0: not known yet
	left time.Duration // how long it goes on from then; 0: until it is cleared
}

// An ending is what a processor knows of the end of the override in force.
type ending struct {
	end time.Duration // local time; forever: it has none
}

// load takes an override that was just loaded.
func (e *ending) load(m moment, o *Override) { e.end = o.entry().ends(m) }

// entry is the override's end in the form of a pause.
func (o Override) entry() *entry { return &entry{at: o.ending.at, left: o.ending.left} }

// change returns the override that should take the place of the one in force, if another one should.
func (e *ending) change(m moment, o Override, held pooldoc.Held) (next Override, due bool) {
	switch {
	case o.Max == 0 || o.ending.left == 0 || m.logical == 0:
		return next, false
	case m.now >= e.end:
		return Override{}, true
	case o.ending.at == 0, held.Lost, o.entry().sleptThrough(m):
		o.ending = overrideEnd{at: m.logical, left: max(e.end-m.now, time.Microsecond)}
		return o, true
	}
	return next, false
}

// stepOverride returns what a request should say of the document "limit" beyond the version that is held.
func (c *poolCeiling) stepOverride(now time.Duration) (next Override, due bool) {
	if c.unreadable != nil {
		return next, false
	}
	return c.ending.change(c.moment(now), c.override, c.docs.Find(limitDocument))
}

// takeOverride puts the override of a document in force.
func (c *poolCeiling) takeOverride(now time.Duration, doc driver.Document) {
	c.override, c.unreadable = limitDoc.Read(doc)
	c.law.Override = c.override.rate()
	c.ending.load(c.moment(now), &c.override)
}

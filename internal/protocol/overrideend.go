package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The processors end an override: the first one to find that its end has come proposes, with its next request,
// that there is none. So it ends as if somebody had cleared it, once for all.
//
// Like the end of a pause, that of an override is on the pool's logical clock. A client that saves it does not
// know that clock: the first processor that reads it writes the time in. A processor also does so when the pool
// has slept, and when the store has lost the record: the next record has another clock.

// An overrideEnd is the end of an override in the document "limit".
type overrideEnd struct {
	at   int64         // the logical time of writing, in microseconds; 0: not known yet
	left time.Duration // how long it lasts from then; 0: until it is cleared
}

// An ending is what a processor knows of the end of the override in force.
type ending struct {
	end time.Duration // local time; forever: it has none
}

// load sets the end of an override that was just loaded.
func (e *ending) load(m moment, o *Override) { e.end = o.entry().ends(m) }

// entry is the override's end in the form of a pause.
func (o Override) entry() *entry {
	return &entry{reason: o.Reason, by: o.By, at: o.ending.at, left: o.ending.left, until: o.Until}
}

// change returns the override that should replace the one in force, if any.
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

// stepOverride returns the change of the document "limit" that a request should propose, if one is due.
func (l *poolCeiling) stepOverride(c *core, now time.Duration) (next Override, due bool) {
	if l.unreadable != nil {
		return next, false
	}
	return l.ending.change(c.clock.moment(now), l.override, c.docs.Find(limitDocument))
}

// takeOverride puts the override of a document in force.
func (l *poolCeiling) takeOverride(m moment, doc driver.Document) {
	l.override, l.unreadable = limitDoc.Read(doc)
	l.law.Override = l.override.rate()
	l.ending.load(m, &l.override)
}

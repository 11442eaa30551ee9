package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A QuotaOrder says until when a changed quota lasts, who changed it and why.
type QuotaOrder struct {
	// Until is when it ends, by the wall clock of the process that saved it; the zero Time: when it is cleared. The end in force is on the
	// pool's clock, like that of an override.
	Until time.Time
	// Reason says why, in up to 128 bytes of text, and By says who, in up to 64.
	Reason, By string

	ending overrideEnd
}

// Releases before this one refuse a document "quota" with unknown fields, but skip tags without a quota. So the order of a tag is the name
// of another one without a quota, which no tag can have: orderMark, and the order in JSON.
const orderMark = "\x01"

// name returns the order of a tag as the name of a tag without a quota.
func (o QuotaOrder) name(tag string) (string, error) {
	text, err := json.Marshal(entryJSON{tag, o.entry().end()})
	return orderMark + string(text), err
}

// parseOrder reads what name returns; ok is false for any other name.
func parseOrder(name string) (tag string, o QuotaOrder, ok bool, err error) {
	text, ok := strings.CutPrefix(name, orderMark)
	if !ok {
		return "", o, false, nil
	}
	var j entryJSON
	err = decodeStrictly([]byte(text), &j)
	if err != nil {
		return "", o, true, fmt.Errorf("consensus: the document %q has an order that cannot be read: %.200s", quotaDocument, err.Error())
	}
	e, err := j.read(quotaDocument)
	if err == nil {
		err = (&limit.Paused{Reason: e.reason, By: e.by}).Check(time.Time{})
	}
	return j.Tag, QuotaOrder{e.until, e.reason, e.by, overrideEnd{e.at, e.left}}, true, err
}

// entry is the order's end in the form of a pause.
func (o QuotaOrder) entry() *entry {
	return &entry{reason: o.Reason, by: o.By, at: o.ending.at, left: o.ending.left, until: o.Until}
}

// lasting returns the order as it is saved at now: with its remaining time. The error is a *RequestError.
func (o QuotaOrder) lasting(now time.Time) (QuotaOrder, error) {
	if err := (&limit.Paused{Reason: o.Reason, By: o.By}).Check(time.Time{}); err != nil {
		return o, badWords("of the quota", err)
	}
	if o.ending = (overrideEnd{}); o.Until.IsZero() {
		return o, nil
	}
	left, err := timeLeft("of the quota", o.Until, now)
	o.ending.left, o.Until = left, o.Until.UTC().Truncate(time.Second)
	return o, err
}

// A quotaEnding is what a processor knows of the ends of changed quotas.
type quotaEnding map[string]time.Duration // by tag, in local time

// endsOf returns the ends of changes that were just loaded.
func endsOf(m moment, c *QuotaChanges) quotaEnding {
	ends := quotaEnding{}
	for tag, o := range c.Orders {
		ends[tag] = o.entry().ends(m)
	}
	return ends
}

// stepChanges returns the change of the document "quota" that a request should propose, if one is due: changes end as an override does.
func (t *tagging) stepChanges(c *core, now time.Duration) (next QuotaChanges, due bool) {
	m, held := c.clock.moment(now), c.docs.Find(quotaDocument)
	if t.unreadable != nil || m.logical == 0 {
		return next, false
	}
	next = t.changes
	for tag, o := range t.changes.Orders {
		switch end := t.ends[tag]; {
		case o.ending.left == 0:
		case m.now >= end:
			next, due = next.with(tag, nil, QuotaOrder{}), true
		case o.ending.at == 0, held.Lost, o.entry().sleptThrough(m):
			o.ending = overrideEnd{at: m.logical, left: max(end-m.now, time.Microsecond)}
			next, due = next.with(tag, next.Of(tag), o), true
		}
	}
	return next, due
}

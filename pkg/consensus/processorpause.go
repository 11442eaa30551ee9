package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Pause pauses the pool, or one tag of it, for d on the local clock; 0: until somebody resumes. It
// takes effect here at once, and is proposed with the next request, which is due at once.
// Member.Pause saves it beside the syncs, and proposes it only if that fails.
func (p *Processor) Pause(now, d time.Duration, tag, reason string) {
	s := stop{tag: tag, reason: reason, end: forever}
	if d > 0 {
		s.end = now + d
	}
	if !p.pauses.covered(now, s) {
		p.pauses.ask(s, 0)
		p.urgency = urgencyNow
	}
}

// Notify takes a notification. It returns an error for bytes of another release.
func (p *Processor) Notify(now time.Duration, news []byte) error {
	n, err := parseNotification(news)
	if err == nil && n.pauses != nil {
		p.notified(now, n)
	}
	return err
}

// pauseChange returns the document that records a call, and the notification of it. random is drawn
// for this change alone.
func (p *Processor) pauseChange(now time.Duration, c *pauseCall, from string, random uint16) (d driver.DocumentReport, news []byte, err error) {
	k, m, held := &p.pauses, p.clock.moment(now), p.docs.Find(pauseDocument)
	if k.unreadable != nil {
		return d, nil, k.readable()
	}
	n, version := k.recorded, k.version
	if c.recorded == 0 {
		n, version = k.written(m, false), driver.NextVersion(held.Version, random)
		if c.resume {
			n.resumed = version
			n.drop(c.stop.tag)
		} else if k.has(now, c.stop.tag) && !n.pauses(c.stop.tag) {
			k.forget(c.stop.tag)
			return d, nil, n.full(c.stop.tag, keptForOperators)
		}
	}
	body, err := n.body()
	if err != nil {
		return d, nil, err
	}
	c.made = append(c.made, version)
	if c.recorded == 0 {
		d = driver.DocumentReport{Name: pauseDocument, Version: version, Base: held.Version, Body: body}
	}
	flash := notification{from: from, version: version, pauses: &n}
	news, err = flash.encode()
	return d, news, err
}

// recorded takes a document that a call of Save or Load has shown to be on record.
func (p *Processor) recorded(now time.Duration, d driver.Document) {
	if d.Version <= p.docs.Find(d.Name).Version {
		return
	}
	p.docs.Put(d)
	p.pauses.replace(p.clock.moment(now), p.docs.Find(d.Name))
	if p.pauses.version >= p.pauses.notified.version {
		p.pauses.forgetNotified()
	}
}

// beginPause puts the pause of a call in force here. If done is true, nobody needs to be notified.
func (p *Processor) beginPause(now time.Duration, c *pauseCall) (done bool, err error) {
	k := &p.pauses
	if c.isLate(k) {
		return true, nil
	}
	if k.covered(now, c.stop) {
		c.recorded = k.version
		c.made = append(c.made, k.version)
		return false, nil
	}
	if c.stop.tag != "" && !k.has(now, c.stop.tag) {
		var n pauseList
		for _, s := range k.inForce(now) {
			n.entries = append(n.entries, entry{tag: s.tag})
		}
		if _, ok := n.with(entry{tag: c.stop.tag}, placesOfOperators); !ok {
			return true, n.full(c.stop.tag, keptForOperators)
		}
	}
	k.ask(c.stop, forever)
	return false, nil
}

// keptForOperators is why a pod may not pause one more tag.
const keptForOperators = "the rest of the room is for operators and the whole pool"

// isLate reports whether the call comes too late by the record.
func (c *pauseCall) isLate(k *pausing) bool { return c.since > 0 && k.recorded.resumed > c.since }

// refused takes the document found on record after the store did not save a call's change. The call
// is settled if it came too late, or if somebody else made the same change.
func (p *Processor) refused(now time.Duration, c *pauseCall, found driver.Document, conflict bool) (settled bool) {
	k := &p.pauses
	p.recorded(now, found)
	if c.late = c.isLate(k); c.late { // not known when it began
		k.forget(c.stop.tag)
		c.made = nil
		return true
	}
	if conflict && !c.resume && k.covered(now, c.stop) {
		c.recorded, c.made = k.version, append(c.made, k.version)
		return true
	}
	return false
}

// notified takes pushed pauses, and returns the version to confirm; 0: none.
func (p *Processor) notified(now time.Duration, n notification) Version {
	k := &p.pauses
	k.notify(p.clock.moment(now), n.version, n.pauses)
	return k.receipt()
}

// pauseEnd returns when the pause of a tag ends by itself; false: it does not, or there is none.
func (p *Processor) pauseEnd(now time.Duration, tag string) (end time.Duration, ok bool) {
	for _, s := range p.pauses.inForce(now) {
		if s.tag == tag && s.end != forever {
			return s.end, true
		}
	}
	return 0, false
}

package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Pause pauses the pool, or one tag of it, for d on the local clock; 0: until somebody resumes. It
// takes effect here at once, and is proposed with the next request, which is due at once.
// Member.Pause saves it beside the syncs, and proposes it only if that fails.
func (p *Processor) Pause(now, d time.Duration, tag, reason string) {
	s := LocalPause{Tag: tag, Reason: reason, End: Forever}
	if d > 0 {
		s.End = now + d
	}
	if !p.Pauses.covered(now, s) {
		p.Pauses.ask(s, 0)
		p.urgency = urgencyNow
	}
}

// Notify takes a notification. It returns an error for bytes of another release.
func (p *Processor) Notify(now time.Duration, news []byte) error {
	n, err := ParseNotification(news)
	if err == nil && n.Pauses != nil {
		p.Notified(now, n)
	}
	return err
}

// PauseChange returns the document that records a call, and the notification of it. random is drawn
// for this change alone.
func (p *Processor) PauseChange(now time.Duration, c *PauseCall, from string, random uint16) (d driver.DocumentReport, news []byte, err error) {
	k, m, held := &p.Pauses, p.clock.moment(now), p.docs.Find(pauseDocument)
	if k.unreadable != nil {
		return d, nil, k.readable()
	}
	n, version := k.recorded, k.Version
	if c.Recorded == 0 {
		n, version = k.written(m, false), driver.NextVersion(held.Version, random)
		if c.Resume {
			n.resumed = version
			n.drop(c.Stop.Tag)
		} else if k.has(now, c.Stop.Tag) && !n.pauses(c.Stop.Tag) {
			k.Forget(c.Stop.Tag)
			return d, nil, n.full(c.Stop.Tag, keptForOperators)
		}
	}
	body, err := n.body()
	if err != nil {
		return d, nil, err
	}
	c.Made = append(c.Made, version)
	if c.Recorded == 0 {
		d = driver.DocumentReport{Name: pauseDocument, Version: version, Base: held.Version, Body: body}
	}
	flash := Notification{From: from, Version: version, Pauses: &n}
	news, err = flash.Encode()
	return d, news, err
}

// Recorded takes a document that a call of Save or Load has shown to be on record.
func (p *Processor) Recorded(now time.Duration, d driver.Document) {
	if d.Version <= p.docs.Find(d.Name).Version {
		return
	}
	p.docs.Put(d)
	p.Pauses.replace(p.clock.moment(now), p.docs.Find(d.Name))
	if p.Pauses.Version >= p.Pauses.notified.version {
		p.Pauses.forgetNotified()
	}
}

// BeginPause puts the pause of a call in force here. If done is true, nobody needs to be notified.
func (p *Processor) BeginPause(now time.Duration, c *PauseCall) (done bool, err error) {
	k := &p.Pauses
	if k.covered(now, c.Stop) {
		c.Recorded = k.Version
		c.Made = append(c.Made, k.Version)
		return false, nil
	}
	if !k.has(now, c.Stop.Tag) {
		var n pauseList
		for _, s := range k.inForce(now) {
			n.entries = append(n.entries, entry{tag: s.Tag})
		}
		if _, ok := n.with(entry{tag: c.Stop.Tag}, placesOfOperators); !ok {
			return true, n.full(c.Stop.Tag, keptForOperators)
		}
	}
	k.ask(c.Stop, Forever)
	return false, nil
}

// keptForOperators is why a pod may not pause one more tag.
const keptForOperators = "the rest of the room is for operators and the whole pool"

// Refused takes the document found on record after the store did not save a call's change. The call
// is settled if somebody else made the same change.
func (p *Processor) Refused(now time.Duration, c *PauseCall, found driver.Document, conflict bool) (settled bool) {
	k := &p.Pauses
	p.Recorded(now, found)
	if conflict && !c.Resume && k.covered(now, c.Stop) {
		c.Recorded, c.Made = k.Version, append(c.Made, k.Version)
		return true
	}
	return false
}

// Notified takes pushed pauses, and returns the version to confirm; 0: none.
func (p *Processor) Notified(now time.Duration, n Notification) driver.Version {
	k := &p.Pauses
	k.notify(p.clock.moment(now), n.Version, n.Pauses)
	return k.receipt()
}

// PauseEnd returns when the pause of a tag ends by itself; false: it does not, or there is none.
func (p *Processor) PauseEnd(now time.Duration, tag string) (end time.Duration, ok bool) {
	for _, s := range p.Pauses.inForce(now) {
		if s.Tag == tag && s.End != Forever {
			return s.End, true
		}
	}
	return 0, false
}

// A PauseCall is one call of Pause or Resume under way.
type PauseCall struct {
	Stop     LocalPause // a Resume uses only the tag
	Resume   bool
	Made     []driver.Version // pushed versions that contain this change
	Recorded driver.Version   // version on record; 0: none yet
}

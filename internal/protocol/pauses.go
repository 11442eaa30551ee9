package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A pausing is the part of a processor that knows the pauses of the pool, and what leads to one.
type pausing struct {
	Version    driver.Version // of the pauseList
	recorded   pauseList      // as on record
	stops      []LocalPause   // the same on the local clock, in the same order
	unreadable error          // why the document cannot be read; nil: it can
	// stale: the record says less than this processor knows, and must be written again.
	stale bool
	// notified came in a notification and is not known to be on record. It can only stop, and is
	// dropped when an answer shows the record.
	notified struct {
		version driver.Version
		stops   []LocalPause
		at      time.Duration
	}
	// resumed lists the versions of the last resumptions, from recent notifications. They may be of
	// different records, whose versions cannot be compared.
	resumed []driver.Version
	// wishes are own pauses that go on. They are proposed until they are on record, and again when
	// they vanish because somebody restored a wiped store's older document.
	wishes []wish
	retry  retryAfter
}

// A wish is a pause requested at this processor.
type wish struct {
	LocalPause

	base     driver.Version   // of the known record at the time of the request
	resumed  []driver.Version // versions of earlier resumptions, from notifications
	quiet    time.Duration    // not proposed before: it is being saved
	proposed bool             // or saved
	own      bool             // it was requested here, and not read from a record
}

// notifiedFor is how long a notification counts although answers do not show it. The process that
// pushed it saves it at the same time, or has just done so.
func notifiedFor(lease time.Duration) time.Duration { return SyncTimeout(lease) }

func (*pausing) restart() {}

// report proposes what should be on record, and reports the receipt.
func (p *pausing) report(c *core, now time.Duration, req *request) {
	if d, ok := p.propose(c.clock.moment(now), c.docs.Find(pauseDocument), uint16(req.Nonce)); ok {
		req.Documents = pooldoc.Report(req.Documents, d)
	}
	req.paused = p.has(now, "")
	req.note.Paused, req.note.retryAt = p.receipt(), p.retry.until(c.clock.logical(now), now)
}

// take takes the pauses on record, and what the called service has asked of others.
func (p *pausing) take(c *core, now time.Duration, a *driver.Answer) urgency {
	p.retry.live, p.retry.others = len(a.Roster), 0
	for n := range c.others {
		p.retry.others = max(p.retry.others, n.retryAt)
	}
	p.load(c.clock.moment(now), c.sent.at, c.docs.Find(pauseDocument))
	return urgencyNone
}

// load takes the document of an answer, which is held now. asked is when the request was sent.
func (p *pausing) load(m moment, asked time.Duration, held pooldoc.Held) {
	switch {
	case held.Version != p.Version:
		p.replace(m, held)
	case !held.Lost && p.unreadable == nil:
		p.follow(m)
	}
	if held.Lost && p.unreadable == nil {
		p.obey(m, &held.Seen)
	}
	if h := &p.notified; p.Version >= h.version || asked >= h.at+notifiedFor(4*m.clamp) {
		p.forgetNotified()
	}
	p.fulfil(m)
}

// fulfil ends the wishes that have expired, or that somebody has ended.
func (p *pausing) fulfil(m moment) {
	p.wishes = slices.DeleteFunc(slices.Clone(p.wishes), func(w wish) bool { // a copy of the processor keeps its own
		return p.resumes(&w) || m.now >= w.End
	})
}

// forgetNotified drops the notification: its pause is on record, or never will be.
func (p *pausing) forgetNotified() { p.notified.version, p.notified.stops = 0, nil }

// maxResumed is how many resumptions from notifications are remembered.
const maxResumed = 8

// remember adds resumptions to a list, which others may share.
func remember(list []driver.Version, more ...driver.Version) []driver.Version {
	list = slices.Clone(list)
	for _, r := range more {
		if r > 0 && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list[max(0, len(list)-maxResumed):]
}

// resumes reports whether somebody has resumed since a pause was requested, by the record.
// Resumptions known at that time do not count. Earlier ones do not count either while a
// notification does. The record has the last word: a notification may be of a record that the store
// has lost, with versions above all new ones for a long time.
func (p *pausing) resumes(w *wish) bool {
	r := p.recorded.resumed
	if r <= w.base || slices.Contains(w.resumed, r) {
		return false
	}
	earlier := slices.ContainsFunc(w.resumed, func(h driver.Version) bool { return r < h })
	return !earlier || p.notified.version == 0
}

// replace puts another recorded document in force.
func (p *pausing) replace(m moment, held pooldoc.Held) {
	n, err := PauseDoc.Read(held.Document)
	known := p.Version
	p.Version, p.unreadable, p.stale = held.Version, err, false
	if err != nil {
		return // nothing is renewed; the previous pauses stay
	}
	before := p.known(m)
	p.recorded, p.stops = n, nil
	for i := range n.entries {
		e := &n.entries[i]
		p.stops = append(p.stops, LocalPause{e.tag, e.reason, e.by, e.ends(m), e.until})
		p.stale = p.stale || e.left > 0 && (e.at == 0 && m.logical > 0 || e.sleptThrough(m))
	}
	if n.resumed <= known {
		p.keep(m, before)
	}
}

// known lists the previously recorded pauses, with their ends on the processor's own clock. By the
// clock of a store that has started over, all earlier pauses look as if they were over. Only the
// pool's time asleep may have become known since.
func (p *pausing) known(m moment) []LocalPause {
	list := slices.Clone(p.stops)
	for i := range p.recorded.entries {
		if e := &p.recorded.entries[i]; e.sleptThrough(m) {
			list[i].End = min(list[i].End, e.ends(m))
		}
	}
	return list
}

// keep requests the pauses that were on record before and are missing now, although nobody has
// resumed since. The store has fallen back, and somebody has restored an older document. A pause
// that ends within a clamp may be over for its authors.
func (p *pausing) keep(m moment, before []LocalPause) {
	for _, s := range before {
		if s.End-m.clamp > m.now && !p.covered(m.now, s) {
			p.wish(wish{LocalPause: s, base: p.Version})
		}
	}
}

// obey merges the recorded pauses into the document that is about to replace the record, because
// their authors may be gone. So it takes the version of the last resumption, and the pauses that
// nobody has ended since. A pause that somebody has ended replaces no wish: the wish would end with
// it. instead is zero if the store has no pauses on record.
func (p *pausing) obey(m moment, instead *driver.Document) {
	n, err := PauseDoc.Read(*instead)
	if err != nil {
		return
	}
	p.recorded.resumed = max(p.recorded.resumed, n.resumed)
	p.fulfil(m)
	for i := range n.entries {
		e := &n.entries[i]
		s := LocalPause{e.tag, e.reason, e.by, e.ends(m), e.until}
		w := wish{LocalPause: s, base: instead.Version}
		wished := slices.ContainsFunc(p.wishes, func(w wish) bool { return w.Tag == s.Tag && s.End <= w.End })
		if !p.covered(m.now, s) && !wished && !p.resumes(&w) {
			p.wish(w)
		}
	}
}

// follow uses the logical clock. If that has lost time, this processor's own end of the pause is
// more accurate, and it has the document written again.
func (p *pausing) follow(m moment) {
	p.stops = slices.Clone(p.stops)
	for i := range p.recorded.entries {
		e, s := &p.recorded.entries[i], &p.stops[i]
		if e.left == 0 {
			continue
		}
		if e.at == 0 {
			p.stale = p.stale || s.End > m.now
			continue
		}
		end := e.ends(m)
		if end-s.End > m.clamp {
			p.stale = p.stale || s.End > m.now
			continue
		}
		s.End = end
		p.stale = p.stale || e.sleptThrough(m) && end > m.now
	}
}

// notify takes a notification.
func (p *pausing) notify(m moment, version driver.Version, n *pauseList) {
	if version <= p.Version || version <= p.notified.version {
		return // late, or known already
	}
	stops := slices.Clone(p.notified.stops)
	for i := range n.entries {
		e := &n.entries[i]
		stops = later(stops, LocalPause{e.tag, e.reason, e.by, e.endsFromNow(m), e.until})
	}
	p.notified.version, p.notified.stops, p.notified.at = version, stops, m.now
	p.resumed = remember(p.resumed, n.resumed)
}

// inForce lists the pauses in force at now, each tag once.
func (p *pausing) inForce(now time.Duration) (list []LocalPause) {
	add := func(s LocalPause) {
		if s.End > now {
			list = later(list, s)
		}
	}
	for _, s := range p.stops {
		add(s)
	}
	for _, s := range p.notified.stops {
		add(s)
	}
	for _, w := range p.wishes {
		add(w.LocalPause)
	}
	return list
}

// has reports whether a tag is paused at now.
func (p *pausing) has(now time.Duration, tag string) bool {
	for _, s := range p.inForce(now) {
		if s.Tag == tag {
			return true
		}
	}
	return false
}

// receipt is the version for which this processor has stopped; 0: none.
func (p *pausing) receipt() driver.Version {
	if p.unreadable != nil {
		return 0
	}
	return max(p.Version, p.notified.version)
}

// covered reports whether a recorded pause makes another one needless. Extensions below 5 %, and at
// most 0.25 s, are not broadcast. Otherwise a hundred processors refused at the same time would
// send each other a hundred ends.
func (p *pausing) covered(now time.Duration, s LocalPause) bool {
	for _, o := range p.stops {
		if o.Tag == s.Tag && o.End > now && (o.End == Forever || s.End != Forever && s.End-o.End <= slack(s.End-now)) {
			return true
		}
	}
	return false
}

// slack is the largest extension that is not broadcast: half of the promise. A pause covered by a
// notification may be covered twice, when the notified pause is not recorded because a third one
// covers it.
func slack(left time.Duration) time.Duration { return min(left/40, 125*time.Millisecond) }

// ask requests a pause now. It is not proposed before quiet.
func (p *pausing) ask(s LocalPause, quiet time.Duration) {
	p.wish(wish{LocalPause: s, base: p.Version, resumed: p.resumed, quiet: quiet, own: true})
}

// wish requests a pause, which counts at once. A later wish for the same tag takes its place.
func (p *pausing) wish(w wish) {
	for i, o := range p.wishes {
		if o.Tag == w.Tag {
			p.wishes = slices.Clone(p.wishes)
			w.resumed = remember(o.resumed, w.resumed...)
			if o.End > w.End {
				w.LocalPause = o.LocalPause
			}
			p.wishes[i] = w
			return
		}
	}
	p.wishes = append(slices.Clip(p.wishes), w)
}

// Release allows the wish for a tag to be proposed, if it is not on record.
func (p *pausing) Release(tag string, saved bool) {
	p.wishes = slices.Clone(p.wishes)
	for i := range p.wishes {
		if w := &p.wishes[i]; w.Tag == tag {
			w.quiet, w.proposed = 0, w.proposed || saved
		}
	}
}

// Forget ends the wish for a tag.
func (p *pausing) Forget(tag string) {
	p.wishes = slices.DeleteFunc(slices.Clone(p.wishes), func(w wish) bool { return w.Tag == tag })
}

// lacks reports whether a wish is not on record. Others may read a proposed wish with an end up to
// a clamp earlier.
func (p *pausing) lacks(m moment, w *wish) bool {
	s := w.LocalPause
	if w.proposed && s.End != Forever {
		s.End -= m.clamp
	}
	return !p.covered(m.now, s) && m.now < s.End
}

// written returns the document that should be on record at a moment: the recorded pauses that are
// not over, and the wishes. Pauses of a lost or stale record are written by the current clock.
func (p *pausing) written(m moment, again bool) pauseList {
	n := pauseList{resumed: p.recorded.resumed}
	for i, s := range p.stops {
		switch {
		case s.End <= m.now:
		case again || p.stale:
			n.entries = append(n.entries, s.entry(m))
		default:
			n.entries = append(n.entries, p.recorded.entries[i])
		}
	}
	for i := range p.wishes {
		w := &p.wishes[i]
		if !p.lacks(m, w) {
			continue
		}
		spare := placesOfPool
		if w.own {
			spare = placesOfOperators
		}
		if next, ok := n.with(w.entry(m), spare); ok {
			n = next
		}
	}
	return n
}

// pauses reports whether the list has the pause of a tag.
func (n *pauseList) pauses(tag string) bool {
	return slices.ContainsFunc(n.entries, func(e entry) bool { return e.tag == tag })
}

// propose returns what a request says of the document beyond the held version, if anything. random
// is drawn for this request.
func (p *pausing) propose(m moment, held pooldoc.Held, random uint16) (d driver.DocumentReport, ok bool) {
	due := func(w wish) bool { return m.now >= w.quiet && p.lacks(m, &w) }
	again := p.stale || held.Lost
	if p.unreadable != nil || !again && !slices.ContainsFunc(p.wishes, due) {
		return d, false
	}
	n := p.written(m, held.Lost)
	if !again && !slices.ContainsFunc(p.wishes, func(w wish) bool { return due(w) && n.pauses(w.Tag) }) {
		return d, false // there is no room
	}
	d, ok = PauseDoc.Propose(held, n, random)
	if !ok {
		return d, false // there are too many
	}
	p.wishes = slices.Clone(p.wishes) // a copy of the processor keeps its own
	for i := range p.wishes {
		p.wishes[i].proposed = true
	}
	return d, true
}

// withdraw takes the proposal out of the reports of a repeated request. The time left of a pause
// was right when it was first sent.
func (p *pausing) withdraw(reports []driver.DocumentReport, held pooldoc.Held) []driver.DocumentReport {
	i := slices.IndexFunc(reports, func(d driver.DocumentReport) bool { return d.Name == pauseDocument && len(d.Body) > 0 })
	if i < 0 {
		return reports
	}
	if reports = slices.Clone(reports); held.Version == 0 {
		return slices.Delete(reports, i, i+1)
	}
	reports[i] = driver.DocumentReport{Name: pauseDocument, Version: held.Version}
	return reports
}

// readable returns an error for an unreadable document.
func (p *pausing) readable() error {
	if p.unreadable != nil {
		return fmt.Errorf("consensus: what is paused cannot be read: %w", p.unreadable)
	}
	return nil
}

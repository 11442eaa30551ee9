package consensus

import (
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
)

// A pausing is what a processor knows of the pauses of its pool. It has no clock and no
// I/O; it is a part of ceiling.
type pausing struct {
	version    Version // of the notice
	notice     notice  // as on record
	stops      []stop  // the same on the local clock, in the same order
	unreadable error   // why the document cannot be read; nil: it can
	// stale: what is on record says less than this processor knows, and is to be written anew.
	stale bool
	// heard was pushed and is not on record as far as is known. It can stop only, and is
	// forgotten when an answer shows what is on record.
	heard struct {
		version Version
		stops   []stop
		at      time.Duration
	}
	// resumed lists the versions by which somebody had resumed last, as news said lately. They may be of different
	// records, whose versions cannot be compared.
	resumed []Version
	// wishes are own pauses that go on. Those that are not on record, or no more because somebody
	// has given back what a wiped store knew before them, are proposed.
	wishes []wish
}

// A wish is a pause that was asked for at this processor.
type wish struct {
	stop

	base  Version       // of what was on record, as far as was known, when it was asked for
	heard []Version     // by which somebody had resumed before, as news said
	quiet time.Duration // it is not proposed before: it is being saved
	told  bool          // it was proposed or saved
}

// hearsayFor is how long news are believed although answers show nothing of them: whoever
// pushes them is saving them at the same time, or has just done so.
func hearsayFor(lease time.Duration) time.Duration { return SyncTimeout(lease) }

// take takes what an answer shows of the document that is on the shelf now. asked is when the
// request was sent.
func (p *pausing) take(m moment, asked time.Duration, held pooldoc.Held) {
	switch {
	case held.Version != p.version:
		p.load(m, held)
	case !held.Lost && p.unreadable == nil:
		p.follow(m)
	}
	if held.Lost && held.Seen.Version > 0 && p.unreadable == nil && !skip(rulePauseSeen) {
		p.heed(m, &held.Seen)
	}
	if h := &p.heard; h.version > 0 && (p.version >= h.version || asked >= h.at+hearsayFor(4*m.clamp)) {
		p.disbelieve()
	}
	p.fulfil(m)
}

// fulfil ends the wishes that are over, or that somebody has ended.
func (p *pausing) fulfil(m moment) {
	p.wishes = slices.DeleteFunc(slices.Clone(p.wishes), func(w wish) bool { // a copy of the processor keeps its own
		return p.resumes(&w) || m.now >= w.end
	})
}

// disbelieve forgets what was heard: it is on record, or will not be.
func (p *pausing) disbelieve() { p.heard.version, p.heard.stops = 0, nil }

// maxResumed is how many resumptions are remembered that news told of.
const maxResumed = 8

// remember adds resumptions to a list, which others may hold.
func remember(list []Version, more ...Version) []Version {
	list = slices.Clone(list)
	for _, r := range more {
		if r > 0 && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list[max(0, len(list)-maxResumed):]
}

// resumes tells whether somebody has resumed, as is on record, since a pause was asked for. The resumptions that were
// known then do not count, nor do earlier ones while news are believed. What is on record has the last word: news
// may be of a record that the store has lost since, whose versions are higher than all to come for a long time.
func (p *pausing) resumes(w *wish) bool {
	r := p.notice.resumed
	if r <= w.base || slices.Contains(w.heard, r) {
		return false
	}
	earlier := slices.ContainsFunc(w.heard, func(h Version) bool { return r < h })
	return !earlier || p.heard.version == 0
}

// load puts in force what is on record.
func (p *pausing) load(m moment, held pooldoc.Held) {
	n, err := pauseDoc.Read(held.Document)
	known := p.version
	p.version, p.unreadable, p.stale = held.Version, err, false
	if err != nil {
		return // nothing is renewed; what was known before goes on
	}
	before := p.known(m)
	p.notice, p.stops = n, nil
	for i := range n.entries {
		e := &n.entries[i]
		p.stops = append(p.stops, stop{e.tag, e.reason, e.ends(m), e.until})
		p.stale = p.stale || e.left > 0 && (e.at == 0 && m.logical > 0 || e.sleptThrough(m))
	}
	if n.resumed <= known && !skip(rulePauseKept) {
		p.keep(m, before)
	}
}

// known lists what was on record, as it looks at a moment: the first answer of a store may not have told how
// long the pool had slept. Otherwise the ends on the own clock count: the moment may be by the clock of a store that
// has begun anew, by which all that was written before looks as if it were over.
func (p *pausing) known(m moment) []stop {
	list := slices.Clone(p.stops)
	for i := range p.notice.entries {
		if e := &p.notice.entries[i]; e.sleptThrough(m) {
			list[i].end = min(list[i].end, e.ends(m))
		}
	}
	return list
}

// keep asks for pauses that were on record before, if they are missing from what is on record now although nobody
// has resumed since: the store has fallen back meanwhile, and somebody has given back what another part of the
// pool had made before. One that is over within a clamp may be so for those who wrote the document.
func (p *pausing) keep(m moment, before []stop) {
	for _, s := range before {
		replaced := skip(rulePauseLater) && slices.ContainsFunc(p.stops, func(o stop) bool { return o.tag == s.tag })
		if s.end-m.clamp > m.now && !p.covered(m.now, s) && !replaced {
			p.wish(wish{stop: s, base: p.version})
		}
	}
}

// heed takes what is on record where the store has lost what this processor knows, for what it gives back takes its place, and
// whoever wrote it may be gone: that somebody has resumed, and the pauses that nobody has ended since. One that somebody has
// ended takes no wish's place, which would end with it.
func (p *pausing) heed(m moment, instead *Document) {
	n, err := pauseDoc.Read(*instead)
	if err != nil {
		return
	}
	p.notice.resumed = max(p.notice.resumed, n.resumed)
	p.fulfil(m)
	for i := range n.entries {
		e := &n.entries[i]
		s := stop{e.tag, e.reason, e.ends(m), e.until}
		w := wish{stop: s, base: instead.Version}
		wished := slices.ContainsFunc(p.wishes, func(w wish) bool { return w.tag == s.tag && s.end <= w.end })
		if s.end > m.now && !p.covered(m.now, s) && !wished && !p.resumes(&w) {
			p.wish(w)
		}
	}
}

// follow goes by the logical clock, unless that has lost time: then this processor knows
// better how long a pause goes on, and writes it down.
func (p *pausing) follow(m moment) {
	p.stops = slices.Clone(p.stops)
	for i := range p.notice.entries {
		e, s := &p.notice.entries[i], &p.stops[i]
		if e.left == 0 {
			continue
		}
		if e.at == 0 {
			p.stale = p.stale || s.end > m.now
			continue
		}
		end := e.ends(m)
		if end-s.end > m.clamp {
			p.stale = p.stale || s.end > m.now
			continue
		}
		s.end = end
		p.stale = p.stale || e.sleptThrough(m) && end > m.now
	}
}

// hear takes what was pushed.
func (p *pausing) hear(m moment, version Version, n *notice) {
	if version <= p.version && !skip(rulePauseNews) || version <= p.heard.version {
		return // late, or heard before
	}
	stops := slices.Clone(p.heard.stops)
	for i := range n.entries {
		e := &n.entries[i]
		stops = later(stops, stop{e.tag, e.reason, e.heard(m), e.until})
	}
	p.heard.version, p.heard.stops, p.heard.at = version, stops, m.now
	p.resumed = remember(p.resumed, n.resumed)
}

// inForce lists what is paused at now, each tag once.
func (p *pausing) inForce(now time.Duration) (list []stop) {
	add := func(s stop) {
		if s.end > now {
			list = later(list, s)
		}
	}
	for _, s := range p.stops {
		add(s)
	}
	for _, s := range p.heard.stops {
		add(s)
	}
	for _, w := range p.wishes {
		add(w.stop)
	}
	return list
}

// receipt is the version that this processor has stopped for; 0: it knows of none.
func (p *pausing) receipt() Version {
	if p.unreadable != nil {
		return 0
	}
	return max(p.version, p.heard.version)
}

// covered tells whether what is in force already makes a pause needless: one that ends later
// by less than a twentieth, at most a quarter of a second, is not told again. A hundred
// processors that are refused at the same time would else tell each other a hundred ends.
func (p *pausing) covered(now time.Duration, s stop) bool {
	for _, o := range p.stops {
		if o.tag == s.tag && o.end > now && !skip(rulePauseLater) && (o.end == forever || s.end != forever && s.end-o.end <= slack(s.end-now)) {
			return true
		}
	}
	return false
}

// slack is by how much an end may be later and not be told: half of what is promised, for it may
// be covered by one that was heard of and then is not recorded, because a third covers that.
func slack(left time.Duration) time.Duration { return min(left/40, 125*time.Millisecond) }

// ask asks for a pause now. It is not proposed before quiet.
func (p *pausing) ask(s stop, quiet time.Duration) {
	p.wish(wish{stop: s, base: p.version, heard: p.resumed, quiet: quiet})
}

// wish asks for a pause, which counts at once. Its place is taken by a later one of the same tag.
func (p *pausing) wish(w wish) {
	for i, o := range p.wishes {
		if o.tag == w.tag {
			p.wishes = slices.Clone(p.wishes)
			w.heard = remember(o.heard, w.heard...)
			if o.end > w.end {
				w.stop = o.stop
			}
			p.wishes[i] = w
			return
		}
	}
	p.wishes = append(slices.Clip(p.wishes), w)
}

// release lets the wish for a tag be proposed, if it is not on record. told: it was saved.
func (p *pausing) release(tag string, told bool) {
	p.wishes = slices.Clone(p.wishes)
	for i := range p.wishes {
		if w := &p.wishes[i]; w.tag == tag {
			w.quiet, w.told = 0, w.told || told
		}
	}
}

// forget ends the wish for a tag.
func (p *pausing) forget(tag string) {
	p.wishes = slices.DeleteFunc(slices.Clone(p.wishes), func(w wish) bool { return w.tag == tag })
}

// lacks tells whether a wish is not on record. What was told may be read with an end that is up to
// a clamp earlier.
func (p *pausing) lacks(m moment, w *wish) bool {
	s := w.stop
	if w.told && s.end != forever {
		s.end -= m.clamp
	}
	return !p.covered(m.now, s) && m.now < s.end
}

// written returns what is to be on record at a moment: what is there, written anew if it is
// stale or on another clock, without what is over, and with the wishes.
func (p *pausing) written(m moment, anew bool) notice {
	n := notice{resumed: p.notice.resumed}
	for i, s := range p.stops {
		switch {
		case s.end <= m.now:
		case anew || p.stale:
			n.entries = append(n.entries, s.entry(m))
		default:
			n.entries = append(n.entries, p.notice.entries[i])
		}
	}
	for i := range p.wishes {
		w := &p.wishes[i]
		if !p.lacks(m, w) {
			continue
		}
		n.entries = slices.DeleteFunc(n.entries, func(e entry) bool { return e.tag == w.tag })
		n.entries = append(n.entries, w.entry(m))
	}
	return n
}

// propose returns what a request says of the document beyond the version that is held, if
// there is anything. random is drawn for this request.
func (p *pausing) propose(m moment, held pooldoc.Held, random uint16) (d DocumentReport, ok bool) {
	wished := slices.ContainsFunc(p.wishes, func(w wish) bool { return m.now >= w.quiet && p.lacks(m, &w) })
	if p.unreadable != nil || !p.stale && !held.Lost && !wished {
		return d, false
	}
	d, ok = pauseDoc.Propose(held, p.written(m, held.Lost && !skip(rulePauseClock)), random)
	if !ok {
		return d, false // there are too many
	}
	p.wishes = slices.Clone(p.wishes) // a copy of the processor keeps its own
	for i := range p.wishes {
		p.wishes[i].told = true
	}
	return d, true
}

// withdraw takes what is proposed out of the reports of a request that is sent once more: how
// long a pause goes on was true when it was sent first.
func (p *pausing) withdraw(reports []DocumentReport, held pooldoc.Held) []DocumentReport {
	i := slices.IndexFunc(reports, func(d DocumentReport) bool { return d.Name == pauseDocument && len(d.Body) > 0 })
	if i < 0 {
		return reports
	}
	if reports = slices.Clone(reports); held.Version == 0 {
		return slices.Delete(reports, i, i+1)
	}
	reports[i] = DocumentReport{Name: pauseDocument, Version: held.Version}
	return reports
}

// readable tells whether the document is understood.
func (p *pausing) readable() error {
	if p.unreadable != nil {
		return fmt.Errorf("consensus: what is paused cannot be told: %w", p.unreadable)
	}
	return nil
}

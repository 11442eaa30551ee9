package throttle

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairslots"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// A slotTags is the state of an InFlight for tags. The lock of the InFlight guards it, but for views.
//
// Waiters stand in the queue of the InFlight in the order of package fairslots. If a waiter's tag may use no more slots, it is set aside there,
// and others pass it. So at most as many waiters of a tag are ready as it has slots left.
type slotTags struct {
	f          *InFlight
	configured Quotas
	quotas     Quotas // in force
	pooled     bool
	share      int64 // without a pool: this processor's part

	tags    map[string]*slotTag
	former  map[string]*slotTag   // that have lost their quota while calls of them are in flight
	waiting map[*slotTag]struct{} // those for which callers wait
	short   []*slotTag            // those that are short
	weights int                   // of all tags
	served  float64               // start of the tag that was served last
	waited  int64                 // for how long there were callers that wait, up to ticked
	ticked  int64
	places  map[*waiter]slotPlace
	views   sync.Map // of names, *slotView
	known   int      // how many
	other   *slotView
	era     int64 // counts the changes of quotas
	now     int64 // when slots were last looked for
	pauses  []Paused
	timer   sharing.Timer // for the end of the first of them
	// turnedAway counts slots that were refused because a tag may have no more.
	turnedAway int64
}

// A slotPlace is a waiter in the queue.
type slotPlace struct {
	view   *slotView
	tags   []*slotTag
	barred bool // by the pause of a tag
}

// tagsKept is how many idle tags without a quota by name are kept.
const tagsKept = 1024

// newSlotTags returns the slotTags of an InFlight with quotas, which are valid, and makes its queue one of tags.
func newSlotTags(f *InFlight, q Quotas) *slotTags {
	s := &slotTags{
		f: f, configured: q, quotas: q, share: wholeShare, tags: map[string]*slotTag{}, former: map[string]*slotTag{}, waiting: map[*slotTag]struct{}{},
		places: map[*waiter]slotPlace{},
	}
	switch by := f.sharer.(type) {
	case nil:
	case *static:
		s.share = by.share
	default:
		s.pooled = true
	}
	f.queue.MakeOrdered()
	f.tags = s
	s.other = s.newView("", []string{""})
	s.other.live()
	return s
}

// part returns this processor's part of a number of slots without a pool.
func (s *slotTags) part(n int) int { return sharing.SlotsOf(s.share, n) }

// tagOf returns the tag that a name counts for.
func (s *slotTags) tagOf(name string) *slotTag {
	own, q := s.quotas.Find(name)
	if g := s.tags[own]; g != nil {
		return g
	}
	if g := s.former[own]; g != nil {
		delete(s.former, own)
		g.gone = false
		s.keep(g, q)
		return g
	}
	return s.newTag(own, q)
}

// forget drops idle tags if there are many. Others are as many as calls that are in flight or wait, at most.
func (s *slotTags) forget() {
	if len(s.tags) <= tagsKept {
		return
	}
	for name, g := range s.tags {
		if _, configured := s.quotas.Tags[name]; !configured && name != "" && g.idle(s.pooled) {
			g.gone = true
			s.weights -= g.quota.Weight
			delete(s.tags, name)
		}
	}
}

// barred returns the pause that holds one of the tags.
func (s *slotTags) barred(v *slotView) (p Paused, held bool) {
	if len(s.pauses) == 0 {
		return Paused{}, false
	}
	now := s.f.gate.Present()
	for _, p := range s.pauses {
		if slices.Contains(v.names, p.Tag) && (p.Until.IsZero() || p.Until.After(now)) {
			return p, true
		}
	}
	return Paused{}, false
}

// fits reports whether the tags have slots that nobody else waits for.
func (s *slotTags) fits(tags []*slotTag, least int) bool {
	for _, g := range tags {
		if g.short || s.spare(g) < least {
			return false
		}
	}
	return true
}

// admit makes a waiter ready, or sets it aside.
func (s *slotTags) admit(w *waiter) {
	at := s.places[w]
	_, barred := s.barred(at.view)
	s.bar(w, &at, barred)
	if !barred && s.fits(at.tags, w.Least) {
		for _, g := range at.tags {
			g.ready += w.Least
			g.note(0)
		}
		s.f.queue.Recall(w)
		return
	}
	s.f.queue.SetAside(w)
	if barred {
		return // it holds back nobody
	}
	for _, g := range at.tags {
		g.note(0)
		if !g.short && s.spare(g) < w.Least && w.Least <= g.quota.Total {
			g.short = true
			s.short = append(s.short, g)
		}
	}
}

// bar counts a waiter that a pause holds: it asks for nothing meanwhile.
func (s *slotTags) bar(w *waiter, at *slotPlace, barred bool) {
	if at.barred == barred {
		return
	}
	n := w.Least
	if !barred {
		n = -n
	}
	for _, g := range at.tags {
		g.barred += n
	}
	at.barred = barred
	s.places[w] = *at
}

// forgive ends that tags are short.
func (s *slotTags) forgive() {
	for _, g := range s.short {
		g.short = false
	}
	s.short = s.short[:0]
}

// promote makes waiters ready for which there are slots of their tags now.
func (s *slotTags) promote() {
	s.forgive()
	for _, w := range slices.Collect(s.f.queue.Aside()) {
		s.admit(w)
	}
}

// refit judges all waiters again, because what tags may use has changed.
func (s *slotTags) refit() {
	all := make([]*waiter, 0, len(s.places))
	for w := range s.places {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *waiter) int { return cmp.Compare(a.Age, b.Age) })
	s.forgive()
	for g := range s.waiting {
		g.ready = 0
	}
	for _, w := range all {
		s.admit(w)
	}
	s.f.noteHeld()
	s.f.serve()
}

// order brings the starts of the tags that wait up to now.
func (s *slotTags) order() {
	now := s.f.gate.Now()
	for g := range s.waiting {
		s.f.queue.SetStart(g.tagQueue, s.start(g, now))
	}
}

// setQuotas puts quotas in force. Calls in flight count where they were drawn.
func (s *slotTags) setQuotas(q Quotas) {
	s.quotas = q
	s.era++
	s.weights = 0
	for name, g := range s.tags {
		if own, quota := q.Find(name); own == name {
			s.keep(g, quota)
			continue
		}
		g.gone, g.quota = true, Quota{}
		g.granted, g.free, g.grant = 0, 0, sharing.TagSlotGrant{}
		delete(s.tags, name)
		if g.running > 0 {
			s.former[name] = g
		}
	}
	s.forget()
	for w, at := range s.places {
		s.bar(w, &at, false)
		s.enter(w, at.tags, -1)
		at.tags = at.view.live()
		s.remove(w)
		w.TagQueue = at.tags[0].tagQueue
		s.insert(w)
		s.enter(w, at.tags, 1)
		s.places[w] = at
	}
	s.refit()
	for w := range s.places {
		w.Attempt.Wake() // some may never get so many any more
	}
}

// keep puts a tag in force with a quota.
func (s *slotTags) keep(g *slotTag, q Quota) {
	g.quota = q
	s.putLargest(g)
	s.tags[g.name] = g
	s.weights += q.Weight
}

// contended returns for how long callers have waited, up to now. Slots that are used while nobody waits cost nobody anything, so they don't
// count.
func (s *slotTags) contended(now int64) int64 {
	if s.f.queue.Empty() {
		return s.waited
	}
	return s.waited + now - s.ticked
}

// insert and remove change the queue.
func (s *slotTags) insert(w *waiter) {
	s.tick()
	s.f.queue.Insert(w)
}

func (s *slotTags) remove(w *waiter) {
	s.tick()
	s.f.queue.Remove(w)
}

func (s *slotTags) tick() {
	now := s.f.gate.Now()
	s.waited, s.ticked = s.contended(now), now
}

// enter counts a waiter in its tags, or with a sign of -1 no more.
func (s *slotTags) enter(w *waiter, tags []*slotTag, sign int) {
	now := s.f.gate.Now()
	for i, g := range tags {
		if g.lead(i, sign*w.Least); g.waiting == 0 {
			s.step(g, now)
			g.turn.Join(s.served)
			s.waiting[g] = struct{}{}
		}
		if g.waiting += sign * w.Least; g.waiting == 0 {
			g.ready = 0
			delete(s.waiting, g)
		}
	}
}

// begin counts a draw of n slots.
func (s *slotTags) begin(tags []*slotTag, n int, now int64) {
	if !s.f.queue.Empty() {
		if start := s.start(tags[0], now); !fairslots.Reserved(start) {
			s.served = max(s.served, start)
		}
	}
	for i, g := range tags {
		s.step(g, now)
		g.running += n
		g.calls += int64(n)
		g.lead(i, n)
	}
}

// end counts n slots that are given back. undone: as if they had never been drawn.
func (s *slotTags) end(tags []*slotTag, n int, undone bool) {
	contended, now := !s.f.queue.Empty(), int64(0)
	if contended {
		now = s.f.gate.Now()
	}
	for i, g := range tags {
		s.step(g, now)
		g.lead(i, -n)
		g.running -= n
		if undone {
			g.calls -= int64(n)
		}
		if g.gone && g.running == 0 {
			delete(s.former, g.name)
		}
	}
	if contended {
		s.promote()
	}
}

// putPauses puts the pauses of tags in force.
func (s *slotTags) putPauses() {
	s.pauses = s.f.gate.Pauses.Tags(s.f.common.Tag)
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	left := time.Duration(never)
	for _, p := range s.pauses {
		if d := p.Until.Sub(s.f.gate.Present()); !p.Until.IsZero() && d > 0 {
			left = min(left, d)
		}
	}
	if left < never {
		s.timer = s.f.gate.AfterFunc(left, func() {
			s.f.gate.Lock()
			defer s.f.gate.Unlock()
			s.putPauses()
		})
	}
	s.refit()
	for w := range s.places {
		w.Attempt.Wake() // those with deadlines before the end of the pause fail
	}
}

// named returns the name if it can be that of a tag, else that of all others.
func named(name string) string {
	if !tagname.Valid(name) {
		return ""
	}
	return name
}

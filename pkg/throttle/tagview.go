package throttle

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
)

// A tagView is the Limiter of ForTag and ForTags: it draws for some tags within the limit of a Throttle.
type tagView struct {
	set    *tagSet
	t      *rateLimiter
	name   string   // in errors
	names  []string // names of tags that were asked for; a pause may be of one of them
	asked  []string // all names that were asked for; "" in place of an invalid one
	since  int64    // the change of quotas by which the tags were found
	levels bool     // it is one of forLevels
	shares bool     // a tag is shared for want of room; see endSharing
	round  int64    // evicting.rounds when the tags were found
	rank   uint64   // of its pauseSource
	tags   []*tag   // the first one is the tag queue
	order  []*tag   // the same in the order of their locks
	page   atomic.Pointer[tagPage]

	barred func() bool // the method isBarred, made once

	once  sync.Once
	multi *join.All[Permit] // for draws that wait for a quota
}

var (
	_ Limiter = (*tagView)(nil)
	_ tagSide = (*tagView)(nil)
)

func newTagView(s *tagSet, name string, tags []*tag) *tagView {
	l := &tagView{set: s, t: s.t, name: name, rank: nextRank(), tags: tags, order: slices.Clone(tags)}
	if name != "" {
		l.names = []string{name}
	}
	l.asked, l.barred = l.names, l.isBarred
	slices.SortFunc(l.order, func(a, b *tag) int { return cmp.Compare(a.Rank, b.Rank) })
	return l
}

// first returns the tag whose tag queue it uses.
func (l *tagView) first() *tag { return l.tags[0] }

// QuotaTag is the tag whose quota it draws from; empty for tags without one of their own. Several are joined by a NUL.
func (l *tagView) QuotaTag() string {
	var names []string
	for _, g := range l.live().tags {
		names = append(names, g.name)
	}
	return strings.Join(names, "\x00")
}

// Unwrap returns the Throttle, for everything beside draws.
func (l *tagView) Unwrap() Limiter { return l.t.seat.self }

// Limit returns the limit with its defaults filled in.
func (l *tagView) Limit() Limit { return l.t.limit }

// Paused is as that of Throttle, for the tags of this limiter too.
func (l *tagView) Paused(tag string) (Paused, bool) {
	if p, held := l.paused(); held {
		return p, true
	}
	return l.t.gate.PausedFor(tag)
}

// parts are the limiter's children in an All.
func (l *tagView) parts() []child {
	of := &struct {
		queue tagQueueSource
		pause pauseSource
	}{tagQueueSource{rateSource: rateSource{l.t}, l: l}, pauseSource{tagView: l}}
	of.queue.own.take(&of.queue, seat{
		Seat: join.Seat[Permit]{Rank: l.t.seat.Rank, Gate: &l.t.gate, LockFree: &of.queue}, of: &l.t.options, self: l.t.seat.self, label: l.label(), side: l,
	})
	of.pause.own.take(&of.pause, seat{
		Seat: join.Seat[Permit]{Rank: l.rank, Gate: &l.t.gate, Aside: true}, of: &l.t.options, self: l.t.seat.self, label: l.label(), side: &of.pause,
	})
	children := []child{{Limiter: l, Seat: &of.queue.own.Seat}, {Limiter: l, Seat: &of.pause.own.Seat, Attached: true}}
	for _, g := range l.tags {
		children = append(children, child{Limiter: l, Seat: &g.Seat, Attached: true})
	}
	return children
}

// all returns the All that waits for all parts.
func (l *tagView) all() *join.All[Permit] {
	l.once.Do(func() { l.multi = joined(l.parts()) })
	return l.multi
}

// TryAcquire takes n tokens of the tags and of the limit if they are at hand, and nobody already waits for them.
func (l *tagView) TryAcquire(n int) (Permit, bool) {
	t := l.t
	l.set.plan.tick()
	if n <= 0 {
		return permitOf(l.live().all().TryAcquire(n))
	}
	now := t.gate.Now()
	p, v, why := l.draw(n, now, false)
	switch v {
	case taken:
		return p, true
	case moved:
		return l.live().TryAcquire(n)
	case limited:
		if p, ok := l.drawBefore(n, now); ok {
			return p, true
		}
	case yielded, lacking, stopped, unfit:
	}
	l.refused(n, now, v, why)
	return Permit{}, false
}

// A verdict is the outcome of a draw that does not wait.
type verdict int

const (
	taken   verdict = iota
	moved           // another tag has replaced one of them: the draw is to be made there
	limited         // the limit has too few tokens, or others wait for them
	yielded         // the limit's tokens are left to other tags
	lacking         // a tag has too few tokens of its own
	stopped         // a pause holds a tag
	unfit           // it can never be granted
)

// draw takes n tokens at once, or says why it cannot; a draw that moved has no reason. If the caller waits then (waits), it notes no
// shortage: that would come before others of its tag.
func (l *tagView) draw(n int, now int64, waits bool) (Permit, verdict, Reason) {
	t := l.t
	if n > t.limit.maxCost() { // nobody saves up for it
		return Permit{}, unfit, ReasonTooLarge
	}
	if l.set.pauses.Load() != nil {
		if _, held := l.paused(); held {
			return Permit{}, stopped, ReasonPause
		}
	}
	var room [maxTagsOfDraw]tagBucketOrigin
	draws := room[:0]
	var v verdict
	var why Reason
	l.endSharing()
	for _, g := range l.order {
		g.mu.Lock()
		g.last = now
		if g.gone.Load() {
			v = moved
		}
	}
	if l.outdated() { // under the locks: a tag that takes over the state of a shared one has counted all draws there
		v = moved
	}
	if v == taken {
		v, why = l.judge(n, now)
	}
	var p Permit
	if v == taken {
		pos, ok := t.draw(n, now)
		if ok {
			for _, g := range l.tags {
				d, _ := g.tagBucket.Take(now, int64(n))
				draws = append(draws, d)
				g.used.Add(int64(n))
				g.calls++
			}
			l.first().pace.spend(now, n)
			p = Permit{n: n, pos: pos, by: l.cell(t.cell(pos), draws)}
		} else {
			v, why = limited, ReasonLimit
			if tagQueue := l.first(); !waits && tagQueue.pace.rate > 0 && tagQueue.pace.within(now, n) {
				l.set.short.lacks(tagQueue, n, now)
			}
		}
	}
	for _, g := range l.order {
		g.mu.Unlock()
	}
	return p, v, why
}

// judge returns what the tags say of a draw of n tokens that does not wait, and why. Their locks are held.
func (l *tagView) judge(n int, now int64) (verdict, Reason) {
	for _, g := range l.tags {
		if g.lacksFor(now, n) {
			return lacking, g.lacks(now, int64(g.queue.Tokens+n))
		}
	}
	tagQueue := l.first()
	if other := l.set.short.other(tagQueue, now); other != nil && !tagQueue.pace.within(now, n) {
		if tagQueue.quota().Class == ClassBatch && other.quota().Class != ClassBatch {
			return yielded, ReasonClass
		}
		return yielded, ReasonLimit // above its rate while others lack tokens
	}
	return taken, ""
}

// lacksFor reports whether a draw of n that does not wait finds too few tokens: callers wait for them, or they are promised. The lock is held.
func (g *tag) lacksFor(now int64, n int) bool {
	return g.tagBucket.Holds() && (!g.queue.Empty() || !g.tagBucket.Has(now, int64(n)) || g.promised > 0 && g.tagBucket.AtHand(now)-g.promised < int64(n))
}

// cell returns the tagPage that settles a permit of this page and origin.
func (l *tagView) cell(at *page, draws []tagBucketOrigin) *tagPage {
	p := l.page.Load()
	if p.same(at, draws) {
		return p
	}
	p = &tagPage{page: at, tags: l.tags}
	p.draws = append(p.room[:0], draws...)
	l.page.Store(p)
	return p
}

// drawBefore is draw where others wait for the limit: it succeeds if there are tokens, and the tag queue's turn is before theirs. Where tokens
// are issued it looks for one that has come.
func (l *tagView) drawBefore(n int, now int64) (Permit, bool) {
	if !l.t.looksAgain(n, now) {
		return Permit{}, false
	}
	l.pin()
	defer l.unpin()
	within := l.within(now, n)
	if !within {
		l.set.short.satisfied(l.first())
	}
	p, ok := permitOf(l.all().WinNow(n))
	if !ok {
		return Permit{}, false
	}
	l.spent(n)
	if within {
		l.set.short.lacks(l.first(), n, now) // the next draw would find nothing either
	}
	return p, true
}

// within reports whether a draw of n tokens keeps to the rate of the tag queue.
func (l *tagView) within(now int64, n int) bool {
	g := l.first()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pace.rate > 0 && g.pace.within(now, n)
}

// spent counts n tokens for the tag queue's pace.
func (l *tagView) spent(n int) {
	g := l.first()
	g.mu.Lock()
	g.pace.spend(l.t.gate.Now(), n)
	g.mu.Unlock()
}

// refused notes the refusal of a draw that does not wait.
func (l *tagView) refused(n int, now int64, v verdict, why Reason) {
	t := l.t
	if final, never := l.never(n); never {
		v, why = unfit, final
	}
	switch v {
	case lacking:
		l.noteRefused(n)
		t.noteShort(now)
		l.turnAway(n, now, why)
		t.gate.Waits.CountRefusal(why)
		return
	case stopped:
		l.noteHeld(n)
	case limited, yielded:
		l.noteRefused(n)
		t.lacks(n)
		t.short(n, now)
		if why != ReasonClass {
			why = t.reasonNow(n, now)
		}
	case taken, moved, unfit: // what can never be granted is no demand
	}
	l.countRefusal(why)
	t.gate.Waits.CountRefusal(why)
}

// never reports whether a draw of n tokens is refused for good, and why.
func (l *tagView) never(n int) (Reason, bool) {
	if r, never := l.t.seat.Impossible(n); never {
		return r, true
	}
	for _, g := range l.tags {
		if int64(n) > g.largest.Load() {
			return ReasonTooLarge, true
		}
	}
	return "", false
}

// noteRefused counts n tokens as refused to each tag.
func (l *tagView) noteRefused(n int) {
	for _, g := range l.tags {
		g.refused.Add(int64(n))
	}
}

// noteHeld is noteRefused for a pause of one of the tags.
func (l *tagView) noteHeld(n int) {
	for _, g := range l.tags {
		g.barred.Add(int64(n))
	}
	l.noteRefused(n)
}

// lacked returns how many tokens the tag was refused and waits for because there were not enough. A paused tag asks for nothing: callers
// that wait for the end of the pause would keep a part of the limit from others that can use it.
func (g *tag) lacked() (refused, waiting int64) {
	refused = g.refused.Load() - g.barred.Load()
	if _, paused := g.set.pauseOf(g.name); paused {
		return refused, 0
	}
	return refused, g.waiting.Load()
}

// label is the tag in errors.
func (l *tagView) label() string { return cmp.Or(l.name, l.t.gate.Tag) }

// reason returns why the limit holds the limiter's draws back, given why it does so at all.
func (l *tagView) reason(r Reason) Reason {
	if r == ReasonLimit && l.first().outranked.Load() {
		return ReasonClass
	}
	return r
}

// complete lowers the largest draw that an error names to those of the tags' quotas.
func (l *tagView) complete(e *Error) {
	for _, g := range l.tags {
		g.bounds(e)
	}
}

// waitFor describes a wait at the limit, for observers.
func (l *tagView) waitFor(r Reason, n int) Wait {
	return Wait{Limit: l.t.name, Tag: l.label(), Reason: l.reason(r), Cost: n}
}

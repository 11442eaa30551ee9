package throttle

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
)

// ForTag returns the Limiter for calls of a tag, within the tag's quota (see [WithQuotas]) and the limit: at most its total are in flight at
// once. Where callers wait, those of a tag below its reservation come first, and the others by class, weight and the slot-seconds that
// they have used. A draw of no slots takes one, as on the limit. A pause of the tag holds these draws.
//
// Without quotas it is the InFlight itself. It is cheap enough to be called for each message.
func (f *InFlight) ForTag(tag string) Limiter { return f.ForTags(tag) }

// ForTags is ForTag for calls of several tags, such as a team and a key of it. Each call takes one slot of the limit, and counts in the quotas
// of all tags. Its callers are served by the first tag.
func (f *InFlight) ForTags(tags ...string) Limiter {
	if f.tags == nil || len(tags) == 0 {
		return f
	}
	return f.tags.viewOf(tags, false)
}

func (f *InFlight) forLevels(first, second string) Limiter {
	if f.tags == nil {
		return f
	}
	return f.tags.viewOf([]string{first, second}, true)
}

func (f *InFlight) tellsTags() bool { return f.tags != nil }

// A slotView is the Limiter of ForTag and ForTags: it draws for some tags within the limit of an InFlight.
type slotView struct {
	f      *InFlight
	name   string   // in errors
	names  []string // that were asked for; "" in place of an invalid one
	levels bool     // the second name is a key of the first: without a quota it is not among all others
	source slotTagSource
	own    seat
	alone  *join.Alone[Permit]
	tags   atomic.Pointer[[]*slotTag] // of era; written under the lock
	era    int64
}

var _ Limiter = (*slotView)(nil)

// viewOf returns the view of names, which may be levels.
func (s *slotTags) viewOf(names []string, levels bool) *slotView {
	if len(names) == 1 && !levels && !strings.Contains(names[0], asLevels) { // the keys of others have asLevels
		if v, ok := s.views.Load(names[0]); ok {
			return v.(*slotView) //nolint:forcetypeassert,errcheck // nothing else is in it
		}
	}
	var room [2]string
	own := room[:0]
	for _, name := range names {
		own = append(own, named(name))
	}
	key := strings.Join(own, asLevels) // no name has a control character
	if levels {
		key += asLevels
	}
	if v, ok := s.views.Load(key); ok {
		return v.(*slotView) //nolint:forcetypeassert,errcheck // nothing else is in it
	}
	own = slices.Compact(slices.Clone(own))
	for i, name := range own {
		own[i] = strings.Clone(name) // it may be part of a message
	}
	v := s.newView(strings.Join(slices.DeleteFunc(slices.Clone(own), func(n string) bool { return n == "" }), ", "), own)
	v.levels = levels
	s.f.gate.Lock()
	defer s.f.gate.Unlock()
	if v.live(); s.known < maxNames {
		s.known++
		s.views.Store(strings.Clone(key), v)
	}
	return v
}

func (s *slotTags) newView(name string, names []string) *slotView {
	f := s.f
	v := &slotView{f: f, name: name, names: names, era: -1}
	v.source = slotTagSource{slotSource{f}, v}
	v.own.take(&v.source, seat{
		Seat: join.Seat[Permit]{Rank: f.seat.Rank, Gate: &f.gate, PerCall: true}, of: &f.options, self: f, label: cmp.Or(name, f.common.Tag),
	})
	v.alone = join.NewAlone(&v.own.Seat)
	return v
}

// live returns the tags that draws count for now. The lock is held.
func (v *slotView) live() []*slotTag {
	s := v.f.tags
	tags := v.tags.Load()
	if v.era == s.era && !anyGone(*tags) {
		return *tags
	}
	s.forget()
	var of []*slotTag
	for i, name := range v.names {
		if g := s.tagOf(name); !slices.Contains(of, g) && (i == 0 || !v.levels || g.name != "") {
			of = append(of, g)
		}
	}
	v.tags.Store(&of)
	v.era = s.era
	return of
}

func anyGone(tags []*slotTag) bool {
	for _, g := range tags {
		if g.gone {
			return true
		}
	}
	return false
}

// QuotaTag is the tag whose quota it draws from; empty for tags without one of their own. Several are joined by a NUL.
func (v *slotView) QuotaTag() string {
	v.f.gate.Lock()
	defer v.f.gate.Unlock()
	var names []string
	for _, g := range v.live() {
		names = append(names, g.name)
	}
	return strings.Join(names, asLevels)
}

// Unwrap returns the InFlight, for everything beside draws.
func (v *slotView) Unwrap() Limiter { return v.f }

// Paused is as that of InFlight, for the tags of this limiter too.
func (v *slotView) Paused(tag string) (Paused, bool) {
	v.f.gate.Lock()
	p, held := v.f.tags.barred(v)
	v.f.gate.Unlock()
	if held {
		return p, true
	}
	return v.f.gate.PausedFor(tag)
}

func (v *slotView) parts() []child { return []child{{Limiter: v, Seat: &v.own.Seat}} }

func (v *slotView) holder(n int) (*seat, int) { return &v.own, n }

// TryAcquire takes n slots if the tags and the limit have them, and no caller before this one waits for them. It never waits.
func (v *slotView) TryAcquire(n int) (Permit, bool) {
	if n < 0 {
		return Permit{}, false
	}
	want := max(n, 1)
	p, ok := v.source.Draw(want)
	if !ok {
		why := v.own.Why(want)
		if why != ReasonTooLarge && why != ReasonClosed {
			v.source.NoteRefused(want, false)
		}
		v.own.CountRefusal(why)
	}
	p.n = min(p.n, n)
	return p, ok
}

// Acquire waits until n slots of the tags and of the limit are free; see [InFlight.Acquire].
func (v *slotView) Acquire(ctx context.Context, n int) (Permit, error) {
	return v.acquire(ctx, n, false)
}

// AcquireUpTo waits until at least one slot is free and takes as many as are, at most n.
func (v *slotView) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return v.acquire(ctx, n, true)
}

func (v *slotView) acquire(ctx context.Context, n int, upTo bool) (Permit, error) {
	return v.f.draw(ctx, &v.source, v.alone, n, upTo)
}

// Throttled reports whether a draw of one slot would have to wait, and why.
func (v *slotView) Throttled() (Throttling, bool) {
	f := v.f
	f.gate.Lock()
	defer f.gate.Unlock()
	w := newcomerFor(1)
	if !f.gate.Closed.Load() && v.source.AtHand(&w) > 0 {
		return Throttling{}, false
	}
	th := Throttling{Reason: v.source.reasonOf(&w), Limit: f.name, Tag: v.own.label, Waiting: v.waiting()}
	if th.Paused = f.gate.Pauses.Status(f.gate.Now(), f.gate.Base); th.Paused == nil {
		if p, held := f.tags.barred(v); held {
			th.Paused = &p
		}
	}
	th.RetryAfter, th.Frozen = v.source.Refusal(&w).RetryAfter, f.thawing()
	return th, true
}

// waiting counts the callers of its first tag that wait.
func (v *slotView) waiting() (n int) {
	for _, at := range v.f.tags.places {
		if at.tags[0] == v.live()[0] {
			n++
		}
	}
	return n
}

package throttle

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A pauseSource stands for the pauses of single tags in a tagView, as a child of an All. It has nothing to draw and keeps no order: callers
// that wait for the end of a pause are woken when pauses change. So it needs no lock.
type pauseSource struct {
	*tagView
	own seat
}

var (
	_ native  = (*pauseSource)(nil)
	_ tagSide = (*pauseSource)(nil)
)

// A pausedQueue holds the callers that wait for the end of a tag's pause. Its lock is held alone.
type pausedQueue struct {
	mu     sync.Mutex
	queue  queue
	timers []sharing.Timer
	// callers counts the callers that wait for the end of each tag's pause.
	callers map[string]int
}

// count notes that so many more callers wait for the end of the pause of a tag.
func (q *pausedQueue) count(tag string, more int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.callers == nil {
		q.callers = map[string]int{}
	}
	if q.callers[tag] += more; q.callers[tag] == 0 {
		delete(q.callers, tag)
	}
}

// wake makes all of them look again.
func (q *pausedQueue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := range q.queue.All() {
		w.Attempt.Wake()
	}
}

// pausesChanged puts the gate's pauses of tags in force. The Throttle's lock is held. The nil tagSet has none.
func (s *tagSet) pausesChanged() {
	if s == nil {
		return
	}
	gate := &s.t.gate
	list := gate.Pauses.Tags(gate.Tag)
	s.countPauses(list)
	if len(list) == 0 {
		s.pauses.Store(nil)
	} else {
		s.pauses.Store(&list)
	}
	s.held.mu.Lock()
	for _, timer := range s.held.timers {
		timer.Stop()
	}
	s.held.timers = nil
	for _, p := range list {
		if d := p.Until.Sub(gate.Present()); d > 0 { // it has an end
			s.held.timers = append(s.held.timers, gate.AfterFunc(d+1, s.held.wake))
		}
	}
	s.held.mu.Unlock()
	s.held.wake()
}

// countPauses counts the pauses that begin with a list.
func (s *tagSet) countPauses(list []Paused) {
	now := s.t.gate.Present()
	goesOn := func(p Paused) bool { return p.Until.IsZero() || p.Until.After(now) }
	before := s.pauses.Load()
	for _, p := range list {
		known := before != nil && slices.ContainsFunc(*before, func(o Paused) bool { return o.Tag == p.Tag && goesOn(o) })
		if goesOn(p) && !known {
			s.paused.Add(1)
		}
	}
}

// paused returns the pause in force of one of the limiter's tags; of several, the pause that ends last.
func (l *tagView) paused() (worst Paused, held bool) {
	list := l.set.pauses.Load()
	if list == nil {
		return worst, false
	}
	now := l.t.gate.Present()
	for _, p := range *list {
		if !slices.Contains(l.names, p.Tag) || !p.Until.IsZero() && !p.Until.After(now) {
			continue
		}
		if !held || p.Until.IsZero() || !worst.Until.IsZero() && p.Until.After(worst.Until) {
			worst, held = p, true
		}
	}
	return worst, held
}

// pauseOf returns the pause in force of this tag.
func (s *tagSet) pauseOf(name string) (p Paused, held bool) {
	list := s.pauses.Load()
	if list == nil {
		return p, false
	}
	now := s.t.gate.Present()
	i := slices.IndexFunc(*list, func(p Paused) bool { return p.Tag == name && (p.Until.IsZero() || p.Until.After(now)) })
	if i < 0 {
		return p, false
	}
	return (*list)[i], true
}

// pauseLeft returns how much longer the limiter's tags are paused; known is false if that is until somebody resumes.
func (l *tagView) pauseLeft() (d time.Duration, known bool) {
	p, held := l.paused()
	switch {
	case !held:
		return 0, true
	case p.Until.IsZero():
		return 0, false
	}
	return max(p.Until.Sub(l.t.gate.Present()), 1), true
}

// Part returns a part whose lock is always free, for there is none.
func (l *pauseSource) Part() part {
	return part{Source: l, Gate: &l.t.gate, Of: l.t.seat.Rank, TryLock: func() bool { return true }}
}

// Lock and Unlock do nothing.
func (l *pauseSource) Lock()   {}
func (l *pauseSource) Unlock() {}

func (l *pauseSource) Largest() int { return math.MaxInt }

func (l *pauseSource) AtHand(*waiter) int {
	if _, held := l.paused(); held {
		return 0
	}
	return math.MaxInt
}

func (l *pauseSource) Due(*waiter) (time.Duration, bool) { return l.pauseLeft() }

// Earns is not 0, because calls do not give a pause back.
func (l *pauseSource) Earns(int) (takes, ahead time.Duration) { return 1, 0 }

func (l *pauseSource) Refusal(w *waiter) sharing.Refusal {
	d, _ := l.pauseLeft()
	return sharing.Refusal{Reason: ReasonPause, Cost: w.N, RetryAfter: d}
}

func (l *pauseSource) Stand(w *waiter) {
	held := &l.set.held
	held.mu.Lock()
	defer held.mu.Unlock()
	if w.Queued() {
		return
	}
	held.queue.Insert(w)
	if l.AtHand(w) > 0 {
		w.Attempt.Wake() // it ended meanwhile
	}
}

func (l *pauseSource) Leave(w *waiter, _ int) {
	held := &l.set.held
	held.mu.Lock()
	defer held.mu.Unlock()
	if w.Queued() {
		held.queue.Remove(w)
	}
}

func (l *pauseSource) Take(w *waiter, n int) (Permit, bool) { return Permit{n: n}, l.AtHand(w) > 0 }
func (l *pauseSource) Untake(*waiter, Permit)               {}
func (l *pauseSource) Peek(int) bool                        { return l.AtHand(nil) > 0 }
func (l *pauseSource) Draw(n int) (Permit, bool)            { return l.Take(nil, n) }
func (l *pauseSource) book(_ int, of drop) drop             { return of }

func (l *pauseSource) NoteRefused(n int, _ bool) { l.noteHeld(n) }

// waits notes that a caller waits for the end of a pause.
func (l *pauseSource) waits(n int, _ Reason) (end func()) {
	p, _ := l.paused()
	l.waitsPaused(p.Tag, n, 1)
	return func() { l.waitsPaused(p.Tag, n, -1) }
}

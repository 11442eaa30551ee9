package waitqueue

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A fakeTime is a virtual clock with timers.
type fakeTime struct {
	now    time.Duration
	timers []*fakeTimer
}

type fakeTimer struct {
	of *fakeTime
	at time.Duration
	f  func()
}

func (t *fakeTimer) Stop() bool {
	n := len(t.of.timers)
	t.of.timers = slices.DeleteFunc(t.of.timers, func(o *fakeTimer) bool { return o == t })
	return len(t.of.timers) < n
}

func (t *fakeTimer) Reset(time.Duration) bool { panic("nobody resets it") }

// next returns how long it is until the next timer; sharing.Never: there is none.
func (c *fakeTime) next() time.Duration {
	d := time.Duration(sharing.Never)
	for _, t := range c.timers {
		d = min(d, t.at-c.now)
	}
	return d
}

// advance lets time pass, and calls the timers that are due.
func (c *fakeTime) advance(d time.Duration) {
	c.now += d
	for _, t := range slices.Clone(c.timers) {
		if t.at <= c.now {
			t.Stop()
			t.f()
		}
	}
}

// A fakeLimiter is a source, its gate and its tag bucket, with the numbers that a test gives it.
type fakeLimiter struct {
	t       *testing.T
	clock   *fakeTime
	name    string
	largest int
	hand    int
	due     time.Duration
	unknown bool
	each    time.Duration // to earn a token; 0: slots
	refusal sharing.Refusal
	between int  // so many draws fail, because others came between
	first   bool // as a tag bucket
	others  bool // has promised tokens to others
	busy    bool // its lock is held elsewhere
	await   func(ready <-chan struct{}) bool

	locked, closed    bool
	bells             []func()
	drawn, taken      int
	leaves            []int
	promised, letPass bool
	promises          bool // it has been promised something since the test looked
}

var (
	_ Source[int]    = &fakeLimiter{}
	_ Gate           = &fakeLimiter{}
	_ TagBucket[int] = &fakeLimiter{}
)

func (f *fakeLimiter) Lock() {
	require.False(f.t, f.locked)
	f.locked = true
}

func (f *fakeLimiter) Unlock() {
	f.own()
	f.locked = false
}

func (f *fakeLimiter) own() { require.True(f.t, f.locked, "the lock of %s is held", f.name) }

func (f *fakeLimiter) TryLock() bool {
	if f.busy {
		return false
	}
	f.Lock()
	return true
}

func (f *fakeLimiter) Largest() int { return f.largest }

func (f *fakeLimiter) AtHand(*Waiter[int]) int {
	f.own()
	return f.hand
}

func (f *fakeLimiter) Due(*Waiter[int]) (time.Duration, bool) {
	f.own()
	return f.due, !f.unknown
}

func (f *fakeLimiter) Earns(n int) (takes, ahead time.Duration) {
	f.own()
	return time.Duration(n) * f.each, time.Duration(n) * f.each
}

func (f *fakeLimiter) Refusal(w *Waiter[int]) sharing.Refusal {
	f.own()
	r := f.refusal
	r.Reason, r.Cost = limit.Reason(f.name), w.N
	return r
}

func (f *fakeLimiter) Stand(w *Waiter[int]) {
	f.own()
	w.queued = true
}

func (f *fakeLimiter) Leave(w *Waiter[int], n int) {
	f.own()
	f.leaves = append(f.leaves, n)
	w.queued = false
}

func (f *fakeLimiter) Take(_ *Waiter[int], n int) (int, bool) {
	f.own()
	require.Positive(f.t, n)
	if f.between > 0 {
		f.between--
		return 0, false
	}
	if n > f.hand {
		return 0, false
	}
	f.hand -= n
	f.drawn++
	f.taken += n
	return n, true
}

func (f *fakeLimiter) Untake(_ *Waiter[int], n int) {
	f.own()
	f.hand += n
	f.taken -= n
}

func (f *fakeLimiter) IsClosed() bool { return f.closed }

func (f *fakeLimiter) OnClosing(ring func()) (stop func()) {
	f.bells = append(f.bells, ring)
	return func() { f.bells = f.bells[:len(f.bells)-1] }
}

func (f *fakeLimiter) Await(_ context.Context, ready <-chan struct{}) bool { return f.await(ready) }

func (f *fakeLimiter) Waker() func() { return nil }

func (f *fakeLimiter) Present() time.Time { return time.Unix(1e9, 0).Add(f.clock.now) }

func (f *fakeLimiter) At(t time.Time) int64 { return t.Sub(time.Unix(1e9, 0)).Nanoseconds() }

func (f *fakeLimiter) AfterFunc(d time.Duration, g func()) sharing.Timer {
	t := &fakeTimer{of: f.clock, at: f.clock.now + d, f: g}
	f.clock.timers = append(f.clock.timers, t)
	return t
}

func (f *fakeLimiter) Promise(_ *Waiter[int], on bool) {
	f.own()
	f.promised, f.promises = on, f.promises || on
}

func (f *fakeLimiter) LetPass(w *Waiter[int], late bool) {
	f.own()
	w.Late, f.letPass = late, late
}

func (f *fakeLimiter) Promised(*Waiter[int]) bool { return f.others }
func (f *fakeLimiter) First(*Waiter[int]) bool    { return f.first }

// part returns a part without tags.
func (f *fakeLimiter) part() Part[int] { return Part[int]{Source: f, Gate: f} }

// tagBucketOf returns a part that is a tag bucket of the limit at a position.
func (f *fakeLimiter) tagBucketOf(position uint64) Part[int] {
	return Part[int]{Source: f, Gate: f, Of: position, TagBucket: f, TryLock: f.TryLock}
}

// limitAt returns a part that is a limit with tag buckets.
func (f *fakeLimiter) limitAt(position uint64, alone bool) Part[int] {
	return Part[int]{Source: f, Gate: f, Position: position, Alone: func(*Waiter[int]) bool { return alone }}
}

// fakes returns limiters that have nothing, and earn a token in each time.
func fakes(t *testing.T, each ...time.Duration) []*fakeLimiter {
	t.Helper()
	clock := &fakeTime{}
	var list []*fakeLimiter
	for i, d := range each {
		list = append(list, &fakeLimiter{t: t, clock: clock, name: string(rune('a' + i)), largest: 1000, each: d, first: true})
	}
	return list
}

// parts returns plain parts.
func parts(list []*fakeLimiter) (all []Part[int]) {
	for _, f := range list {
		all = append(all, f.part())
	}
	return all
}

package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A permit is what the fakes grant.
type permit struct {
	by interface{ cancelled(n int) }
	n  int
}

func (p permit) Cancel() {
	if p.by != nil {
		p.by.cancelled(p.n)
	}
}

// A fake is a source, its gate and its owner, with the numbers that a test gives it. It logs what it is told.
type fake struct {
	t        *testing.T
	name     string
	held     *[]uint64 // the ranks of the locks that are held, of all fakes of a test
	gate     gate.Gate
	seat     Seat[permit]
	largest  int
	hand     int
	due      time.Duration
	unknown  bool // nobody can tell how long a draw waits
	between  int  // so many draws fail, because others came between
	budget   bool // a refusal is one by a budget, which a fallback does not wait for
	mu       sync.Mutex
	standing []*waitqueue.Waiter[permit]
	log      []string
}

// fakes returns fakes of rising ranks that have so many tokens.
func fakes(t *testing.T, hands ...int) []*fake {
	t.Helper()
	held := &[]uint64{}
	var list []*fake
	for i, hand := range hands {
		f := &fake{t: t, name: string(rune('a' + i)), held: held, largest: 1000, hand: hand, unknown: true}
		f.gate.Begin(gate.Options{}, false, nil, func(int64) {})
		f.seat = Seat[permit]{Rank: uint64(i + 1), Gate: &f.gate, Source: f, Owner: f}
		list = append(list, f)
	}
	return list
}

// children returns plain children.
func children(list []*fake) (all []Child[permit]) {
	for _, f := range list {
		all = append(all, Child[permit]{Seat: &f.seat})
	}
	return all
}

// allOf returns the All of plain children.
func allOf(list []*fake) (*All[permit], *fakeHost) {
	h := &fakeHost{}
	return New(h, children(list)), h
}

// hands returns what is left at each.
func hands(list []*fake) (all []int) {
	for _, f := range list {
		all = append(all, f.hand)
	}
	return all
}

func (f *fake) logf(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

// logged returns the log, and empties it.
func (f *fake) logged() []string {
	log := f.log
	f.log = nil
	return log
}

// give gives tokens back, and wakes who stands there.
func (f *fake) give(n int) {
	f.Lock()
	f.hand += n
	standing := slices.Clone(f.standing)
	f.Unlock()
	for _, w := range standing {
		w.Attempt.Wake()
	}
}

// close closes the gate, and wakes who stands there.
func (f *fake) close() { _ = f.gate.Close(func() {}) }

func (f *fake) Lock() {
	f.mu.Lock()
	for _, rank := range *f.held {
		assert.Less(f.t, rank, f.seat.Rank, "locks are taken in the order of ranks")
	}
	*f.held = append(*f.held, f.seat.Rank)
}

func (f *fake) Unlock() {
	f.own()
	*f.held = slices.DeleteFunc(*f.held, func(rank uint64) bool { return rank == f.seat.Rank })
	f.mu.Unlock()
}

func (f *fake) own() {
	assert.Contains(f.t, *f.held, f.seat.Rank, "the lock of %s is held", f.name)
}

func (f *fake) Part() waitqueue.Part[permit] {
	return waitqueue.Part[permit]{Source: f, Gate: &f.gate}
}

func (f *fake) Peek(n int) bool { return n <= f.hand }

func (f *fake) Draw(n int) (permit, bool) {
	f.Lock()
	defer f.Unlock()
	return f.Take(nil, n)
}

func (f *fake) NoteRefused(n int, waited bool) { f.logf("wanted %d %t", n, waited) }

func (f *fake) Largest() int { return f.largest }

func (f *fake) AtHand(*waitqueue.Waiter[permit]) int {
	f.own()
	return f.hand
}

func (f *fake) Due(w *waitqueue.Waiter[permit]) (time.Duration, bool) {
	f.own()
	if f.hand >= w.Least {
		return 0, true
	}
	return f.due, !f.unknown
}

func (f *fake) Earns(int) (takes, ahead time.Duration) {
	f.own()
	return 0, 0
}

func (f *fake) Refusal(w *waitqueue.Waiter[permit]) sharing.Refusal {
	f.own()
	return sharing.Refusal{Reason: limit.Reason(f.name), Cost: w.N, Fallback: f.budget}
}

func (f *fake) Stand(w *waitqueue.Waiter[permit]) {
	f.own()
	if !slices.Contains(f.standing, w) {
		f.standing = append(f.standing, w)
	}
}

func (f *fake) Leave(w *waitqueue.Waiter[permit], _ int) {
	f.own()
	f.standing = slices.DeleteFunc(f.standing, func(o *waitqueue.Waiter[permit]) bool { return o == w })
}

func (f *fake) Take(_ *waitqueue.Waiter[permit], n int) (permit, bool) {
	f.own()
	assert.Positive(f.t, n)
	if f.between > 0 {
		f.between--
		return permit{}, false
	}
	if n > f.hand {
		return permit{}, false
	}
	f.hand -= n
	return permit{f, n}, true
}

func (f *fake) Untake(_ *waitqueue.Waiter[permit], p permit) {
	f.own()
	assert.Equal(f.t, f, p.by)
	f.hand += p.n
}

func (f *fake) cancelled(int) { assert.Fail(f.t, "a draw of a source is undone, not cancelled") }

func (f *fake) CountWait(r limit.Reason)    { f.logf("waits %s", r) }
func (f *fake) CountRefusal(r limit.Reason) { f.logf("refused %s", r) }

func (f *fake) Watch(_ context.Context, r limit.Reason, n int) (over func(n int, err error)) {
	f.logf("watch %s %d", r, n)
	return func(n int, err error) { f.logf("over %d %t", n, err != nil) }
}

// A refused is the error of a refusal.
type refused struct {
	sharing.Refusal

	at    string
	ended bool
}

func (refused) Error() string { return "refused" }

func (f *fake) Refused(_ context.Context, r sharing.Refusal, ended bool) error {
	return refused{r, f.name, ended}
}

// A lockFree undoes and explains draws of a fake without its lock.
type lockFree struct{ f *fake }

func (l lockFree) Undraw(p permit) {
	l.f.logf("undraw %d", p.n)
	l.f.hand += p.n
}

func (l lockFree) Why(n int) limit.Reason { return limit.Reason(fmt.Sprint("no ", n)) }

// A foreign is a limiter without a source.
type foreign struct {
	hand  int
	comes chan int // tokens that come while Acquire waits
	asked []int    // by Acquire
	back  int      // tokens given back
	late  int      // so many TryAcquire are refused whatever is at hand
}

func newForeign(hand int) *foreign { return &foreign{hand: hand, comes: make(chan int)} }

func (f *foreign) TryAcquire(n int) (permit, bool) {
	if f.late > 0 {
		f.late--
		return permit{}, false
	}
	if n > f.hand {
		return permit{}, false
	}
	f.hand -= n
	return permit{f, n}, true
}

func (f *foreign) Acquire(ctx context.Context, n int) (permit, error) {
	f.asked = append(f.asked, n)
	for n > f.hand {
		select {
		case more := <-f.comes:
			f.hand += more
		case <-ctx.Done():
			return permit{}, ctx.Err()
		}
	}
	f.hand -= n
	return permit{f, n}, nil
}

func (f *foreign) AcquireUpTo(context.Context, int) (permit, error) {
	return permit{}, errors.ErrUnsupported // no All calls it
}

func (f *foreign) cancelled(n int) {
	f.hand += n
	f.back += n
}

// A fakeHost is the package of the limiters.
type fakeHost struct {
	fallback       bool
	guarded, freed int // calls of Guard, and of its stop
	end            context.CancelCauseFunc
	waits          []int // for how many tokens
	overs          int
}

var errEnded = errors.New("ended")

func (h *fakeHost) HasFallback(context.Context) bool { return h.fallback }

func (h *fakeHost) Guard(ctx context.Context, _ []Child[permit]) (_ context.Context, stop func()) {
	h.guarded++
	ctx, h.end = context.WithCancelCause(ctx)
	return ctx, func() {
		h.freed++
		h.end(nil)
	}
}

func (h *fakeHost) Waits(_ context.Context, _ []Child[permit], n int) (over func()) {
	h.waits = append(h.waits, n)
	return func() { h.overs++ }
}

func (h *fakeHost) Ended(_ context.Context, others []Child[permit], n int) error {
	return fmt.Errorf("%w: %d tokens of %d others", errEnded, n, len(others))
}

package throttle

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A script is a Sharer whose leases the test hands out.
type script struct {
	first limit.Lease
	h     sharing.Holder
	pokes atomic.Int64
}

func (s *script) Attach(h sharing.Holder) { s.h = h; h.Lease(s.first) }
func (s *script) Poke()                   { s.pokes.Add(1) }

// give puts a share in force that does not end.
func (s *script) give(share float64) { s.h.Lease(limit.Lease{Share: fraction(share)}) }

// lend puts a share in force for d.
func (s *script) lend(share float64, d time.Duration) {
	s.h.Lease(limit.Lease{Share: fraction(share), Until: time.Now().Add(d)})
}

func fraction(share float64) int64 { return int64(share * float64(wholeShare)) }

// scripted returns a Throttle with a share that does not end.
func scripted(t testing.TB, l Limit, share float64, opts ...Option) (*Throttle, *script) {
	t.Helper()
	s := &script{first: limit.Lease{Share: fraction(share)}}
	th, err := New(l, append(opts, WithSharer(s))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	return th, s
}

// whole returns a Throttle that has the whole limit.
func whole(t testing.TB, l Limit, opts ...Option) *Throttle {
	t.Helper()
	th, err := New(l, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	return th
}

// take draws n tokens that there must be.
func take(t testing.TB, l Limiter, n int, says ...any) Permit {
	t.Helper()
	p, ok := l.TryAcquire(n)
	require.True(t, ok, says...)
	return p
}

// deny requires that n tokens cannot be had.
func deny(t testing.TB, l Limiter, n int, says ...any) {
	t.Helper()
	_, ok := l.TryAcquire(n)
	require.False(t, ok, says...)
}

// acquire waits for n tokens.
func acquire(t testing.TB, l Limiter, n int, says ...any) Permit {
	t.Helper()
	p, err := l.Acquire(t.Context(), n)
	require.NoError(t, err, says...)
	return p
}

// drain takes single tokens until there are none.
func drain(th *Throttle) (n int) {
	for {
		if _, ok := th.TryAcquire(1); !ok {
			return n
		}
		n++
	}
}

// A result is how one waiting call ended.
type result struct {
	permit Permit
	err    error
	at     time.Time
}

// A call is one Acquire under way in a goroutine of its own.
type call struct {
	cancel context.CancelFunc
	done   chan result
}

// begin calls Acquire in a goroutine, and returns once it waits or has ended.
// A timeout of 0 is none.
func begin(th *Throttle, n int, timeout time.Duration) *call {
	return beginWith(th.Acquire, n, timeout)
}

func beginUpTo(th *Throttle, n int, timeout time.Duration) *call {
	return beginWith(th.AcquireUpTo, n, timeout)
}

func beginWith(acquire func(context.Context, int) (Permit, error), n int, timeout time.Duration) *call {
	ctx, cancel := context.WithCancel(context.Background())
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), timeout)
	}
	c := &call{cancel: cancel, done: make(chan result, 1)}
	go func() {
		defer cancel()
		p, err := acquire(ctx, n)
		c.done <- result{p, err, time.Now()}
	}()
	synctest.Wait()
	return c
}

// waits tells whether the call is still under way.
func (c *call) waits() bool {
	synctest.Wait()
	return len(c.done) == 0
}

// end returns how the call ended, which must have happened by now.
func (c *call) end(t testing.TB) result {
	t.Helper()
	require.False(t, c.waits(), "the call still waits")
	return <-c.done
}

// throttled returns the *Error of a refused call.
func throttled(t testing.TB, err error) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	return e
}

// sound checks the invariants that hold whenever nobody is inside a call.
func sound(t testing.TB, th *Throttle) {
	t.Helper()
	th.gate.Lock()
	defer th.gate.Unlock()
	n, tokens := 0, 0
	for w := range th.queue.All() {
		require.True(t, w.Queued())
		tokens += w.Least
		n++
	}
	require.Equal(t, n, th.queue.Len, "length of the queue")
	require.Equal(t, tokens, th.queue.Tokens, "tokens in the queue")
	if first := th.queue.First; first != nil {
		require.LessOrEqual(t, th.queue.Collected, th.units(first)-th.bucket.Units(1), "collected leaves one token to draw")
	} else {
		require.Zero(t, th.queue.Collected, "nobody waits, nothing is collected")
	}
	if th.issuing() {
		require.LessOrEqual(t, th.bucket.WholeTokens(th.gate.Now()), len(th.issue.Ripe), "every token has a slot")
		return
	}
	open := th.queue.First == nil && !th.gate.Closed.Load()
	require.Equal(t, open, th.bucket.Current() == th.bucket.Law(), "the gate is open exactly when nobody waits")
}

package throttle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A foreign is a Limiter of somebody else's: a counter that is refilled by hand.
type foreign struct {
	mu       sync.Mutex
	tokens   int
	changed  chan struct{}
	tries    int
	deafTry  bool // TryAcquire refuses always
	granted  int
	returned int
}

func newForeign(tokens int) *foreign { return &foreign{tokens: tokens, changed: make(chan struct{})} }

func (f *foreign) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens += n
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *foreign) take(n int, upTo bool) (Permit, bool, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if upTo {
		n = min(n, max(f.tokens, 1))
	}
	if f.tokens < n {
		return Permit{}, false, f.changed
	}
	f.tokens -= n
	f.granted += n
	return NewPermit(n, func(used int) {
		f.mu.Lock()
		f.returned += n - used
		f.mu.Unlock()
		f.add(n - used)
	}), true, nil
}

func (f *foreign) TryAcquire(n int) (Permit, bool) {
	f.mu.Lock()
	f.tries++
	deaf := f.deafTry
	f.mu.Unlock()
	if n <= 0 || deaf {
		return Permit{}, !deaf
	}
	p, ok, _ := f.take(n, false)
	return p, ok
}

// asked is how often TryAcquire was called.
func (f *foreign) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

func (f *foreign) Acquire(ctx context.Context, n int) (Permit, error) { return f.wait(ctx, n, false) }

func (f *foreign) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return f.wait(ctx, n, true)
}

func (f *foreign) wait(ctx context.Context, n int, upTo bool) (Permit, error) {
	if n <= 0 {
		return Permit{}, nil
	}
	for {
		p, ok, changed := f.take(n, upTo)
		if ok {
			return p, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Permit{}, context.Cause(ctx)
		}
	}
}

func (f *foreign) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tokens
}

func TestAllWithAForeignLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := full(t, 10), newForeign(2)
		l := All(f, a)
		deny(t, l, 3)
		untouched(t, a, 10)
		require.Equal(t, 2, f.left())

		c := beginWith(l.Acquire, 3, 0)
		time.Sleep(time.Second)
		require.True(t, c.waits())
		require.Equal(t, 10, drain(a), "nothing is held while the caller waits for the other")
		f.add(1)
		require.True(t, c.waits())
		require.Equal(t, 3, f.left(), "nor of the other while it waits for this one")
		time.Sleep(time.Second)
		r := c.end(t)
		require.NoError(t, r.err)
		require.Zero(t, f.left())
		require.Equal(t, int64(10+3), a.Status().Granted)
		r.permit.Settle(1)
		require.Equal(t, 2, f.left())
		require.Equal(t, int64(2), a.Status().Returned)
	})
}

func TestAllOfForeignLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, g := newForeign(0), newForeign(0)
		var wg sync.WaitGroup
		for i := range 40 {
			l := []Limiter{All(f, g), All(g, f)}[i%2]
			wg.Go(func() {
				p, err := l.Acquire(t.Context(), 1+i%3)
				if err != nil {
					t.Error(err)
				}
				p.Settle(0)
			})
		}
		synctest.Wait()
		f.add(3)
		time.Sleep(time.Second)
		require.Equal(t, 3, f.left(), "nothing is held")
		g.add(3)
		wg.Wait()
		require.Equal(t, 3, f.left())
		require.Equal(t, 3, g.left())
	})
}

func TestAllAcquireUpToWithAForeignLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := full(t, 100), newForeign(5)
		l := All(a, f)
		p, err := l.AcquireUpTo(t.Context(), 40)
		require.NoError(t, err)
		require.Equal(t, 5, p.N(), "forty, halved three times")
		require.Equal(t, int64(5), a.Status().Granted)
		c := beginWith(l.AcquireUpTo, 40, 0)
		time.Sleep(time.Second)
		require.Zero(t, a.Status().Waiting)
		f.add(3)
		r := c.end(t)
		require.NoError(t, r.err)
		require.Positive(t, r.permit.N())
		require.Equal(t, 3-r.permit.N(), f.left())
	})
}

// A limiter whose TryAcquire never grants is waited for, and several of them neither
// deadlock nor keep the processor busy.
func TestAllWithLimitersThatOnlyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f, g := full(t, 10), newForeign(10), newForeign(10)
		f.deafTry = true
		acquire(t, All(a, f, g), 4)
		require.Equal(t, 6, f.left())
		require.Equal(t, 6, g.left())

		g.deafTry = true
		_, err := All(a, f, g).Acquire(timeout(t, 10*time.Second), 1)
		require.ErrorIs(t, err, ErrThrottled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait() // for the guard's last question
		require.Less(t, g.asked()+f.asked(), 1000)
		require.Equal(t, 6, f.left())
		require.Equal(t, 6, g.left())
		untouchedSince(t, a, 4)
	})
}

// untouchedSince checks that all but n tokens granted were never drawn.
func untouchedSince(t testing.TB, th *Throttle, n int64) {
	t.Helper()
	require.Equal(t, n, th.Status().Granted)
	require.Zero(t, th.Status().Waiting)
	sound(t, th)
}

func TestAllPassesOnForeignErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := full(t, 10), newForeign(0)
		ctx, cancel := context.WithCancel(t.Context())
		c := beginWith(func(context.Context, int) (Permit, error) { return All(a, f).Acquire(ctx, 1) }, 1, 0)
		cancel()
		require.ErrorIs(t, c.end(t).err, context.Canceled)
		untouched(t, a, 10)
		_, err := All(f, whole(t, Limit{Max: 1}, WithName("own"))).Acquire(timeout(t, time.Millisecond), 1)
		require.Equal(t, "own", throttled(t, err).Limit, "what is known in advance is told before anybody is waited for")
	})
}

// What came together with the end of the context goes back.
func TestAllGivesBackWhatCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		late, f := &ending{newForeign(5), cancel}, newForeign(5)
		_, err := All(late, f).Acquire(ctx, 2)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 5, late.left())
		require.Equal(t, 5, f.left())
	})
}

// An ending limiter ends the context while it grants, and does not grant without waiting.
type ending struct {
	*foreign
	end func()
}

func (e *ending) TryAcquire(int) (Permit, bool) { return Permit{}, false }

func (e *ending) Acquire(ctx context.Context, n int) (Permit, error) {
	e.end()
	return e.foreign.Acquire(ctx, n)
}

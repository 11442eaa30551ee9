package throttle

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A manualClock stands still until it is moved.
type manualClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*manualTimer
}

type manualTimer struct {
	clock *manualClock
	at    time.Time // zero: stopped
	f     func()
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) AfterFunc(d time.Duration, f func()) Timer {
	t := &manualTimer{clock: c, f: f}
	c.timers = append(c.timers, t)
	t.Reset(d)
	return t
}

func (m *manualTimer) Reset(d time.Duration) bool {
	m.clock.mu.Lock()
	defer m.clock.mu.Unlock()
	was := !m.at.IsZero()
	m.at = m.clock.now.Add(d)
	return was
}

func (m *manualTimer) Stop() bool {
	m.clock.mu.Lock()
	defer m.clock.mu.Unlock()
	was := !m.at.IsZero()
	m.at = time.Time{}
	return was
}

func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for _, t := range c.timers {
		if !t.at.IsZero() && !t.at.After(c.now) {
			t.at, due = time.Time{}, append(due, t.f)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

func TestWithClock(t *testing.T) {
	c := &manualClock{now: time.Unix(1_800_000_000, 0)}
	th, err := New(Limit{Max: 10, Burst: 5}, WithClock(c))
	require.NoError(t, err)
	_, ok := th.TryAcquire(1)
	require.False(t, ok, "a new bucket is empty, and no time has passed")
	c.advance(101 * time.Millisecond)
	_, ok = th.TryAcquire(1)
	require.True(t, ok)
	c.advance(time.Hour)
	_, ok = th.TryAcquire(6)
	require.False(t, ok, "the bucket holds five")
	_, ok = th.TryAcquire(5)
	require.True(t, ok)

	got := make(chan error)
	go func() {
		_, err := th.Acquire(t.Context(), 2)
		got <- err
	}()
	require.Eventually(t, func() bool { return th.Status().Waiting == 1 }, 10*time.Second, time.Millisecond)
	c.advance(199 * time.Millisecond)
	require.Equal(t, 1, th.Status().Waiting)
	c.advance(2 * time.Millisecond)
	require.NoError(t, <-got, "the clock's timer wakes the one that waits")

	th.setLease(Lease{Share: WholeShare, Until: c.Now().Add(time.Second)})
	c.advance(time.Second)
	_, ok = th.TryAcquire(1)
	require.False(t, ok, "the lease is over by this clock")
	require.NoError(t, th.Close())
}

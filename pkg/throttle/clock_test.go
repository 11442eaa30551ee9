package throttle

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
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

func (c *manualClock) AfterFunc(d time.Duration, f func()) sharing.Timer {
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
	th := whole(t, Limit{Max: 10, Burst: 5}, withClock(c))
	deny(t, th, 1, "a new bucket is empty, and no time has passed")
	c.advance(101 * time.Millisecond)
	take(t, th, 1)
	c.advance(time.Hour)
	deny(t, th, 6, "the bucket holds five")
	take(t, th, 5)

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

	th.setLease(limit.Lease{Share: wholeShare, Until: c.Now().Add(time.Second)})
	c.advance(time.Second)
	deny(t, th, 1, "the lease is over by this clock")
	require.NoError(t, th.Close())
}

package throttle

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A countedClock is the real one, and counts how often its timers run. After a thousand runs it sets no more,
// or a timer that sets itself at once would stop time.
type countedClock struct{ runs atomic.Int64 }

func (c *countedClock) Now() time.Time { return time.Now() }

func (c *countedClock) AfterFunc(d time.Duration, f func()) sharing.Timer {
	return &countedTimer{c, time.AfterFunc(d, func() { c.runs.Add(1); f() })}
}

type countedTimer struct {
	c *countedClock
	*time.Timer
}

func (t *countedTimer) Reset(d time.Duration) bool {
	return t.c.runs.Load() < 1000 && t.Timer.Reset(d)
}

// A limit that is closed while calls go on has nothing more to wait for, though one turns out to have used more
// than was thought.
func TestIssuedNothingStirsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &countedClock{}
		th, _ := issued(t, perSecond, withClock(clock))
		p := acquire(t, th, 1)
		require.NoError(t, th.Close())
		synctest.Wait()
		before := clock.runs.Load()
		p.Settle(3)
		time.Sleep(time.Minute)
		require.Equal(t, before, clock.runs.Load())
	})
}

package throttle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// leaser is a Sharer that leases what the test says.
type leaser struct{ holder throttle.Holder }

func (l *leaser) Attach(h throttle.Holder) { l.holder = h }
func (l *leaser) Poke()                    {}

// Work that is away is demand as its time comes, and not before.
func TestWhatIsAwayIsDemandWhenItsTimeComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaser{}
		l, err := throttle.New(throttle.Limit{Max: 20}, throttle.WithSharer(s))
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		s.holder.Lease(throttle.Lease{Share: throttle.WholeShare / 2})
		demand := func() int64 {
			time.Sleep(time.Second)
			return s.holder.Report(2 * time.Second).Demand
		}
		for range 3 {
			require.Zero(t, demand())
		}
		for i := range 100 {
			l.NoteAway(1, 10*time.Second+time.Duration(i)*100*time.Millisecond)
		}
		l.NoteAway(0, time.Second)
		l.NoteAway(-1, -time.Second)
		for range 7 {
			require.Zero(t, demand())
		}
		require.Positive(t, demand())
		for range 10 {
			require.Positive(t, demand(), "as if the callers waited")
		}
		for range 4 {
			demand()
		}
		require.Zero(t, demand(), "nobody came")
	})
}

// A processor with little use for its share is left little of it. A caller is told how long it takes at the share that comes when it asks,
// and waits for that, instead of being refused for a share of half a percent.
func TestACallerIsNotRefusedForAShareThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaser{}
		l, err := throttle.New(throttle.Limit{Max: 20, Burst: 1}, throttle.WithSharer(s))
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		small := throttle.Lease{Share: throttle.WholeShare / 200}
		s.holder.Lease(small)
		_, err = l.Acquire(t.Context(), 1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.Acquire(ctx, 1)
		require.ErrorIs(t, err, throttle.ErrThrottled, "nobody knows that it grows")

		small.Even = throttle.WholeShare / 2
		s.holder.Lease(small)
		granted := make(chan error)
		go func() {
			_, err := l.Acquire(ctx, 1)
			granted <- err
		}()
		time.Sleep(100 * time.Millisecond)
		s.holder.Lease(throttle.Lease{Share: throttle.WholeShare / 2, Even: throttle.WholeShare / 2})
		require.NoError(t, <-granted)

		s.holder.Lease(small)
		_, err = l.Acquire(ctx, 20)
		var e *throttle.Error
		require.ErrorAs(t, err, &e, "known to be too long even so")
		require.InDelta(t, 2, e.RetryAfter.Seconds(), 0.2)
	})
}

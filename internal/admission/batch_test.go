package admission_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestABatchThatHasWaitedItsTimeIsToldWhenToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newThrottle(t, throttle.Limit{Max: 10, Burst: 5}) // empty at first
		g := admission.Admitter{Limiter: l, MaxWait: 150 * time.Millisecond}
		b := g.Batch(g.MaxWait)
		_, err := b.Admit(t.Context(), "", 1)
		require.NoError(t, err)
		began := time.Now()
		_, err = b.Admit(t.Context(), "", 1)
		require.InDelta(t, 100*time.Millisecond, denied(t, err).Err.RetryAfter, float64(time.Millisecond))
		require.Zero(t, time.Since(began), "50 ms are too short for the next")

		l = newThrottle(t, throttle.Limit{Max: 10}, throttle.WithSharer(noShare{}))
		g = admission.Admitter{Limiter: l, MaxWait: time.Second}
		b = g.Batch(g.MaxWait)
		_, err = b.Admit(t.Context(), "", 1)
		requireDenied(t, err)
		require.Equal(t, time.Second, time.Since(began))
		for range 100 {
			_, err = b.Admit(t.Context(), "", 1)
			require.Equal(t, throttle.ReasonNoShare, denied(t, err).Err.Reason)
		}
		require.Equal(t, time.Second, time.Since(began), "also where the limiter cannot know how long it takes")
	})
}

// A lateShare is a sharer that leases when it is told to.
type lateShare struct{ holder sharing.Holder }

func (s *lateShare) Attach(h sharing.Holder) { s.holder = h }
func (*lateShare) Poke()                     {}

func TestABatchThatHasWaitedItsTimeGetsTheTokensOfAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s lateShare
		l := newThrottle(t, throttle.Limit{Max: 10, Burst: 2}, throttle.WithSharer(&s))
		g := admission.Admitter{Limiter: l, MaxWait: time.Second}
		b := g.Batch(g.MaxWait)
		_, err := b.Admit(t.Context(), "", 1)
		requireDenied(t, err)
		s.holder.Lease(limit.Lease{Share: limit.WholeShare})
		time.Sleep(time.Second) // two tokens are at hand
		began := time.Now()
		for _, ok := range []bool{true, true, false} {
			_, err = b.Admit(t.Context(), "", 1)
			if ok {
				require.NoError(t, err)
			} else {
				requireDenied(t, err)
			}
		}
		require.Zero(t, time.Since(began))
	})
}

func TestMessagesOfABatchThatWaitTogetherCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens), throttletest.GrantOn(tokens), throttletest.GrantOn(tokens), throttletest.Block())
		g := admission.Admitter{Limiter: l, MaxWait: time.Second}
		b := g.Batch(g.MaxWait)
		began := time.Now()
		time.AfterFunc(600*time.Millisecond, func() { close(tokens) })
		errs := make(chan error)
		for i := range 3 {
			go func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				_, err := b.Admit(t.Context(), "", 1)
				errs <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-errs)
		}
		_, err := b.Admit(t.Context(), "", 1)
		requireDenied(t, err)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestABudgetOfItsOwnBoundsTheBatchAndMaxWaitEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens))
		g := admission.Admitter{Limiter: l, MaxWait: 300 * time.Millisecond}
		b := g.Batch(500 * time.Millisecond)
		for _, want := range []time.Duration{300 * time.Millisecond, 200 * time.Millisecond, 0} {
			began := time.Now()
			_, err := b.Admit(t.Context(), "", 1)
			requireDenied(t, err)
			require.Equal(t, want, time.Since(began))
		}

		g.MaxWait = 0
		b = g.Batch(500 * time.Millisecond)
		began := time.Now()
		_, err := b.Admit(t.Context(), "", 1)
		requireDenied(t, err)
		require.Equal(t, 500*time.Millisecond, time.Since(began), "without a bound for each message")
	})
}

// In a freeze nobody can get anything: what waits is not to blame, and is not denied.
func TestTimeInWhichThePoolIsFrozenDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s lateShare
		l := newThrottle(t, throttle.Limit{Max: 10, Burst: 1}, throttle.WithSharer(&s))
		freeze := func(d time.Duration) { s.holder.Lease(limit.Lease{Frozen: time.Now().Add(d)}) }
		g := admission.Admitter{Limiter: l, MaxWait: time.Second}
		for name, admit := range map[string]func(context.Context, string, int) (throttle.Permit, error){
			"alone": g.Admit, "in a batch": g.Batch(g.MaxWait).Admit,
		} {
			freeze(15 * time.Second)
			time.AfterFunc(15500*time.Millisecond, func() { s.holder.Lease(limit.Lease{Share: limit.WholeShare}) })
			began := time.Now()
			_, err := admit(t.Context(), "", 1)
			require.NoError(t, err, name)
			require.InDelta(t, 15600*time.Millisecond, time.Since(began), float64(time.Microsecond), name)
		}

		freeze(15 * time.Second)
		began := time.Now()
		_, err := g.Admit(t.Context(), "", 1)
		requireDenied(t, err)
		require.Equal(t, throttle.ReasonNoShare, denied(t, err).Err.Reason, "no longer frozen, and still without a share")
		require.Equal(t, 16*time.Second, time.Since(began))

		b := g.Batch(g.MaxWait)
		time.Sleep(time.Second)
		time.AfterFunc(300*time.Millisecond, func() { freeze(10 * time.Second) })
		began = time.Now()
		_, err = b.Admit(t.Context(), "", 1)
		requireDenied(t, err)
		require.Equal(t, 11300*time.Millisecond, time.Since(began), "a freeze that begins during the wait")

		b = g.Batch(2 * time.Second)
		freeze(15 * time.Second)
		time.AfterFunc(5*time.Second, func() { s.holder.Lease(limit.Lease{Share: limit.WholeShare}) })
		_, err = b.Admit(t.Context(), "", 1)
		require.NoError(t, err, "a freeze that ends before its time")
		s.holder.Lease(limit.Lease{})
		for _, left := range []time.Duration{time.Second, time.Second, 0} {
			began = time.Now()
			_, err = b.Admit(t.Context(), "", 1)
			requireDenied(t, err)
			require.InDelta(t, left, time.Since(began), float64(200*time.Millisecond), "what the batch had left")
		}
	})
}

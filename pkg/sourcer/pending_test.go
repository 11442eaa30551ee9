package sourcer_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// throttled returns a wrapped source with a million messages that has just lacked
// tokens. The test ends in a synctest bubble.
func throttled(t *testing.T, limit throttle.Limit, pending int64, opts ...sourcer.Option) sourcesdk.Sourcer {
	t.Helper()
	l, err := throttle.New(limit)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	s := &source{pending: pending}
	w := sourcer.Wrap(s, l, opts...)
	for range 10 {
		<-read(t.Context(), w, 500, time.Second)
	}
	return w
}

func TestPendingIsClampedToWhatTheLimitLetsThrough(t *testing.T) {
	const million = 1_000_000
	thousand := throttle.Limit{Max: 1000}
	for name, c := range map[string]struct {
		limit   throttle.Limit
		pending int64
		opts    []sourcer.Option
		want    int64
	}{
		"a backlog":               {thousand, million, nil, 20_000},
		"less":                    {thousand, 19_999, nil, 19_999},
		"none":                    {thousand, 0, nil, 0},
		"not known":               {thousand, -1, nil, -1},
		"not available":           {thousand, math.MinInt64, nil, math.MinInt64},
		"per minute":              {throttle.Limit{Max: 30, Per: time.Minute}, million, nil, 10},
		"low":                     {throttle.Limit{Max: 1, Per: time.Minute}, million, nil, 1},
		"turned off":              {thousand, million, []sourcer.Option{sourcer.WithPendingClamp(false)}, million},
		"target of the vertex":    {thousand, million, []sourcer.Option{sourcer.WithTargetProcessing(time.Minute)}, 60_000},
		"rate of the vertex":      {thousand, million, []sourcer.Option{sourcer.WithVertexRate(10)}, 200},
		"both":                    {thousand, million, []sourcer.Option{sourcer.WithVertexRate(0.5), sourcer.WithTargetProcessing(10 * time.Second)}, 5},
		"a vertex with no bounds": {thousand, million, []sourcer.Option{sourcer.WithVertexRate(math.MaxFloat64)}, million},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, c.want, throttled(t, c.limit, c.pending, c.opts...).Pending(t.Context()))
			})
		})
	}
}

func TestPendingIsClampedInMessagesNotInTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := throttled(t, throttle.Limit{Max: 1000}, 1_000_000, sourcer.WithReadCost(func(sourcesdk.Message) int { return 4 }))
		require.InEpsilon(t, 5000, w.Pending(t.Context()), 0.05)
	})
}

// A clamp that comes and goes would not keep the mean down.
func TestPendingStaysClampedForTwoMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := throttled(t, throttle.Limit{Max: 1000}, 1_000_000)
		time.Sleep(2*time.Minute - time.Second) // virtual
		require.EqualValues(t, 20_000, w.Pending(t.Context()))
		time.Sleep(2 * time.Second) // virtual
		require.EqualValues(t, 1_000_000, w.Pending(t.Context()))
	})
}

func TestPendingOfASourceThatIsNotThrottledIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 1000, Burst: 1000})
		require.NoError(t, err)
		defer l.Close()
		time.Sleep(time.Second) // virtual: the bucket fills
		w := sourcer.Wrap(&source{pending: 1_000_000}, l)
		require.EqualValues(t, 1_000_000, w.Pending(t.Context()), "before the first Read")
		for range 10 { // 50 a Read are no match for the limit
			<-read(t.Context(), w, 50, time.Second)
			time.Sleep(100 * time.Millisecond) // virtual
		}
		require.EqualValues(t, 1_000_000, w.Pending(t.Context()), "pods are what it lacks")

		for l.Status().Tokens >= 1 {
			l.TryAcquire(1)
		}
		require.EqualValues(t, 20_000, w.Pending(t.Context()), "others used up the limit")
	})
}

func TestPendingWithALimiterThatTellsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{pending: 1_000_000}
		l := throttletest.New(throttletest.Block())
		plain, rated := sourcer.Wrap(s, l), sourcer.Wrap(s, l, sourcer.WithVertexRate(2))
		<-read(t.Context(), plain, 500, time.Second)
		<-read(t.Context(), rated, 500, time.Second)
		require.EqualValues(t, 1_000_000, plain.Pending(t.Context()))
		require.EqualValues(t, 40, rated.Pending(t.Context()))
	})
}

// The clamp goes by what the pool may use at present, and not by what is configured.
func TestPendingIsClampedAtTheLimitInForce(t *testing.T) {
	thousand, hard := throttle.Limit{Max: 1000}, throttle.Limit{Max: 100, Burst: 50, Hard: true}
	require.Less(t, hard.Rate(), 100.0)
	for name, c := range map[string]struct {
		limit throttle.Limit
		lease limit.Lease
		want  float64 // messages per second
	}{
		"configured":      {thousand, limit.Lease{}, 1000},
		"override, lower": {thousand, limit.Lease{Ceiling: 200}, 200},
		"override, more":  {thousand, limit.Lease{Ceiling: 3000}, 3000},
		"hard":            {hard, limit.Lease{}, hard.Rate()},
		"issued":          {throttle.Limit{Max: 600, Per: time.Minute}, limit.Lease{Issuing: true, Ceiling: 300}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &observer{}
				l, err := throttle.New(c.limit, throttle.WithSharer(o))
				require.NoError(t, err)
				defer l.Close()
				w := sourcer.Wrap(&source{pending: 1_000_000}, l)
				o.h.Lease(limit.Lease{})
				<-read(t.Context(), w, 500, time.Second) // gets nothing
				o.h.Lease(c.lease)
				require.InDelta(t, 20*c.want, w.Pending(t.Context()), 1)
			})
		})
	}
}

// The autoscaler's formula (v1.8.3), on figures as they arise: replicas stay where
// they are, and do without the clamp what they are known for.
func TestTheNumberOfReplicasStays(t *testing.T) {
	desired := func(pending int64, rate float64, ready int) int {
		return int(math.Round(float64(pending) / rate / 20 * float64(ready)))
	}
	synctest.Test(t, func(t *testing.T) {
		w := throttled(t, throttle.Limit{Max: 1000}, 1_000_000)
		bare := throttled(t, throttle.Limit{Max: 1000}, 1_000_000, sourcer.WithPendingClamp(false))
		for ready := 1; ready <= 40; ready++ {
			for _, rate := range []float64{990, 1000} { // what the wrapper delivers
				require.Equal(t, ready, desired(w.Pending(context.Background()), rate, ready))
				require.Greater(t, desired(bare.Pending(context.Background()), rate, ready), 40*ready)
			}
		}
		require.Equal(t, 8, desired(w.Pending(context.Background()), 500, 4), "half the limit is used: twice the pods can use it")
	})
}

package throttle

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

func TestStrictLimits(t *testing.T) {
	for _, tc := range []struct {
		name string
		l    Limit
		bad  []string
	}{
		{"usual", Limit{Max: 1, Per: time.Minute, Strict: true}, nil},
		{"burst of one", Limit{Max: 100, Burst: 1, Strict: true, MaxReserved: 1000}, nil},
		{"no limit", Limit{Strict: true}, nil},
		{"fastest", Limit{Max: 1_000_000, Strict: true}, nil},
		{"reserved without strict", Limit{Max: 1, MaxReserved: 5}, nil},
		{"too fast", Limit{Max: 1_000_001, Strict: true}, []string{"max per 1s is 1000001", "1000000 tokens per second with strict"}},
		{"burst", Limit{Max: 5, Burst: 2, Strict: true}, []string{"burst is 2", "0 or 1 with strict"}},
		{"hard", Limit{Max: 5, Hard: true, Strict: true}, []string{"hard is true", "false with strict"}},
		{"too many reserved", Limit{MaxReserved: 1001}, []string{"maxReserved is 1001", "0 (none) to 1000"}},
		{"one fault", Limit{Per: -time.Second, Strict: true}, []string{"limit: per is -1s, allowed: 1ms to 744h"}},
		{"negative", Limit{MaxReserved: -1}, []string{"maxReserved is -1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.l.Validate()
			_, made := New(tc.l)
			require.Equal(t, err, made)
			if tc.bad == nil {
				require.NoError(t, err)
			} else {
				require.NotContains(t, err.Error(), "\n", "one fault")
			}
			for _, part := range tc.bad {
				require.ErrorContains(t, err, part)
			}
		})
	}
	require.Equal(t, 1, whole(t, Limit{Max: 1000, Strict: true}).Limit().Burst)
}

func TestSpacing(t *testing.T) {
	for _, tc := range []struct {
		l    Limit
		want time.Duration
	}{
		{Limit{}, 0},
		{Limit{Max: 1}, time.Second},
		{Limit{Max: 3}, 333_333_334},
		{Limit{Max: 1, Per: 744 * time.Hour}, 744 * time.Hour},
		{Limit{Max: 1_000_000}, time.Microsecond},
		{Limit{Max: 1_000_001}, 0},
		{Limit{Max: 10, Hard: true}, 0},
	} {
		terms := rateHolder{whole(t, tc.l)}.Terms()
		require.Equal(t, tc.want, terms.Spacing, "%+v", tc.l)
		require.False(t, terms.Strict)
	}
	require.True(t, rateHolder{whole(t, Limit{Max: 1, Strict: true})}.Terms().Strict)
	require.Equal(t, sharing.Terms{Slots: 5}, slotHolder{flight(t, 5)}.Terms(), "slots in flight are not issued")
}

// What cannot issue tokens cannot hold a strict limit, and says so.
func TestStrictNeedsAPool(t *testing.T) {
	half, err := Replicas(2)
	require.NoError(t, err)
	_, err = New(Limit{Max: 1, Strict: true}, WithSharer(half))
	require.ErrorContains(t, err, "strict is true")
	require.ErrorContains(t, err, "the share of Replicas cannot issue tokens")
}

// Within one process, without a store: callers of all kinds are at least a spacing apart,
// and none comes twice.
func TestStrictInOneProcess(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			l := Limit{Max: 1 + r.IntN(300), Strict: true, MaxReserved: r.IntN(3)}
			th := whole(t, l)
			spacing := l.withDefaults().spacing()
			var mu sync.Mutex
			var uses []use
			began := time.Now()
			ctx, stop := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			for i := range 6 {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				wg.Go(func() {
					for ctx.Err() == nil {
						wait, cancel := context.WithTimeout(ctx, time.Duration(r.ExpFloat64()*10*float64(spacing)))
						p, err := th.Acquire(wait, 1+r.IntN(2)*r.IntN(min(l.Max, 3)))
						cancel()
						if q, ok := th.TryAcquire(1); err != nil && ok {
							p, err = q, nil
						}
						if err == nil {
							mu.Lock()
							uses = append(uses, use{time.Since(began), p.N()})
							mu.Unlock()
							p.Settle(r.IntN(2) * p.N())
						}
						time.Sleep(time.Duration(r.ExpFloat64() * float64(spacing)))
					}
				})
			}
			time.Sleep(300 * spacing)
			stop()
			wg.Wait()
			require.Greater(t, len(uses), 100)
			for i := 1; i < len(uses); i++ {
				apart := uses[i].at - uses[i-1].at
				require.GreaterOrEqual(t, apart, time.Duration(uses[i].tokens)*spacing-time.Duration(1+uses[i].tokens), "seed %d: call %d", seed, i)
			}
			sound(t, th)
		})
	}
}

// A burst that was asked for is kept: slots cannot be saved up.
func TestWhichLimitsAreIssued(t *testing.T) {
	for name, tc := range map[string]struct {
		l    Limit
		want time.Duration
	}{
		"low":                 {Limit{Max: 1, Per: time.Minute}, time.Minute},
		"low, default burst":  {Limit{Max: 60, Per: time.Hour, Burst: 1}, time.Minute},
		"low, with a burst":   {Limit{Max: 60, Per: time.Hour, Burst: 10}, 0},
		"default burst":       {Limit{Max: 50}, 20 * time.Millisecond},
		"a burst by itself":   {Limit{Max: 50, Burst: 5}, 20 * time.Millisecond},
		"a larger burst":      {Limit{Max: 50, Burst: 6}, 0},
		"hard":                {Limit{Max: 1, Hard: true}, 0},
		"strict":              {Limit{Max: 50, Strict: true}, 20 * time.Millisecond},
		"strict, burst of 1":  {Limit{Max: 50, Burst: 1, Strict: true}, 20 * time.Millisecond},
		"no limit":            {Limit{}, 0},
		"millions per second": {Limit{Max: 2_000_000}, 0},
	} {
		require.Equal(t, tc.want, tc.l.withDefaults().spacing(), name)
	}
}

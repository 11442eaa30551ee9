package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// The rate and the default burst of hard limits, worked out by hand: the rate per
// period is (Max + 1 - Burst) x 12/13.
func TestHardRateAndBurst(t *testing.T) {
	for _, tc := range []struct {
		limit     Limit
		burst     int
		perPeriod float64
	}{
		{Limit{Max: 1}, 1, 12.0 / 13},                               // one token every 1.0833 s
		{Limit{Max: 2}, 1, 24.0 / 13},                               // half of max
		{Limit{Max: 10, Per: time.Minute}, 5, 6 * 12.0 / 13},        // half of max: 6 of 10 are left
		{Limit{Max: 60, Per: time.Minute}, 8, 53 * 12.0 / 13},       // room for eight processors
		{Limit{Max: 100}, 10, 84},                                   // a tenth: 91 x 12/13
		{Limit{Max: 1000}, 100, 901 * 12.0 / 13},                    // a tenth, which is 100 ms worth
		{Limit{Max: 6000, Per: time.Minute}, 100, 5901 * 12.0 / 13}, // 100, which is more than 100 ms worth (10)
		{Limit{Max: 600_000, Per: time.Minute}, 1000, 599_001 * 12.0 / 13},
		{Limit{Max: 100, Per: 100 * time.Millisecond}, 10, 84}, // a tenth, not 100 ms worth (all)
		{Limit{Max: 100, Burst: 1}, 1, 1200.0 / 13},
		{Limit{Max: 100, Burst: 100}, 100, 12.0 / 13},
	} {
		t.Run(fmt.Sprintf("%+v", tc.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := tc.limit
				l.Hard = true
				th := whole(t, l)
				require.Equal(t, tc.burst, th.Limit().Burst)
				per := th.Limit().Per.Seconds()
				slack := (float64(tc.burst)/1e6 + 1e-6*float64(l.Max)) / per
				require.InDelta(t, tc.perPeriod/per, l.Rate(), slack)
				require.LessOrEqual(t, l.Rate(), tc.perPeriod/per)
				require.InDelta(t, l.Rate()*per, l.ceilingConfig().Granted*float64(l.Max), 1e-6, "the pool knows it too")
				require.InDelta(t, l.Rate(), th.Status().Rate, l.Rate()*1e-6, "Status tells the lowered rate")

				// The theorem in numbers: the burst, and what the fastest clock earns in a window.
				c := th.bucket.Tokens(th.bucket.Law().Capacity)
				require.Less(t, c+th.Status().Rate*per*1.0833, float64(l.Max)+1)
				require.GreaterOrEqual(t, c, float64(tc.burst))
			})
		})
	}
	require.Zero(t, Limit{}.Rate())
	require.Zero(t, Limit{Hard: true}.Rate())
	require.InDelta(t, 5, Limit{Max: 300, Per: time.Minute}.Rate(), 1e-9)
}

func TestHardValidate(t *testing.T) {
	require.NoError(t, Limit{Hard: true}.Validate(), "off is off")
	require.NoError(t, Limit{Max: 10, Burst: 10, Hard: true}.Validate())
	require.EqualError(t, Limit{Max: 10, Burst: 11, Hard: true}.Validate(), "limit: burst is 11, allowed: at most max with hard, which is 10")
	for _, l := range extremes {
		l.Hard = true
		l.Burst = min(l.Burst, l.Max)
		th := whole(t, l)
		require.Positive(t, th.Status().Rate, "%+v", l)
		require.NoError(t, th.Close())
	}
}

// Several tags make impatient, large and cancelled calls, alone and with a second limit, while the share moves. Once the share is whole, all
// calls end and nobody waits.
func TestHardTagsLoseNobody(t *testing.T) {
	for seed := range uint64(testkit.Fewer(300)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			quotas := map[string]Quota{"a": {Reserved: 10}, "b": {}, "c": {Class: ClassBatch}}
			th, s := scripted(t, Limit{Max: 100, Burst: 20, Hard: true}, 0.5, WithQuotas(tagsOf(quotas)))
			tpm := whole(t, Limit{Max: 200, Burst: 20})
			var calls []*call
			for range 80 {
				l := th.ForTag([]string{"a", "b", "c", "d"}[r.IntN(4)])
				if r.IntN(3) == 0 {
					l = All(l, tpm)
				}
				draw, n := l.Acquire, 1+r.IntN(20)*r.IntN(2)
				switch r.IntN(8) {
				case 0:
					draw = l.AcquireUpTo
				case 1:
					l.TryAcquire(n)
				case 2:
					_ = probe(l)
				case 3:
					s.give(float64(r.IntN(11)) / 10)
				case 4:
					if len(calls) > 0 {
						calls[r.IntN(len(calls))].cancel()
					}
				}
				calls = append(calls, beginWith(draw, n, time.Duration(r.IntN(4))*time.Duration(r.IntN(3000))*time.Millisecond))
				time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			}
			s.give(1)
			time.Sleep(2 * time.Minute)
			for i, c := range calls {
				require.False(t, c.waits(), "seed %d, call %d", seed, i)
			}
			require.Zero(t, th.Status().Waiting, "seed %d", seed)
			th.gate.Lock()
			require.Zero(t, th.queue.Tokens, "seed %d", seed)
			th.gate.Unlock()
			sound(t, th)
		})
	}
}

// Four greedy processors use what the formula says, in the long run and by true
// clocks, and no window of Per sees more than Max.
func TestHardUse(t *testing.T) {
	for _, l := range []Limit{{Max: 100}, {Max: 1000}, {Max: 60, Per: time.Minute}, {Max: 600, Per: time.Minute}, {Max: 10_000, Per: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			l.Hard = true
			var ths []*Throttle
			for range 4 {
				th, _ := scripted(t, l, 0.25)
				ths = append(ths, th)
			}
			l = ths[0].Limit()
			var uses []use
			began := time.Now()
			for time.Since(began) < 20*l.Per {
				time.Sleep(l.Per / 1000)
				for _, th := range ths {
					if n := drain(th); n > 0 {
						uses = append(uses, use{time.Since(began), n})
					}
				}
			}
			sum := 0
			for _, u := range uses {
				sum += u.tokens
			}
			got, want := float64(sum)/20/float64(l.Max), l.Rate()*l.Per.Seconds()/float64(l.Max)
			t.Logf("max %d per %s, burst %d: %.1f %% of max used, the formula says %.1f %%; worst window %d",
				l.Max, l.Per, l.Burst, 100*got, 100*want, worst(uses, l.Per))
			require.InDelta(t, want, got, 0.01)
			require.LessOrEqual(t, worst(uses, l.Per), l.Max)
		})
	}
}

package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
)

func TestRampValidate(t *testing.T) {
	ok := Limit{Max: 20, Min: 10, RampUpDuration: time.Minute}
	with := func(change func(l *Limit)) Limit {
		l := ok
		change(&l)
		return l
	}
	for _, tc := range []struct {
		name string
		l    Limit
		bad  []string
	}{
		{"usual", ok, nil},
		{"min alone", Limit{Max: 20, Min: 10}, nil},
		{"duration alone", Limit{Max: 20, RampUpDuration: time.Minute}, nil},
		{"everything", with(func(l *Limit) { l.Mode, l.ResumedRampUp, l.TTL = RampGoBackN{1, time.Second, 100}, true, time.Hour }), nil},
		{"min is max", with(func(l *Limit) { l.Min = 20 }), nil},
		{"a limit that is switched off", with(func(l *Limit) { l.Max = 0 }), nil},
		{"min above max", with(func(l *Limit) { l.Min = 21 }), []string{"min is 21", "1 to max"}},
		{"negative min", with(func(l *Limit) { l.Min = -1 }), []string{"min is -1"}},
		{"negative min without max", Limit{Min: -1}, []string{"min is -1"}},
		{"negative duration", with(func(l *Limit) { l.RampUpDuration = -time.Second }), []string{"rampUpDuration is -1ns", "1ms to 744h"}},
		{"long duration", with(func(l *Limit) { l.RampUpDuration = 745 * time.Hour }), []string{"rampUpDuration is 745h"}},
		{"long ttl", with(func(l *Limit) { l.TTL = 25 * time.Hour }), []string{"ttl is 25h0m0s", "1s to 24h"}},
		{"short ttl", with(func(l *Limit) { l.TTL = time.Millisecond }), []string{"ttl is 1ms", "1s to 24h"}},
		{"threshold", with(func(l *Limit) { l.Mode = RampOnlyIfUsed{101} }), []string{"thresholdPercentage is 101", "0 to 100"}},
		{"negative threshold", with(func(l *Limit) { l.Mode = RampOnlyIfUsed{-1} }), []string{"thresholdPercentage is -1"}},
		{"penalty", with(func(l *Limit) { l.Mode = RampGoBackN{RampDownPercentage: 200} }), []string{"rampDownPercentage is 200"}},
		{"long cool-down", with(func(l *Limit) { l.Mode = RampGoBackN{CoolDownPeriod: 25 * time.Hour} }), []string{"coolDownPeriod is 25h0m0s"}},
		{"cool-down", with(func(l *Limit) { l.Mode = RampGoBackN{CoolDownPeriod: time.Millisecond} }), []string{"coolDownPeriod is 1ms", "1s to 24h"}},
		{"mode without a ramp", Limit{Max: 20, Mode: RampScheduled{}}, []string{"mode is scheduled", "only with min or rampUpDuration"}},
		{"the rest without a ramp", Limit{Max: 20, ResumedRampUp: true, TTL: time.Minute}, []string{"resumedRampUp is true", "ttl is 1m0s"}},
		{"a part without max", Limit{TTL: time.Minute}, nil},
		{"min above a max of one", Limit{Max: 1, Min: 2}, []string{"min is 2", "1 to max"}},
		{"min above the largest max", Limit{Max: maxTokens + 5, Min: maxTokens + 1}, []string{"max is 1000000005", "min is 1000000001"}},
		{"all faults at once", Limit{Max: -1, Min: -2, TTL: 1}, []string{"max is -1", "min is -2", "ttl is 1ns"}},
		{"hard", Limit{Max: 100, Hard: true, Min: 10}, nil},
		{
			"hard with a ceiling whose burst is less than a token",
			Limit{Max: 100, Hard: true, Min: 9},
			[]string{"min is 9", "at least max / burst with hard, which is 10"},
		},
		{"hard with the least ceiling, rounded up", Limit{Max: 100, Burst: 30, Hard: true, Min: 4}, nil},
		{"hard with a ceiling below", Limit{Max: 100, Burst: 30, Hard: true, Min: 3}, []string{"which is 4"}},
		{"hard without max", Limit{Hard: true, Min: 1, AdaptiveMin: 1}, nil},
		{"adaptive above a max of one", Limit{Max: 1, Adaptive: true, AdaptiveMin: 2}, []string{"adaptiveMin is 2"}},
		{"adaptive without max", Limit{AdaptiveMin: 5}, nil},
		{"adaptive and hard", Limit{Max: 100, Burst: 30, Hard: true, Adaptive: true, AdaptiveMin: 4}, nil},
		{"below that", Limit{Max: 100, Burst: 30, Hard: true, Adaptive: true, AdaptiveMin: 3}, []string{"adaptiveMin is 3", "which is 4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.l.Validate()
			if tc.bad == nil {
				require.NoError(t, err)
				th := whole(t, tc.l)
				require.NoError(t, th.Close())
				return
			}
			for _, part := range tc.bad {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestRampDefaults(t *testing.T) {
	require.False(t, Limit{Min: 1}.Ramps(), "no limit")
	require.True(t, Limit{Max: 5, Min: 1}.Ramps())
	require.Equal(t, Limit{Max: 5, Per: time.Second, Burst: 1}, Limit{Max: 5}.withDefaults(), "no ramp")
	l := Limit{Max: 5, RampUpDuration: time.Minute}.withDefaults()
	require.Equal(t, Limit{Max: 5, Per: time.Second, Burst: 1, Min: 1, RampUpDuration: time.Minute, Mode: RampRelaxed{}, TTL: 3 * time.Minute}, l)
	require.Equal(t, time.Second, Limit{Max: 5, Min: 2}.withDefaults().RampUpDuration)
	for _, tc := range []struct {
		mode Mode
		text string
		want ramp.Config
	}{
		{nil, "", ramp.Config{Mode: ramp.Relaxed}},
		{RampRelaxed{}, "relaxed", ramp.Config{Mode: ramp.Relaxed}},
		{RampScheduled{}, "scheduled", ramp.Config{Mode: ramp.Scheduled}},
		{RampOnlyIfUsed{}, "onlyIfUsed", ramp.Config{Mode: ramp.OnlyIfUsed, ThresholdPercentage: 50}},
		{RampOnlyIfUsed{70}, "{onlyIfUsed: {thresholdPercentage: 70}}", ramp.Config{Mode: ramp.OnlyIfUsed, ThresholdPercentage: 70}},
		{
			RampGoBackN{},
			"goBackN",
			ramp.Config{Mode: ramp.GoBackN, ThresholdPercentage: 50, RampDownPercentage: 50, CoolDownPeriod: 5 * time.Second},
		},
		{
			RampGoBackN{40, 7 * time.Second, 30},
			"{goBackN: {coolDownPeriod: 7s, rampDownPercentage: 30, thresholdPercentage: 40}}",
			ramp.Config{Mode: ramp.GoBackN, ThresholdPercentage: 40, RampDownPercentage: 30, CoolDownPeriod: 7 * time.Second},
		},
	} {
		if tc.mode != nil {
			require.Equal(t, tc.text, tc.mode.String())
		}
		tc.want.Min, tc.want.Max, tc.want.Per, tc.want.RampUpDuration, tc.want.TTL = 10, 20, time.Second, time.Minute, time.Hour
		require.Equal(t, tc.want, Limit{Max: 20, Min: 10, RampUpDuration: time.Minute, Mode: tc.mode, TTL: time.Hour}.rampConfig())
	}
}

// What a ramp grants in a window is never more than the integral of the ceiling and
// the burst.
func TestLocalRampKeepsEveryWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1000, Min: 100, Burst: 50, RampUpDuration: 10 * time.Second, Mode: RampScheduled{}})
		var total, least float64 // granted less the integral of the ceiling
		began, tokens := time.Now(), 0.0
		for time.Since(began) < 12*time.Second {
			time.Sleep(7 * time.Millisecond)
			tokens += float64(drain(th))
			s := min(time.Since(began).Seconds(), 10)
			total = tokens - (100*s + 45*s*s + 1000*max(0, time.Since(began).Seconds()-10))
			least = min(least, total)
			require.LessOrEqual(t, total-least, 50.0+1)
		}
		require.Greater(t, total, -60.0, "and hardly less")
	})
}

func TestFlowOfAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 100, Burst: 100}, 0.5)
		at := rateHolder{th}.Report(0).Usage
		time.Sleep(time.Second)
		p := take(t, th, 10)
		p.Settle(4)
		used, offered := rateHolder{th}.Report(0).Usage.Since(at, time.Second, th.Limit().Max, th.Limit().Per)
		require.InDelta(t, wholeShare/25, used, 10)
		require.InDelta(t, wholeShare/2, offered, 10)
		at = rateHolder{th}.Report(0).Usage
		c := begin(th, 100, 0)
		used, _ = rateHolder{th}.Report(0).Usage.Since(at, time.Second, th.Limit().Max, th.Limit().Per)
		require.Equal(t, int64(1), used, "who waits is traffic")
		c.cancel()
		_ = c.end(t)
	})
}

package throttle

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A service accepts so many calls per second, with a burst of a tenth of a second.
type service struct {
	mu    sync.Mutex
	rate  float64
	level float64
	at    time.Time
}

func (s *service) take() Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.level = min(s.level+s.rate*now.Sub(s.at).Seconds(), max(1, s.rate/10))
	s.at = now
	if s.level < 1 {
		return OutcomeRefused
	}
	s.level--
	return OutcomeAccepted
}

func (s *service) can(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate = rate
}

// Calls are reported by permit, through an All, or by the time at which they were granted.
func TestWaysToReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 100, Adaptive: true})
		slots := flight(t, 5)
		plain := whole(t, Limit{Max: 100, Burst: 100})
		time.Sleep(5 * time.Second)
		reported := func() [3]int64 {
			a := th.Status().Backoff
			return [3]int64{a.Accepted, a.Refused, a.Overloaded}
		}
		all := All(th, PerCall(slots), plain)
		require.True(t, adapts(th))
		require.True(t, adapts(all))
		require.False(t, adapts(All(plain, slots)))
		require.False(t, adapts(nil))
		p := take(t, all, 4)
		p.Settle(2)
		p.Report(OutcomeAccepted)
		require.Equal(t, [3]int64{4, 0, 0}, reported())
		th.Report(3, time.Now().Add(-time.Second), OutcomeAccepted)
		th.Report(2, time.Time{}, OutcomeOverloaded)
		th.Report(0, time.Time{}, OutcomeOverloaded)
		require.Equal(t, [3]int64{7, 0, 2}, reported())
		require.Equal(t, int64(1), th.Status().Backoff.Cuts)
		th.Report(5, time.Now().Add(-time.Millisecond), OutcomeRefused)
		time.Sleep(300 * time.Millisecond)
		th.Report(5, time.Now().Add(-200*time.Millisecond), OutcomeRefused)
		require.Equal(t, int64(1), th.Status().Backoff.Cuts, "granted before its lag was over")
		th.Report(5, time.Now(), OutcomeRefused)
		require.Equal(t, int64(2), th.Status().Backoff.Cuts)

		before := reported()
		for _, o := range []Outcome{-1, 3, 99} {
			th.Report(1, time.Time{}, o)
		}
		require.Equal(t, before, reported(), "none that is known")
		Permit{}.Report(OutcomeRefused)
		NewPermit(1, nil).Report(OutcomeRefused)
		take(t, plain, 1).Report(OutcomeRefused)
		plain.Report(1, time.Time{}, OutcomeRefused)
		require.Zero(t, plain.Status().Backoff)
		none := whole(t, Limit{Adaptive: true})
		none.Report(1, time.Time{}, OutcomeRefused)
		take(t, none, 1).Report(OutcomeRefused)
		require.Zero(t, none.Status().Backoff)
		require.NoError(t, th.Close())
		th.Report(1, time.Time{}, OutcomeRefused)
	})
}

func TestAdaptiveIsChecked(t *testing.T) {
	for want, l := range map[string]Limit{
		"adaptiveMin is -1, allowed: 0":                         {Max: 10, Adaptive: true, AdaptiveMin: -1},
		"adaptiveMin is 11, allowed: 0":                         {Max: 10, Adaptive: true, AdaptiveMin: 11},
		"adaptiveMin is 5, allowed: only with adaptive":         {Max: 10, AdaptiveMin: 5},
		"adaptiveMin is 5, allowed: at least max / burst":       {Max: 100, Burst: 10, Hard: true, Adaptive: true, AdaptiveMin: 5},
		"adaptiveMin is 2000000000, allowed: 0 (a hundredth of": {AdaptiveMin: 2_000_000_000},
	} {
		require.ErrorContains(t, l.Validate(), want)
	}
	for _, tc := range []struct {
		l    Limit
		want int
	}{
		{Limit{Max: 1000, Adaptive: true}, 10},
		{Limit{Max: 10, Adaptive: true}, 1},
		{Limit{Max: 1000, Burst: 20, Hard: true, Adaptive: true}, 50},
		{Limit{Max: 1000, Adaptive: true, AdaptiveMin: 1000}, 1000},
		{Limit{Max: 1000}, 0},
		{Limit{Adaptive: true, AdaptiveMin: 4}, 4},
	} {
		require.NoError(t, tc.l.Validate())
		require.Equal(t, tc.want, tc.l.withDefaults().AdaptiveMin)
	}
}

// A Throttle that is fed from many goroutines at once.
func TestReportsAtOnce(t *testing.T) {
	th := whole(t, Limit{Max: 1_000_000, Adaptive: true})
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for k := range 2000 {
				if p, ok := th.TryAcquire(1); ok {
					p.Report(Outcome(k % 7 % 3 * (i % 2)))
				}
				if k%100 == 0 {
					_ = th.Status()
					_ = rateHolder{th}.Report(0).Usage
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	sound(t, th)
}

package throttle

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A part of an All earns its tokens, or they come in slots: a slot that comes too early is void before the last.
func TestRateSourceEarns(t *testing.T) {
	slow, _ := issued(t, Limit{Max: 1, Per: 10 * time.Second, Strict: true})
	for _, tc := range []struct {
		l            *Throttle
		n            int
		takes, ahead time.Duration
	}{
		{whole(t, Limit{Max: 8, Burst: 1}), 2, 250*time.Millisecond + 1, 250*time.Millisecond + 1},
		{slow, 3, 30 * time.Second, 500 * time.Millisecond},
		{slow, math.MaxInt, never / 2, 500 * time.Millisecond},
	} {
		takes, ahead := rateSource{&tc.l.rateLimiter}.Earns(tc.n)
		require.InDelta(t, tc.takes, takes, 1)
		require.InDelta(t, tc.ahead, ahead, 1)
	}
}

// Tokens that are taken, and put back since another part of the All has none, are where they were: in the bucket, or collected.
func TestRateSourceTakesBack(t *testing.T) {
	for _, l := range []Limit{{Max: 100, Burst: 10}, {Max: 100, Burst: 10, Hard: true}} {
		for _, between := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, l)
				s := rateSource{&th.rateLimiter}
				time.Sleep(time.Second)
				if !l.Hard {
					take(t, th, 10)
					call := begin(th, 50, 0)
					time.Sleep(300 * time.Millisecond)
					defer call.cancel()
				}
				s.Lock()
				w := th.queue.First
				if w == nil {
					w = &waiter{N: 7, Least: 7}
				}
				held := s.AtHand(w)
				p, ok := s.Take(w, held)
				require.True(t, ok)
				require.Equal(t, held, p.N())
				require.Less(t, s.AtHand(w), held)
				if between {
					th.bucket.Fence() // as a settlement makes one
				}
				s.Untake(w, p)
				require.Equal(t, held, s.AtHand(w))
				s.Unlock()
			})
		}
	}
}

// A caller is large if the bucket can never hold its tokens.
func TestRateSourceKnowsLargeCallers(t *testing.T) {
	th := whole(t, Limit{Max: 100, Burst: 10})
	s := rateSource{&th.rateLimiter}
	for n, large := range map[int]bool{9: false, 10: false, 11: true} {
		s.Lock()
		w := &waiter{N: n, Least: n}
		s.Stand(w)
		require.Equal(t, large, w.Large, n)
		th.leaveQueue(th.gate.Now(), w)
		s.Unlock()
	}
}

package tagbucket

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A bound holds draws of a tag whatever its quota says: there may be none, and it may be in shadow.
func TestBoundHoldsWhateverTheQuotaSays(t *testing.T) {
	for name, s := range map[string]*Bucket{
		"none": local(limit.Quota{}), "large": local(limit.Quota{Total: 1000, Burst: 1000}), "shadow": local(limit.Quota{Total: 1, Shadow: true}),
		"pooled": pooled(limit.Quota{}),
	} {
		t.Run(name, func(t *testing.T) {
			now := 10 * second
			free := s.AtHand(now)
			s.SetBound(now, 20)
			require.True(t, s.Holds())
			require.EqualValues(t, 0, s.AtHand(now), "it begins empty")
			require.False(t, s.Has(now, 1))
			wait, why, known := s.Due(now, 3)
			require.Equal(t, []any{150 * time.Millisecond, limit.ReasonAdaptive, true}, []any{wait, why, known})
			require.EqualValues(t, 2, s.AtHand(now+second), "a tenth of a second is saved up")
			if !s.quotaHolds() {
				require.Equal(t, limit.ReasonAdaptive, s.Lacks(now+second, 1), "somebody waits before")
			}
			d, ok := s.Take(now+second, 2)
			require.True(t, ok)
			s.Return(now+second, d, 1)
			require.EqualValues(t, 1, s.AtHand(now+second))
			s.Owe(now+second, 11)
			require.EqualValues(t, 0, s.AtHand(now+second+second/2))
			require.EqualValues(t, 1, s.AtHand(now+second+11*second/20), "what is owed is earned first")
			s.SetBound(now+2*second, math.Inf(1))
			require.Equal(t, free, s.AtHand(now+2*second))
			require.Zero(t, s.Bound())
		})
	}
}

// The scarcer of both names the reason.
func TestBoundBesideATotal(t *testing.T) {
	s := local(limit.Quota{Total: 10, Burst: 1})
	s.SetBound(0, 2)
	wait, why, _ := s.Due(0, 2)
	require.Equal(t, []any{time.Second, limit.ReasonAdaptive}, []any{wait, why})
	s.SetBound(0, 100)
	wait, why, _ = s.Due(0, 2)
	require.Equal(t, []any{200 * time.Millisecond, limit.ReasonQuota}, []any{wait, why})
	require.Equal(t, time.Second/5, s.Earns(2))
	s.SetBound(0, 5)
	require.Equal(t, 2*time.Second/5, s.Earns(2))

	p := pooled(limit.Quota{Total: 10})
	p.SetBound(0, 1)
	_, why, known := p.Due(0, 1)
	require.Equal(t, []any{limit.ReasonQuota, false}, []any{why, known}, "nobody knows when the pool gives more")
}

// A draw that is larger than what is saved up gets its tokens in the end, also one that does not wait.
func TestBoundSavesUpForLargeDraws(t *testing.T) {
	s := local(limit.Quota{})
	s.SetBound(0, 10)
	require.False(t, s.Has(0, 50))
	require.False(t, s.Has(5*second-second/100, 50))
	require.True(t, s.Has(5*second, 50))
	s = local(limit.Quota{})
	s.SetBound(0, 10)
	s.Reach(0, 50, 50)
	wait, _, _ := s.Due(0, 50)
	require.Equal(t, 5*time.Second, wait)
	require.EqualValues(t, 50, s.AtHand(int64(wait)))
	for n := int64(1); n < 300; n++ {
		for rate := range 50 {
			s := local(limit.Quota{})
			s.SetBound(0, float64(rate+1)/7)
			s.Reach(0, n, n)
			s.AtHand(12345)
			wait, _, _ := s.Due(12345, n)
			require.True(t, s.Has(12345+int64(wait), n), "what is due is there when it is due")
		}
	}
}

// Pressed tells that the bound, and nothing else, has held a draw back since it was asked last.
func TestBoundKnowsWhomItHeldBack(t *testing.T) {
	s := local(limit.Quota{Total: 1, Burst: 1})
	s.SetBound(0, 10)
	require.False(t, s.Pressed(0, 0))
	s.Has(0, 1)
	require.False(t, s.Pressed(0, 0), "the total held it")
	s.Has(second, 1)
	require.False(t, s.Pressed(second, 0))
	s = local(limit.Quota{})
	s.SetBound(0, 10)
	s.Has(0, 1)
	require.True(t, s.Pressed(0, 0))
	require.False(t, s.Pressed(0, 0))
	require.True(t, s.Pressed(0, 1), "somebody waits")
	require.False(t, s.Pressed(second, 1))
}

// Draws that did not ask make no more debt than can be saved up; what was used above a draw makes any.
func TestDrawsThatDidNotAskMakeLittleDebt(t *testing.T) {
	s := local(limit.Quota{})
	s.SetBound(0, 20)
	var last *Draw
	for range 1000 {
		d, ok := s.Take(0, 1)
		require.True(t, ok)
		last = d
	}
	wait, _, _ := s.Due(0, 1)
	require.Equal(t, 150*time.Millisecond, wait)
	s.Return(0, last, 1)
	wait, _, _ = s.Due(0, 1)
	require.Equal(t, 100*time.Millisecond, wait)
	s.Owe(0, 1000)
	_, ok := s.Take(0, 1)
	require.True(t, ok)
	wait, _, _ = s.Due(0, 1)
	require.Equal(t, 50*time.Second+100*time.Millisecond, wait, "what is owed stays")
}

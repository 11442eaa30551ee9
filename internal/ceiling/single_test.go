package ceiling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

var singleLimit = SingleConfig{Limit: Rate{1000, time.Second}, Most: 1000}

// served counts calls at a steady rate for a second that ends now.
func (s *Single) served(now int64, accepted, refused int64) {
	for i := range int64(20) {
		s.Tally.Count(now-second+(i+1)*second/20, backoff.Totals{Accepted: accepted / 20, Refused: refused / 20}, true)
	}
}

// A tag falls from what it uses, and not from the limit.
func TestASingleFallsFromWhatItUses(t *testing.T) {
	c := singleLimit
	var s Single
	require.True(t, s.Free())
	s.served(10*second, 200, 0)
	require.False(t, s.Refuse(c, 10*second), "nothing was refused")
	require.True(t, s.Free())
	s.served(11*second, 100, 100)
	require.InDelta(t, 0.5, s.Refused(c, 11*second), 0.05)
	require.True(t, s.Refuse(c, 11*second))
	require.InDelta(t, 200*0.49, s.Rate(c, 11*second), 10, "0.7 of the half that was accepted, but not trusted for less than 0.7")
	require.False(t, s.Refuse(c, 11*second), "once")
	require.EqualValues(t, 1, s.Cuts)
}

// It rises while callers lack tokens, and is free when it could not have more anyway.
func TestASingleRisesWhileItHoldsCallersBack(t *testing.T) {
	c := singleLimit
	c.Most = 300
	var s Single
	s.served(second, 100, 100)
	require.True(t, s.Refuse(c, second))
	cut := s.Rate(c, second)
	for at := int64(2); at < 60; at++ {
		s.Step(c, at*second, false)
	}
	require.InDelta(t, cut, s.Rate(c, 60*second), cut/4, "nobody lacks tokens")
	at := int64(60)
	for last := 0.0; !s.Free(); at++ {
		require.GreaterOrEqual(t, s.Rate(c, at*second), last)
		last = s.Rate(c, at*second)
		require.Less(t, last, 400.0, "a second after the last step")
		s.Step(c, at*second, true)
	}
	require.Less(t, at, int64(75), "it takes a few seconds")
	s.served(100*second, 1000, 0)
	require.False(t, s.Refuse(c, 100*second))
	require.True(t, s.Free())
}

// What is reserved is left, and a little of what the tag used.
func TestASingleKeepsWhatIsReserved(t *testing.T) {
	c := singleLimit
	c.Reserved = 120
	cutDown := func() float64 {
		var s Single
		at := int64(0)
		for range 30 {
			at += second
			if s.Settle(at) {
				at += second
			}
			s.served(at, 0, 200)
			s.Refuse(c, at)
		}
		return s.Rate(c, at)
	}
	require.InDelta(t, 120, cutDown(), 1e-3)
	c.Reserved = 0
	require.InDelta(t, 2, cutDown(), 0.2)
}

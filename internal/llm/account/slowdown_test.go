package account

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The rate of the last 20 s, when calls go on, and for how long more slowly.
func TestSlowdown(t *testing.T) {
	began := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	var s slowdown
	require.Nil(t, s.limiter(at(0)), "nothing is held back")
	for i := range 30 { // one a second
		s.count(at(float64(i)))
	}
	rate, first := s.refused(at(29.5), 10*time.Second)
	require.Equal(t, []any{60.0, true}, []any{rate, first})
	require.Nil(t, s.limiter(at(39.4)))
	rate, first = s.refused(at(30), 5*time.Second) // it shortens nothing
	require.Equal(t, []any{60.0, false}, []any{rate, first})
	require.Nil(t, s.limiter(at(39.4)))
	_, first = s.refused(at(31), 29*time.Second)
	require.False(t, first)
	require.Nil(t, s.limiter(at(59.9)))
	ramp := s.limiter(at(60))
	require.NotNil(t, ramp)
	require.Same(t, ramp, s.limiter(at(120)), "for a minute")
	require.Nil(t, s.limiter(at(120.1)))

	for when, want := range map[float64]float64{119.9: 36, 120: 1} { // a further one after no calls
		of := slowdown{rate: 60, from: at(60)}
		rate, first = of.refused(at(when), 0)
		require.Equal(t, []any{want, true}, []any{rate, first})
	}
}

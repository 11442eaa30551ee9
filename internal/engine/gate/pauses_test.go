package gate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Those who are told the same end do not all start at one instant, and none starts before it.
func TestStartAfterAPauseIsStaggered(t *testing.T) {
	for d, most := range map[time.Duration]time.Duration{time.Second: 100 * time.Millisecond, time.Hour: time.Second} {
		seen := map[int64]bool{}
		for range 200 {
			var p Pauses
			p.Put([]limit.Paused{{Until: time.Unix(0, int64(d))}}, "", 0, func(at time.Time) int64 { return at.UnixNano() }, rand.Float64())
			require.GreaterOrEqual(t, p.Until, int64(d+min(d/20, 250*time.Millisecond)))
			require.LessOrEqual(t, p.Until, int64(d+most))
			seen[p.Until] = true
		}
		require.Greater(t, len(seen), 150)
	}
}

// A pool's limiter is told of one pause again and again, a little more exactly each time.
func TestStaggerStaysWhileTheEndMovesALittle(t *testing.T) {
	var p Pauses
	at := func(end int64) {
		p.Put([]limit.Paused{{Until: time.Unix(0, end)}}, "", 0, func(at time.Time) int64 { return at.UnixNano() }, 0.5)
	}
	at(int64(time.Minute))
	first := p.Until
	at(int64(time.Minute - 300*time.Millisecond))
	require.Equal(t, first-int64(300*time.Millisecond), p.Until)
	require.Equal(t, int64(1), p.Count)
	at(int64(2 * time.Minute))
	require.GreaterOrEqual(t, p.Until, int64(2*time.Minute))
	require.Equal(t, int64(1), p.Count)
}

package ramp

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// A peer is a processor as the merging rule sees it.
type peer struct {
	share         int64
	next, last    int64 // times of its next report and of the last one
	used, offered int64 // as reported last
}

// merged runs a pool in which every processor uses the same part of what it is
// offered, reports at irregular times, and draws below the ceiling of its last answer. It returns
// the ceiling at the end.
func merged(c Config, rng *rand.Rand, n int, interval time.Duration, part float64, length int64) float64 {
	peers := make([]*peer, n)
	for i := range peers {
		peers[i] = &peer{share: Whole / int64(n), next: 1 + rng.Int64N(interval.Microseconds())}
	}
	s, ceiling := c.Next(State{}, Step{})
	for {
		p := peers[0]
		for _, q := range peers {
			if q.next < p.next {
				p = q
			}
		}
		if p.next > length {
			return c.Ceiling(s).At(length)
		}
		now := p.next
		if p.last > 0 {
			mean := (ceiling.At(p.last) + ceiling.At(now)) / 2 / float64(c.Max)
			p.offered = int64(float64(p.share) * mean)
			p.used = int64(float64(p.offered)*part) + 1
		}
		p.last = now
		p.next = now + interval.Microseconds()*(90+rng.Int64N(21))/100
		var used, offered int64
		for _, q := range peers {
			used, offered = used+q.used, offered+q.offered
		}
		s, ceiling = c.Next(s, Step{Now: now, Used: used, Offered: offered})
	}
}

// However many processors report, how often and when, what counts is which part of the offer
// they use: just above the threshold is no different from all of it, and just below
// it no different from next to nothing.
func TestMerging(t *testing.T) {
	c := Config{
		Min: 1000, Max: 10_000, Per: time.Second, RampUpDuration: 2 * time.Minute, Mode: GoBackN,
		ThresholdPercentage: 70, CoolDownPeriod: 5 * time.Second, RampDownPercentage: 50, TTL: DefaultTTL,
	}
	require.NoError(t, c.Validate())
	for _, n := range []int{1, 2, 3, 10, 100} {
		for _, interval := range []time.Duration{100 * time.Millisecond, time.Second, 2500 * time.Millisecond} {
			t.Run(fmt.Sprint(n, " every ", interval), func(t *testing.T) {
				for seed := range uint64(race.Fewer(5)) {
					rng := rand.New(rand.NewPCG(seed, uint64(n)))
					// A first report tells nothing, the second comes one interval later, and counts from
					// the second after it: 1 min is half the way.
					late := 2*interval + 2*time.Second
					least := 1000 + 9000*float64(time.Minute-late)/float64(2*time.Minute)
					got := merged(c, rng, n, interval, 0.71, time.Minute.Microseconds())
					require.Greater(t, got, least)
					require.LessOrEqual(t, got, 1000+9000*0.5)
					require.InDelta(t, 1000, merged(c, rng, n, interval, 0.69, time.Minute.Microseconds()), 0)
				}
			})
		}
	}
}

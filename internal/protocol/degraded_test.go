package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// lost returns a processor that goes on without the store, and the time of its last request.
func lost(t *testing.T) (p *Processor, asked time.Duration) {
	t.Helper()
	p = content(t, 0)
	now := time.Second
	for !p.degraded {
		now = p.Next(now, 0)
		asked = now
		p.Failed(now, p.Request(now, uint64(now), Observation{Demand: driver.Whole}).Seq)
		require.Less(t, now, 2*driver.DefaultLease)
	}
	require.Equal(t, driver.Share(490_000_000), p.Held(now))
	return p, asked
}

// A store that has come back meanwhile may have given away the share of who has not asked.
func TestAShareWithoutConsentRestsOnTheLastRequest(t *testing.T) {
	p, asked := lost(t)
	end := asked + driver.DefaultLease*6/10
	require.Equal(t, end, p.Until())
	require.NotZero(t, p.Held(end-1))
	require.Zero(t, p.Held(end))
	require.Equal(t, string(StateLost), p.View(end).State)

	req := p.Request(end, 1, Observation{Demand: driver.Whole})
	require.Zero(t, req.InUse)
	p.Failed(end, req.Seq)
	require.Zero(t, p.Held(end+1), "not again before the store has answered")
}

// Who has no share when the store is lost has nothing to go on with: no alert is to say that it does.
func TestWhoHasNoShareDoesNotGoOn(t *testing.T) {
	p := content(t, 0)
	p.held = 0
	for now := time.Second; now < 2*driver.DefaultLease; {
		now = p.Next(now, 0)
		p.Failed(now, p.Request(now, uint64(now), Observation{Demand: driver.Whole}).Seq)
		require.False(t, p.View(now).Degraded, now)
	}
	require.Equal(t, StateLost, p.state)
}

func TestAShareWithoutConsentLastsAnHour(t *testing.T) {
	p, began := lost(t)
	now := began
	for p.Held(now) > 0 {
		require.NotZero(t, p.Held(p.Until()-1))
		now = p.Next(now, 1)
		p.Failed(now, p.Request(now, uint64(now), Observation{Demand: driver.Whole}).Seq)
	}
	require.InDelta(t, time.Hour, now-began, float64(2*p.Interval()))
}

// The end must leave room for requests that fail late, or a processor would stop although it asks.
func TestWhoAsksOnTimeGoesOnWithoutTheStore(t *testing.T) {
	for _, lease := range []time.Duration{driver.MinLease, driver.DefaultLease, driver.MaxLease} {
		for _, live := range []int{1, 100, 1000} {
			p := core{Lease: lease}
			p.Answer.Live = live
			gap := max(p.Interval(), SyncTimeout(lease)) // from one request to the next
			require.Greater(t, p.grace(), gap*3/2, "%v, %d live", lease, live)
		}
	}
}

// The store heard of a processor last before the gap that was ahead of the first failed request. The longer that gap, the
// sooner a share without its consent ends, so that it is over before the store gives it to others.
func TestAShareWithoutConsentAllowsForTheGap(t *testing.T) {
	for gap, want := range map[time.Duration]time.Duration{
		time.Second:             6 * time.Second,
		driver.DefaultLease / 4: 6 * time.Second,
		driver.DefaultLease / 2: 4200 * time.Millisecond,
		driver.DefaultLease:     0,
	} {
		p := content(t, 0) // answered at 1 s
		req := p.Request(time.Second+gap, 7, Observation{Demand: driver.Whole})
		p.Failed(time.Second+gap, req.Seq)
		require.Equal(t, want, p.grace(), "a gap of %v", gap)
	}
}

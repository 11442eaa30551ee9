package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// lost is how many seconds of the whole limit four busy processors lose in the 40 s after something has happened.
func lost(t *testing.T, lease time.Duration, loss protocol.StoreLoss, happens func(w *world)) float64 {
	t.Helper()
	p := calmPlan(4)
	p.leases, p.loss = []time.Duration{lease}, loss
	c := &crowd{world: newWorld(1, p, nil), n: 4}
	c.join(4)
	c.until(t, time.Minute, func() bool { return c.use() >= enough && c.holding(c.procs) == 4 })
	c.run(c.now + 20*time.Second)
	happens(c.world)
	const span = 40 * time.Second
	return span.Seconds() * (1 - c.watch(t, span).use)
}

// failover has the store away for d, and another server with the same data come back in its place.
func failover(d time.Duration) func(w *world) {
	return func(w *world) {
		w.store.takeDown(w, d, false)
		w.at(w.now+d, w.store.newIdentity)
	}
}

func pause(d time.Duration) func(w *world) { return func(w *world) { w.store.hang(w, d) } }

func killOne(w *world) { w.kill(w.procs[0]) }

// docs/leases.md rests on this: a short lease returns a dead pod's share sooner, and does not outlast the failover of a
// store, after which nobody who has lost its share gets one for 15 s.
func TestWhatALeaseCosts(t *testing.T) {
	short, usual := 4*time.Second, 10*time.Second
	for _, tc := range []struct {
		name    string
		happens func(w *world)
		loss    protocol.StoreLoss
		// how much is lost with each lease, at least and at most
		short, usual [2]float64
	}{
		{"a pod is killed, stop", killOne, protocol.Stop, [2]float64{1, 2}, [2]float64{3, 4.5}},
		{"the store pauses for 2 s, stop", pause(2 * time.Second), protocol.Stop, [2]float64{0, 0.1}, [2]float64{0, 0.1}},
		{"failover in 4 s, stop", failover(4 * time.Second), protocol.Stop, [2]float64{14, 18}, [2]float64{0, 0.1}},
		{"failover in 9 s, stop", failover(9 * time.Second), protocol.Stop, [2]float64{18, 22}, [2]float64{0, 0.1}},
		{"failover in 4 s, degrade", failover(4 * time.Second), protocol.Degrade, [2]float64{0, 0.1}, [2]float64{0, 0.1}},
		{"failover in 9 s, degrade", failover(9 * time.Second), protocol.Degrade, [2]float64{0, 0.1}, [2]float64{0, 0.1}},
	} {
		got := [2]float64{lost(t, short, tc.loss, tc.happens), lost(t, usual, tc.loss, tc.happens)}
		t.Logf("%-32s %5.1f s with a lease of %v, %5.1f s with %v", tc.name, got[0], short, got[1], usual)
		for i, want := range [][2]float64{tc.short, tc.usual} {
			require.True(t, got[i] >= want[0] && got[i] <= want[1], "%s: %v", tc.name, got)
		}
	}
}

// One of four idle processors becomes busy: the part of the limit that it has over its first 8 s. The others give up their
// shares with their next sync, so what counts is the interval.
func TestOneHotProcessor(t *testing.T) {
	for lease, least := range map[time.Duration]float64{4 * time.Second: 0.95, 10 * time.Second: 0.88} {
		p := calmPlan(4)
		p.leases = []time.Duration{lease}
		c := &crowd{world: newWorld(1, p, nil), n: 4}
		c.join(4)
		c.until(t, time.Minute, func() bool { return c.holding(c.procs) == 4 })
		for _, q := range c.procs {
			q.demand = 0
		}
		c.run(c.now + 20*time.Second)
		hot := c.procs[0]
		hot.demand = driver.Whole
		c.turn(hot)
		sum, looks := 0.0, 0
		for end := c.now + 8*time.Second; c.now < end; c.run(c.now + 10*time.Millisecond) {
			sum, looks = sum+c.usable(hot).Fraction(), looks+1
		}
		use := sum / float64(looks)
		t.Logf("lease %v: %.3f of the limit", lease, use)
		require.GreaterOrEqual(t, use, least)
	}
}

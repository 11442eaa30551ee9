package consensus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A provider accepts so many calls per second, with a burst of a tenth of a second.
type provider struct {
	mu                sync.Mutex
	rate, level       float64
	at                time.Time
	accepted, refused int
}

func (s *provider) take() throttle.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.level = min(s.level+s.rate*now.Sub(s.at).Seconds(), max(1, s.rate/10))
	s.at = now
	if s.level < 1 {
		s.refused++
		return throttle.Refused
	}
	s.level--
	s.accepted++
	return throttle.Accepted
}

// set changes what the provider can do, and returns what was accepted and refused since the last time.
func (s *provider) set(rate float64) (accepted, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted, refused = s.accepted, s.refused
	s.accepted, s.refused, s.rate = 0, 0, rate
	return accepted, refused
}

// calling joins a processor whose callers call a provider; bad: it is refused everything.
func calling(t *testing.T, s *server, id string, l throttle.Limit, callers int, p *provider, bad bool) *node {
	t.Helper()
	n := limited(t, s, id, l, 0)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				permit, err := n.th.Acquire(ctx, 1)
				if err != nil {
					return
				}
				o := throttle.Refused
				time.Sleep(time.Duration(20+rand.IntN(30)) * time.Millisecond)
				if !bad {
					o = p.take()
				}
				time.Sleep(20 * time.Millisecond)
				n.used.Add(int64(permit.N()))
				permit.Report(o)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return n
}

var falling = throttle.Limit{Max: 200, Adaptive: true}

// A service that can do a quarter for a while: the pool uses most of what it can do,
// is refused little, and has 80 % again within ten seconds.
func TestPoolFollowsTheService(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		p := &provider{rate: 200, at: time.Now()}
		var nodes []*node
		for i := range 8 {
			nodes = append(nodes, calling(t, s, fmt.Sprint("p", i), falling, 4, p, false))
		}
		time.Sleep(20 * time.Second)
		require.Zero(t, nodes[0].m.View().Cuts, "what is refused while the pool begins is little")
		p.set(200)
		time.Sleep(20 * time.Second)
		before, refusedBefore := p.set(50)
		require.InDelta(t, 4000, before, 100)
		time.Sleep(30 * time.Second)
		low, refusedLow := p.set(200)
		require.GreaterOrEqual(t, low, 30*50*80/100)
		for _, n := range nodes {
			st := n.th.Status()
			require.Less(t, n.ceiling(), 90.0)
			require.True(t, st.Lease.Adapted)
			require.InDelta(t, nodes[0].m.View().Cuts, st.Lease.Cuts, 1)
		}
		time.Sleep(9 * time.Second)
		p.set(200)
		time.Sleep(time.Second)
		within, refusedWithin := p.set(200)
		require.GreaterOrEqual(t, within, 160, "within ten seconds")
		time.Sleep(10 * time.Second)
		require.InDelta(t, 200, nodes[0].ceiling(), 0, "and then all")
		require.False(t, nodes[0].th.Status().Lease.Adapted)
		calls := before + low + 2000
		t.Logf("used %d of %d in the low half minute; refused %d of about %d calls", low, 1500, refusedBefore+refusedLow+refusedWithin, calls)
		require.Less(t, refusedBefore+refusedLow+refusedWithin, calls*3/100)
	})
}

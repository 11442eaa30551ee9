//go:build numathrottle_faults

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// networkLane has a server behind a network that fails for all processes.
func networkLane(t *testing.T, g *ledger) {
	l, _, ways := newNetwork(t, g)
	l.run(networkFaults(ways, "all")...)
}

// oneCutOffLane has a network that fails for one process.
func oneCutOffLane(t *testing.T, g *ledger) {
	l, server, ways := newNetwork(t, g)
	faults := append(networkFaults(ways[:1], "one"), flushedBehind(server, ways[0], l.lost()))
	for i := range faults {
		faults[i].workers = []int{0}
	}
	l.run(faults...)
}

// flushedBehind is a server that is emptied while one process, which holds a share
// of which nothing is on record any more, cannot tell it so.
func flushedBehind(server *servers.Redis, way *proxy.Proxy, allowed time.Duration) fault {
	return fault{name: "FLUSHALL while one is cut off", allowed: allowed, lost: true, inject: func(l *lane) {
		way.Swallow(true, true)
		require.NoError(l, redisClient(l, server).FlushAll(l.Context()).Err())
		l.pass(l.between(2*time.Second, 6*time.Second))
		require.NoError(l, way.Heal())
	}}
}

// newNetwork returns a lane in which every worker has its own way to the server.
func newNetwork(t *testing.T, g *ledger) (*lane, *servers.Redis, []*proxy.Proxy) {
	t.Helper()
	server := testenv.Redis(t)
	var ways []*proxy.Proxy
	var stores []string
	for range workersPerLane {
		p, err := proxy.Start(t.Context(), server.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		ways = append(ways, p)
		stores = append(stores, "redis://"+p.Addr())
	}
	return newLane(t, g, poolConfig{Stores: stores}), server, ways
}

func networkFaults(ways []*proxy.Proxy, who string) []fault {
	each := func(do func(*proxy.Proxy)) {
		for _, p := range ways {
			do(p)
		}
	}
	// lasting is something that lasts for a while; what is still on its way at the
	// end arrives late, or is lost.
	lasting := func(name string, shortest, longest time.Duration, begin func(l *lane, p *proxy.Proxy)) fault {
		return fault{name: "network: " + name + ", for " + who, allowed: stateKept, inject: func(l *lane) {
			each(func(p *proxy.Proxy) { begin(l, p) })
			l.pass(l.between(shortest, longest))
			lose := l.rng.IntN(2) == 0
			each(func(p *proxy.Proxy) {
				if lose {
					p.Cut()
				}
				require.NoError(l, p.Heal())
			})
		}}
	}
	return []fault{
		lasting("200 to 800 ms late", 2*time.Second, 8*time.Second, func(l *lane, p *proxy.Proxy) {
			total := l.between(200*time.Millisecond, 800*time.Millisecond)
			upward := l.between(0, total)
			p.Delay(upward, total-upward)
		}),
		lasting("cut", 500*time.Millisecond, 8*time.Second, func(_ *lane, p *proxy.Proxy) { p.Cut() }),
		lasting("requests swallowed", 500*time.Millisecond, 8*time.Second, func(_ *lane, p *proxy.Proxy) { p.Swallow(true, false) }),
		lasting("answers swallowed", 500*time.Millisecond, 8*time.Second, func(_ *lane, p *proxy.Proxy) { p.Swallow(false, true) }),
	}
}

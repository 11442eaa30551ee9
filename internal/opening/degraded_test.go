package opening

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A losable is a store that can be lost.
type losable struct {
	name, url string
	lose      func(*testing.T)
	find      func(*testing.T)
}

// behindProxies is a store that is reached by so many addresses, each a proxy's, and lost in each way in which they can
// lose it.
func behindProxies(t *testing.T, name string, start func() string, addresses int) (all []losable) {
	t.Helper()
	for way, lose := range map[string]func(p *proxy.Proxy){
		"refused":     (*proxy.Proxy).Cut,
		"silent":      func(p *proxy.Proxy) { p.Swallow(true, true) },
		"never heard": func(p *proxy.Proxy) { p.Swallow(false, true) },
		"late":        func(p *proxy.Proxy) { p.Delay(0, 20*time.Second) },
	} {
		store, err := url.Parse(start())
		require.NoError(t, err)
		var proxies []*proxy.Proxy
		var hosts []string
		for range addresses {
			p := testenv.Proxy(t, store.Host)
			proxies, hosts = append(proxies, p), append(hosts, p.Addr())
		}
		store.Host = strings.Join(hosts, ",")
		all = append(all, losable{
			name: name + ", " + way, url: store.String(),
			lose: func(*testing.T) {
				for _, p := range proxies {
					lose(p)
				}
			},
			find: func(t *testing.T) {
				t.Helper()
				for _, p := range proxies {
					require.NoError(t, p.Heal())
				}
			},
		})
	}
	return all
}

// stopped is a store whose servers are stopped: they take connections, and answer nothing.
func stopped(name, store string, nodes ...*servers.Redis) losable {
	return losable{
		name + ", stopped", store,
		func(t *testing.T) {
			t.Helper()
			for _, n := range nodes {
				require.NoError(t, n.Stop(t.Context()))
			}
		},
		func(t *testing.T) {
			t.Helper()
			for _, n := range nodes {
				require.NoError(t, n.Continue())
			}
		},
	}
}

func losables(t *testing.T) (all []losable) {
	t.Helper()
	nats := func() string { return testenv.NATS(t).URL() }
	all = append(all, behindProxies(t, "redis", func() string { return "redis://" + testenv.Redis(t).Addr() }, 1)...)
	all = append(all, behindProxies(t, "nats", nats, 1)...)
	all = append(all, behindProxies(t, "nats with three addresses", nats, 3)...)
	c, s := testenv.RedisCluster(t), testenv.RedisSentinel(t, 1)
	return append(all,
		stopped("cluster", "redis+cluster://"+strings.Join(c.Addrs(), ","), c.Nodes()...),
		stopped("sentinel", "redis+sentinel://"+strings.Join(s.Addrs(), ",")+"/"+s.MasterName(), append(s.Sentinels(), s.Data()...)...),
	)
}

// TestAShareLastsWhileTheStoreIsLost loses real stores in the ways that a client meets. A share without the store's consent
// ends 0.6 leases after the last request: a client that takes longer over one that comes to nothing would end it. That of
// NATS does, while it looks for a server that answers nothing.
func TestAShareLastsWhileTheStoreIsLost(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	all := losables(t)
	throttles := make([]*throttle.Throttle, len(all))
	for i, l := range all {
		c := short(l.url, "a")
		c.Lease = lease
		throttles[i] = mustOpen(t, c)
	}
	await := func(what string, so func(lease limit.Lease) bool) {
		for i, th := range throttles {
			eventually(t, func() bool { return so(th.Status().Lease) }, all[i].name+": "+what)
		}
	}
	await("the whole limit", func(lease limit.Lease) bool { return lease.Share == limit.WholeShare })

	for _, l := range all {
		l.lose(t)
	}
	await("goes on without the store", func(lease limit.Lease) bool { return lease.Degraded })
	for end := time.Now().Add(lease * 13 / 10); time.Now().Before(end); {
		for i, th := range throttles {
			now := th.Status().Lease
			require.True(t, now.Degraded && now.Share == limit.WholeShare, "%s: %+v", all[i].name, now)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for i, l := range all {
		eventually(t, grants(throttles[i]), l.name+": a token")
		l.find(t)
	}
	await("the store's consent", func(lease limit.Lease) bool { return !lease.Degraded && lease.Share == limit.WholeShare })
}

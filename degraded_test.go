package numathrottle

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// TestAShareLastsWhileTheStoreIsLost loses real stores in the ways that a client meets. A share without the store's consent
// ends 0.6 leases after the last request: a client that takes longer over one that comes to nothing would end it. That of
// NATS does, while it looks for a server that answers nothing.
func TestAShareLastsWhileTheStoreIsLost(t *testing.T) {
	t.Parallel()
	redis := func(t *testing.T) string { return "redis://" + testenv.Redis(t).Addr() }
	nats := func(t *testing.T) string { return testenv.NATS(t).URL() }
	stores := map[string]struct {
		start     func(t *testing.T) (store string)
		addresses int
	}{"redis": {redis, 1}, "nats": {nats, 1}, "nats with three addresses": {nats, 3}}
	ways := map[string]func(p *proxy.Proxy){
		"refused":     (*proxy.Proxy).Cut,
		"silent":      func(p *proxy.Proxy) { p.Swallow(true, true) },
		"never heard": func(p *proxy.Proxy) { p.Swallow(false, true) },
		"late":        func(p *proxy.Proxy) { p.Delay(0, 20*time.Second) },
	}
	const lease = 5 * time.Second
	type lost struct {
		name    string
		proxies []*proxy.Proxy
		lose    func(p *proxy.Proxy)
		th      *throttle.Throttle
	}
	var all []*lost
	for name, s := range stores {
		for way, lose := range ways {
			store, err := url.Parse(s.start(t))
			require.NoError(t, err)
			l := &lost{name: name + ", " + way, lose: lose}
			var addresses []string
			for range s.addresses {
				p := testenv.Proxy(t, store.Host)
				l.proxies, addresses = append(l.proxies, p), append(addresses, p.Addr())
			}
			store.Host = strings.Join(addresses, ",")
			c := short(store.String(), "a")
			c.Lease, c.longestLease = lease, lease
			l.th = mustOpen(t, c)
			all = append(all, l)
		}
	}
	await := func(what string, so func(lease throttle.Lease) bool) {
		for _, l := range all {
			eventually(t, func() bool { return so(l.th.Status().Lease) }, l.name+": "+what)
		}
	}
	await("the whole limit", func(lease throttle.Lease) bool { return lease.Share == throttle.WholeShare })

	for _, l := range all {
		for _, p := range l.proxies {
			l.lose(p)
		}
	}
	await("goes on without the store", func(lease throttle.Lease) bool { return lease.Degraded })
	for end := time.Now().Add(lease * 13 / 10); time.Now().Before(end); {
		for _, l := range all {
			now := l.th.Status().Lease
			require.True(t, now.Degraded && now.Share == throttle.WholeShare, "%s: %+v", l.name, now)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, l := range all {
		eventually(t, grants(l.th), l.name+": a token")
		for _, p := range l.proxies {
			require.NoError(t, p.Heal())
		}
	}
	await("the store's consent", func(lease throttle.Lease) bool { return !lease.Degraded && lease.Share == throttle.WholeShare })
}

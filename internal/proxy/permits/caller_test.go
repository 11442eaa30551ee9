package permits

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// from returns the API as it is for a caller at another address.
func (a *api) from(address string) *api {
	b := *a
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	b.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, to)
		},
	}}
	a.t.Cleanup(b.http.CloseIdleConnections)
	return &b
}

// A permit of no tokens costs nothing, so that it is good for a short time, and there are few of them.
func TestAPermitOfNoTokensIsShort(t *testing.T) {
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000, Burst: 10}), MaxPermits: 50})
	for range 5 {
		p := a.ok("/v1/acquire", `{"tokens":0,"lease_seconds":3600}`)
		require.EqualValues(t, 10, p["lease_seconds"])
	}
	require.Equal(t, "too_many", a.fails(503, "/v1/acquire", `{"tokens":0}`)["reason"])
	p := a.ok("/v1/acquire", `{"tokens":1,"lease_seconds":3600}`)
	require.EqualValues(t, 3600, p["lease_seconds"], "others are as they were")
}

// What was used of a permit of no tokens is paid.
func TestAPermitOfNoTokensIsCharged(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1000, Burst: 10})
	a := start(t, apiConfig{Limiter: th})
	for _, end := range []string{`"used":0`, ``, `"used":400000`} {
		p := a.ok("/v1/acquire", `{"tokens":0}`)
		if end != "" {
			end = "," + end
		}
		a.ok("/v1/settle", `{"permit":"`+text(t, p["permit"])+`"`+end+`}`)
	}
	require.Less(t, th.Status().Tokens, -100_000.0)
	require.Equal(t, "limit", a.fails(429, "/v1/acquire", `{"tokens":0}`)["reason"], "it is for calls that cost something in the end")
}

// Who settles when the lease is over pays what was used above the draw, once; nothing comes back.
func TestALateSettlementIsCharged(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1, Per: time.Hour, Burst: 1000})
	d := newDesk(apiConfig{Limiter: th}.withDefaults())
	settle := func(id string, used int) state {
		before, ok := d.finish(id, settled, used)
		require.True(t, ok)
		return before
	}
	for _, tokens := range []whole{0, 1} {
		r := &acquireRequest{Tokens: &tokens}
		hook.Repay(th, 5) // there is a token
		g, err := d.acquire(t.Context(), r)
		require.NoError(t, err)
		d.locked(func(b *book) int { b.entries[g.id].until = time.Now(); return b.sweep(time.Now()) })
		before := th.Status().Tokens
		require.Equal(t, expired, settle(g.id, 0))
		require.InDelta(t, before, th.Status().Tokens, 0.01)
		for range 3 {
			require.Equal(t, expired, settle(g.id, 3))
			require.InDelta(t, before-3+float64(tokens), th.Status().Tokens, 0.01)
		}
		hook.Repay(th, 10)
	}
}

// With quotas and slots such a permit holds no slot, and its tag pays what was used.
func TestAPermitOfNoTokensWithQuotasAndSlots(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 100_000}, throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{
		"acme": {Budgets: []throttle.Budget{{Amount: 5000, Per: "month"}}},
	}}))
	require.NoError(t, err)
	defer th.Close()
	slots := newSlots(t, 2)
	a := start(t, apiConfig{Limiter: proxy.BoundTags(throttle.All(th, throttle.PerCall(slots)), 100)})
	for range 3 {
		p := a.ok("/v1/acquire", `{"tokens":0,"tag":"acme"}`)
		a.ok("/v1/settle", `{"permit":"`+text(t, p["permit"])+`","used":2000}`)
	}
	require.Zero(t, slots.Status().InUse)
	require.Equal(t, map[string]int64{"acme": 6000}, quotatest.Used(th))
	require.Equal(t, "budget", a.fails(429, "/v1/acquire", `{"tag":"acme","timeout_seconds":0}`)["reason"])
	require.NotContains(t, a.log.String(), "could not be charged")
}

// One caller leaves room for others, and has it again when its permits end.
func TestOneCallerHasSoManyPermits(t *testing.T) {
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000, Burst: 100}), MaxPermits: 5, MaxPermitsPerCaller: 3})
	b := a.from("127.0.0.2")
	var held []string
	for range 3 {
		held = append(held, text(t, a.ok("/v1/acquire", `{"lease_seconds":3600}`)["permit"]))
	}
	e := a.fails(503, "/v1/acquire", `{"lease_seconds":3600}`)
	require.Equal(t, "as many permits of this caller are open or waited for as may be of one: 3", e["message"])
	b.ok("/v1/acquire", `{}`)
	b.ok("/v1/acquire", `{}`)
	require.Equal(t, "as many permits are open or waited for as may be: 5", b.fails(503, "/v1/acquire", `{}`)["message"])
	a.ok("/v1/cancel", `{"permit":"`+held[0]+`"}`)
	a.ok("/v1/acquire", `{}`)
}

// Addresses of other hosts have half of the permits each, unless it is configured.
func TestWhoIsACaller(t *testing.T) {
	for _, c := range []struct {
		remote, name string
		local        bool
	}{
		{"", "", true},
		{"@", "", true},
		{"127.0.0.2:80", "127.0.0.2", true},
		{"[::1]:80", "::1", true},
		{"[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", true},
		{"10.0.0.1:80", "10.0.0.1", false},
		{"[2001:db8::1:2:3:4]:80", "2001:db8::/64", false},
		{"[fe80::1%eth0]:80", "fe80::/64", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
		r.RemoteAddr = c.remote
		require.Equal(t, caller{name: c.name, local: c.local}, callerOf(withCaller(r)), c.remote)
	}
	d := newDesk(apiConfig{Limiter: throttle.All(), MaxPermits: 10}.withDefaults())
	remote := func(n int) context.Context {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
		r.RemoteAddr = fmt.Sprintf("10.0.0.%d:99", n)
		return withCaller(r)
	}
	for i := range 6 {
		_, err := d.acquire(remote(1), &acquireRequest{})
		require.Equal(t, i == 5, err != nil, i)
	}
	for range 5 {
		_, err := d.acquire(remote(2), &acquireRequest{})
		require.NoError(t, err)
	}
	d.locked(func(b *book) int { return b.sweep(time.Now().Add(time.Hour)) })
	require.Empty(t, d.book.callers)
	require.Zero(t, d.book.open)
}

func TestPausesCanBeTurnedOff(t *testing.T) {
	a := start(t, apiConfig{Limiter: newThrottle(t, throttle.Limit{Max: 1000}), NoPause: true})
	require.Equal(t, "forbidden", a.fails(403, "/v1/pause", `{"seconds":10}`)["reason"])
	require.Equal(t, "forbidden", a.fails(403, "/v1/pause", `{"resume":true}`)["reason"])
	require.Equal(t, "forbidden", a.fails(403, "/v1/report", `{"retry_after_seconds":60}`)["reason"])
	p := a.ok("/v1/acquire", `{}`)
	a.fails(403, "/v1/report", fmt.Sprintf(`{"permit":%q,"outcome":"refused","retry_after_seconds":60}`, p["permit"]))
	again := a.ok("/v1/report", fmt.Sprintf(`{"permit":%q,"outcome":"refused"}`, p["permit"]))
	require.Equal(t, true, again["already"], "the outcome counts")
	a.ok("/v1/acquire", `{}`)
}

func TestPausesCanHaveATokenOfTheirOwn(t *testing.T) {
	th := newThrottle(t, throttle.Limit{Max: 1000})
	for _, token := range []string{"", "a-token-of-callers"} {
		a := start(t, apiConfig{Limiter: th, Token: token, PauseToken: "a-token-of-operators"})
		for _, path := range []string{"/v1/pause", "/v1/./pause", "//v1/pause", "/v1/pause/", "/%761/pause"} {
			res := a.send(path, `{"seconds":10}`) // the path may be none of the API
			require.NoError(t, res.Body.Close())
			require.NotEqual(t, 200, res.StatusCode, path)
		}
		require.Equal(t, "forbidden", a.fails(403, "/v1/report", `{"retry_after_seconds":60}`)["reason"])
		a.ok("/v1/acquire", `{"tokens":0,"timeout_seconds":5}`)
		operator := *a
		operator.token = "a-token-of-operators"
		operator.ok("/v1/pause", `{"seconds":10}`)
		operator.ok("/v1/pause", `{"resume":true}`)
		operator.ok("/v1/report", `{"retry_after_seconds":60}`)
		require.NotNil(t, th.Status().Paused)
		operator.ok("/v1/pause", `{"resume":true}`)
		if token != "" {
			require.Equal(t, "unauthorized", operator.fails(401, "/v1/acquire", `{}`)["reason"])
		}
	}
}

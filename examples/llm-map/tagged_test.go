package main

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Each message draws for its tenant: one whose quota is used waits, and holds up no other.
func TestTenants(t *testing.T) {
	for name, rule := range map[string]string{"header": "header x-tenant", "json": "json user.tenant"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, err := throttle.New(throttle.Limit{Max: 1e6, Per: time.Minute, Burst: 1e6}, throttle.WithQuotas(throttle.Quotas{
					Tags: map[string]throttle.Quota{"acme": {Total: 200, Per: time.Hour, Burst: 200}, "beta": {}},
				}))
				require.NoError(t, err)
				defer func() { require.NoError(t, th.Close()) }()
				e := &endpoint{answers: []answer{func(w http.ResponseWriter, _ *http.Request) {
					_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`))
				}}}
				h := mustHandler(t, testSettings(func(s *settings) { s.Tag, s.MaxTokens = rule, 150 }), th, e, nil)
				send := func(tenant string) {
					h.Map(t.Context(), []string{"k"}, datum{value: `{"user":{"tenant":"` + tenant + `"}}`, headers: map[string]string{"x-tenant": tenant}})
				}
				send("acme")
				waits := make(chan struct{})
				go func() { send("acme"); close(waits) }()
				synctest.Wait()
				require.Equal(t, 1, e.count(), "acme has used what it had")
				send("beta")
				send("")
				require.Equal(t, 3, e.count())
				used := map[string]bool{}
				for _, st := range th.Status().Tags {
					used[st.Tag] = st.Used > 0
				}
				require.Equal(t, map[string]bool{"acme": true, "beta": true, "": true}, used)
				began := time.Now()
				<-waits
				require.Greater(t, time.Since(began), 10*time.Minute, "its quota is an hour's")
			})
		})
	}
}

// What the provider refuses to one tenant holds back all: the key is the same.
func TestARefusalOfOneTenantHoldsBackAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1e6, Per: time.Minute, Burst: 1e6}, throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"acme": {}, "beta": {}},
		}))
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		e := &endpoint{answers: []answer{
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusTooManyRequests)
			},
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`))
			},
		}}
		h := mustHandler(t, testSettings(func(s *settings) { s.Tag = "key 0" }), th, e, nil)
		go h.Map(t.Context(), []string{"acme"}, datum{value: "a"})
		time.Sleep(5 * time.Second) // the call is sent once its tokens have come
		_, held := th.Paused("")
		require.True(t, held, "the limit is told, and with it the pool")
		began := time.Now()
		h.Map(t.Context(), []string{"beta"}, datum{value: "b"})
		require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
		synctest.Wait()
	})
}

// With two levels a message draws for its team and for its key: both quotas hold, and a name with a slash is no team.
func TestTeamsAndKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1e6, Per: time.Minute, Burst: 1e6}, throttle.WithQuotas(throttle.Quotas{
			Tags:  map[string]throttle.Quota{"acme": {Total: 400, Per: time.Hour, Burst: 400}, "beta": {}},
			Match: []throttle.QuotaPattern{{Tag: "acme/*", Quota: throttle.Quota{Total: 200, Per: time.Hour, Burst: 200}}},
		}))
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		e := &endpoint{answers: []answer{func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`))
		}}}
		h := mustHandler(t, testSettings(func(s *settings) { s.Tag, s.MaxTokens = "[header team, key 0]", 150 }), th, e, nil)
		var waiting sync.WaitGroup
		send := func(team, key string) {
			h.Map(t.Context(), []string{key}, datum{value: "x", headers: map[string]string{"team": team}})
		}
		time.Sleep(2 * time.Hour)
		send("acme", "one")
		waiting.Go(func() { send("acme", "one") })
		synctest.Wait()
		require.Equal(t, 1, e.count(), "the key has used what it had")
		send("acme", "two")
		waiting.Go(func() { send("acme", "three") })
		synctest.Wait()
		require.Equal(t, 2, e.count(), "the team has, too")
		send("beta", "one")
		send("acme/one", "x")
		require.Equal(t, 4, e.count())
		used := map[string]bool{}
		for _, st := range th.Status().Tags {
			used[st.Tag] = st.Used > 0
		}
		require.Equal(t, map[string]bool{"acme": true, "acme/one": true, "acme/two": true, "beta": true, "": true}, used)
		waiting.Wait()
		require.Equal(t, 6, e.count())
	})
}

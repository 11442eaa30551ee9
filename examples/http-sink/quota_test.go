package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// byDestination are settings by which a message names its destination, which has a path of its own at the service.
func byDestination(service *testkit.Service, change env) env {
	vars := env{
		"URL": service.URL + "/{{.Value}}", "DESTINATION": "{{.Value}}", "NUMATHROTTLE_MAX": "1000000",
		"NUMATHROTTLE_STORE": "memory://" + rand.Text(), "NUMATHROTTLE_POOL": "p", "NUMATHROTTLE_ID": "a",
	}
	maps.Copy(vars, change)
	return vars
}

// seenBy counts the requests to each destination.
func seenBy(s *testkit.Service) map[string]int {
	counts := map[string]int{}
	for _, r := range s.Requests() {
		counts[strings.TrimPrefix(r.Path, "/")]++
	}
	return counts
}

// Quotas from the file and from the environment bound the destinations; what is refused says for which and why, and /statusz shows both.
func TestQuotasOfDestinations(t *testing.T) {
	const quotas = "{tags: {acme: {budgets: [{amount: 2, per: month}]}, beta: {}}}"
	for name, own := range map[string]func(t *testing.T) env{
		"file": func(t *testing.T) env {
			t.Helper()
			return env{"NUMATHROTTLE_CONFIG": file(t, "c.yaml", "quotas: "+quotas+"\n")}
		},
		"variable": func(*testing.T) env { return env{"NUMATHROTTLE_QUOTAS": quotas} },
	} {
		t.Run(name, func(t *testing.T) {
			service, at := startService(t, nil), testenv.ClosedPort(t)
			vars := byDestination(service, own(t))
			maps.Copy(vars, env{"NUMATHROTTLE_HEALTH_ADDR": at, "LIMIT_WAIT": "15s", "ON_UNAVAILABLE": "nack"})
			r := start(t, vars)
			in := messages("acme", "beta", "acme", "beta", "acme", "beta", "acme")
			stored := map[string]int{}
			for i, res := range r.do(in...) {
				destination := string(in[i].Value)
				if res.Status == dataplane.SinkSuccess {
					stored[destination]++
					continue
				}
				require.Equal(t, dataplane.SinkNack, res.Status)
				require.Equal(t, `throttled (budget, tag "acme")`, res.NackOptions.Reason)
				require.Positive(t, res.NackOptions.Delay)
			}
			require.Equal(t, map[string]int{"acme": 2, "beta": 3}, stored)
			require.Equal(t, stored, seenBy(service))
			var status health.Status
			require.NoError(t, json.Unmarshal([]byte(get(t, "http://"+at+"/statusz?format=json")), &status))
			rows := map[string]health.Tag{}
			for _, l := range status.Limits {
				for _, tag := range l.Tags {
					rows[tag.Tag] = tag
				}
			}
			require.EqualValues(t, 2, rows["acme"].Used)
			require.Equal(t, "budget", rows["acme"].By)
			require.EqualValues(t, 3, rows["beta"].Used)
		})
	}
}

// Whoever has waited for a limit takes a place again before it goes on, and holds no tokens while it waits for one.
func TestWhoHasWaitedForALimitTakesAPlaceAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 100, Burst: 50})
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		l, slots := seated{th, th}, make(chan struct{}, 2)
		var inside, done atomic.Int64
		for range 10 {
			s := &seat{slots: slots}
			require.NoError(t, s.take(t.Context())) // as dispatch does: each gives its place up for the next
			go func() {
				defer s.leave()
				_, err := l.Acquire(s.within(t.Context()), 1)
				assert.NoError(t, err)
				assert.LessOrEqual(t, inside.Add(1), int64(2))
				time.Sleep(10 * time.Second) // a slow service
				inside.Add(-1)
				done.Add(1)
			}()
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		require.EqualValues(t, 2, inside.Load())
		require.EqualValues(t, 2, th.Status().Granted-th.Status().Returned)
		time.Sleep(10 * 10 * time.Second)
		require.EqualValues(t, 10, done.Load())
		require.Empty(t, slots)

		s := &seat{slots: slots}
		ended, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("mine")
		cancel(cause)
		slots <- struct{}{}
		slots <- struct{}{}
		require.Equal(t, cause, s.take(ended))
		s.leave()
		require.Len(t, slots, 2, "it had none")
	})
}

// A quota that is changed while the sink runs counts for a destination that it knows already.
func TestAChangedQuotaCountsForAKnownDestination(t *testing.T) {
	service := startService(t, nil)
	r := start(t, byDestination(service, env{"LIMIT_WAIT": "300ms", "ON_UNAVAILABLE": "nack"}))
	store := memstore.New()
	member, err := consensus.Join(r.ctx, store, "q", consensus.WithID("a"))
	require.NoError(t, err)
	th, err := throttle.New(throttle.Limit{Max: 1_000_000}, throttle.WithSharer(member), throttle.OnClose(member.Leave),
		throttle.WithQuotas(throttle.Quotas{}))
	require.NoError(t, err)
	defer func() { require.NoError(t, th.Close()) }()
	r.limits.shared = th // before it is asked for a destination
	passes := func(destination string) bool {
		return r.do(messages(destination)...)[0].Status == dataplane.SinkSuccess
	}
	require.Eventually(t, func() bool { return passes("acme") && passes("beta") }, testTimeout, 10*time.Millisecond, "the pool gives it a share")
	none := throttle.Quota{Total: 1, Per: 744 * time.Hour}
	require.Eventually(t, func() bool { return protocol.SaveQuota(r.ctx, store, "q", "acme", &none, false) == nil }, testTimeout, 10*time.Millisecond,
		"the pod says that it has quotas")
	require.Eventually(t, func() bool { return !passes("acme") }, testTimeout, 10*time.Millisecond)
	for range 3 {
		require.False(t, passes("acme"))
	}
	require.Eventually(t, func() bool { return passes("beta") }, testTimeout, 10*time.Millisecond)
}

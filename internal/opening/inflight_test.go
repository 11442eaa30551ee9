package opening

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func mustOpenInFlight(t *testing.T, slots int, c Config) *throttle.InFlight {
	t.Helper()
	f, err := InFlight(t.Context(), slots, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestSlotsInFlightAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(id string) *throttle.InFlight {
			return mustOpenInFlight(t, 10, Config{Store: "memory://" + t.Name(), Pool: "p", ID: id, Policy: PolicyEven, Logger: quiet()})
		}
		a, b := open("a"), open("b")
		time.Sleep(5 * time.Second)
		for _, f := range []*throttle.InFlight{a, b} {
			for range 5 {
				_, ok := f.TryAcquire(1)
				require.True(t, ok)
			}
			_, ok := f.TryAcquire(1)
			require.False(t, ok, "half of the slots and no more")
		}
		require.Equal(t, "p", a.Status().Name)
	})
}

func TestSlotsInFlightHaveQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 2}}}
		acme := mustOpenInFlight(t, 10, Config{Store: "memory://" + t.Name(), Pool: "p", Quotas: quotas, Logger: quiet()}).ForTag("acme")
		_, err := acme.Acquire(t.Context(), 2)
		require.NoError(t, err)
		_, ok := acme.TryAcquire(1)
		require.False(t, ok)
	})
}

// Slots are seen wherever other limits are.
func TestSlotsInFlightAreSeen(t *testing.T) {
	addr := testenv.ClosedPort(t)
	f := mustOpenInFlight(t, 10, Config{Store: "memory://" + t.Name(), Pool: "p/in-flight", ID: "pod-1", Logger: quiet(), HealthAddr: addr})
	eventually(t, func() bool { code, _ := fetch(t, addr, "/readyz"); return code == 200 }, "ready")
	for range 10 {
		_, ok := f.TryAcquire(1)
		require.True(t, ok)
	}
	_, ok := f.TryAcquire(1)
	require.False(t, ok)
	_, err := f.Pause(t.Context(), time.Now().Add(time.Hour), "maintenance")
	require.NoError(t, err)

	_, body := fetch(t, addr, "/statusz?format=json")
	var status health.Status
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	require.Len(t, status.Limits, 1)
	l := status.Limits[0]
	require.Equal(t, &health.InFlight{Max: 10, Slots: 10, InUse: 10}, l.InFlight)
	require.Equal(t, "p/in-flight", l.Name)
	require.Equal(t, int64(10), l.Granted)
	require.Equal(t, int64(1), l.Refused)
	require.Equal(t, []health.HeldBack{{Reason: "in_flight", Refusals: 1}}, l.HeldBack)
	require.Equal(t, "pause", l.Throttled.Reason)
	require.Equal(t, "maintenance", l.Paused.Reason)
	require.Equal(t, "pod-1", l.Pool.ID)
	require.Equal(t, "memory://"+t.Name(), l.Store.URL)
	_, body = fetch(t, addr, "/metrics")
	require.Contains(t, body, `numathrottle_slots_used{limit="p/in-flight"} 10`)
	require.NoError(t, f.Close())
	code, _ := fetch(t, addr, "/healthz")
	require.Zero(t, code, "the server ends with the last limiter")
}

func TestOpenInFlightWithoutAStore(t *testing.T) {
	unlimited := mustOpenInFlight(t, 0, Config{Store: "redis://127.0.0.1:1", StorePasswordFile: "/nowhere", Logger: quiet()})
	require.True(t, unlimited.Unlimited())
	fixed := mustOpenInFlight(t, 12, Config{Store: "static://?replicas=4", Logger: quiet()})
	require.Equal(t, 3, fixed.Status().Slots)
}

func TestOpenInFlightNamesEveryFault(t *testing.T) {
	_, err := InFlight(context.Background(), -1, Config{Limit: throttle.Limit{Max: 3}, Policy: "odd", Store: "http://h"})
	require.EqualError(t, err, "numathrottle: throttle: slots in flight is -1, allowed: 0 (no limit) to 1000000000\n"+
		"numathrottle: max, per and other settings of a rate are set with a limit on calls in flight, allowed: a zero Limit\n"+
		"numathrottle: policy is \"odd\", allowed: `fair` or `even`\n"+
		"numathrottle: store has the scheme \"http\", allowed: memory://, static://, redis://, rediss://, redis+sentinel://, "+
		"rediss+sentinel://, redis+cluster://, rediss+cluster://, nats://, tls://")
}

func TestLoadWithReadsTwoTables(t *testing.T) {
	type program struct {
		model string
		pool  Config
	}
	own := []config.Field[*program]{
		{Key: "model", Prefix: "PROGRAM_", Allowed: "a text", Value: config.Text(func(p *program) *string { return &p.model })},
	}
	load := func() (p program, err error) {
		return p, LoadWith(own, func(p *program) *Config { return &p.pool }, &p).Err()
	}
	clearEnv(t)
	file := "model: m\nstore: redis://user:" + canary + "@h\nlease: 4s\n"
	t.Setenv(config.FileVariable, writeFile(t, "config.yaml", file))
	t.Setenv("NUMATHROTTLE_LEASE", "5s")
	t.Setenv("NUMAFLOW_NAMESPACE", "ns")
	t.Setenv("NUMAFLOW_MONO_VERTEX_NAME", "mono")
	p, err := load()
	require.NoError(t, err)
	require.Equal(t, "m", p.model)
	require.Equal(t, "ns/mono", p.pool.Pool)
	require.Equal(t, "redis://h", p.pool.Store)
	require.Equal(t, 5*time.Second, p.pool.Lease)
	require.Equal(t, canary, p.pool.StorePassword.Reveal())

	t.Setenv("PROGRAM_MODEL", " ")
	t.Setenv("NUMATHROTTLE_MAX", "5")
	t.Setenv("NUMATHROTTLE_STORE", "http://h")
	_, err = load()
	require.ErrorContains(t, err, `model is " " (PROGRAM_MODEL)`)
	require.ErrorContains(t, err, "NUMATHROTTLE_MAX is a setting of the library, and none of this program")
	require.ErrorContains(t, err, `store has the scheme "http"`)
	require.NotContains(t, err.Error(), canary)
}

package opening

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// canary is a secret that must not come out anywhere.
const canary = "hunter2-canary"

// clearEnv takes away every variable that this package reads, until the test ends.
func clearEnv(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, config.Prefix) || strings.HasPrefix(name, "NUMAFLOW_") {
			t.Setenv(name, value) // puts it back in the end
			require.NoError(t, os.Unsetenv(name))
		}
	}
}

// writeFile returns the path of a new file with this content.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestValidateNamesEveryFault(t *testing.T) {
	secret := NewSecret(canary)
	for name, tc := range map[string]struct {
		config Config
		want   []string
	}{
		"zero": {},
		"fine": {config: Config{
			Limit: throttle.Limit{Max: 10, Per: time.Minute, Burst: 5}, Store: "nats://a,b", Pool: "p", ID: "i", Lease: 3 * time.Second,
			Policy: PolicyEven, OnStoreLoss: StoreLossStop, FailFast: true, StoreUsername: "u", StorePassword: secret,
			StoreCAFile: "/ca", StoreCertFile: "/cert", StoreKeyFile: "/key",
		}},
		"fine sentinel": {config: Config{
			Store: "rediss+sentinel://a/m", StorePasswordFile: "/p", StoreSentinelUsername: "u", StoreSentinelPasswordFile: "/p",
		}},
		"fields": {
			config: Config{
				Limit: throttle.Limit{Max: -1, Per: time.Microsecond, Burst: -2}, Store: "http://", Pool: strings.Repeat("p", 257),
				ID: "a\x00", Lease: 2 * time.Second, Policy: "odd", OnStoreLoss: "panic", StoreUsername: " u",
			},
			want: []string{
				`max is "-1", allowed: a whole number, 0 to 1000000000`,
				"per is \"1µs\", allowed: a duration, `1ms` to `744h`",
				"burst is \"-2\", allowed: a whole number, 0 to 1000000000, with `hard` at most `max`, with `strict` at most 1",
				`pool is "` + strings.Repeat("p", 60) + `"..., allowed: 1 to 256 bytes`,
				`id is "a\x00", allowed: 1 to 256 bytes`,
				"lease is \"2s\", allowed: a duration in whole milliseconds, `3s` to `10s`",
				"policy is \"odd\", allowed: `fair` or `even`",
				"onStoreLoss is \"panic\", allowed: `degrade` or `stop`, with `hard` and `strict` only `stop`",
				`storeUsername is " u", allowed: a text`,
				`store has the scheme "http", allowed: memory://, static://, redis://, rediss://, redis+sentinel://, rediss+sentinel://, ` +
					`redis+cluster://, rediss+cluster://, nats://, tls://`,
			},
		},
		"absurd": {
			config: Config{Limit: throttle.Limit{Max: 1 << 40, Per: 1 << 62, Burst: 1 << 40}, Lease: 1<<63 - 1},
			want: []string{
				`max is "1099511627776", allowed: a whole number, 0 to 1000000000`,
				"per is \"1281023h53m38.427387904s\", allowed: a duration, `1ms` to `744h`",
				"burst is \"1099511627776\", allowed: a whole number, 0 to 1000000000, with `hard` at most `max`, with `strict` at most 1",
				"lease is \"2562047h47m16.854775807s\", allowed: a duration in whole milliseconds, `3s` to `10s`",
			},
		},
		"broken millisecond": {
			config: Config{Lease: 3*time.Second + 1},
			want:   []string{"lease is \"3.000000001s\", allowed: a duration in whole milliseconds, `3s` to `10s`"},
		},
		"too fast": {
			config: Config{Limit: throttle.Limit{Max: 1_000_000_000, Per: time.Millisecond}},
			want:   []string{"limit: max per 1ms is 1000000000, allowed: at most 1000000000 tokens per second"},
		},
		"fine strict": {config: Config{Limit: throttle.Limit{Max: 10, Burst: 1, Strict: true, MaxReserved: 1000}, Store: "redis://h", Pool: "p"}},
		"strict": {
			config: Config{Limit: throttle.Limit{Max: 10, Burst: 2, Hard: true, Strict: true}, OnStoreLoss: StoreLossDegrade},
			want: []string{
				"limit: hard is true, allowed: false with strict",
				"limit: burst is 2, allowed: 0 or 1 with strict",
				"onStoreLoss is degrade, which may exceed a hard limit, allowed: `stop` with hard",
				"onStoreLoss is degrade, but a strict limit has nothing to go on with, allowed: `stop` with strict",
			},
		},
		"strict and static": {
			config: Config{Limit: throttle.Limit{Max: 1_000_001, Strict: true}, Store: "static://?replicas=2"},
			want: []string{
				"limit: max per 1s is 1000001, allowed: at most 1000000 tokens per second with strict",
				"strict is true, but the store is static, allowed: false with static://, which issues nothing",
			},
		},
		"maxReserved": {
			config: Config{Limit: throttle.Limit{MaxReserved: 1001}},
			want:   []string{"maxReserved is \"1001\", allowed: a whole number, 0 to 1000"},
		},
		"fine hard": {config: Config{Limit: throttle.Limit{Max: 10, Burst: 10, Hard: true}, OnStoreLoss: StoreLossStop}},
		"hard": {
			config: Config{Limit: throttle.Limit{Max: 10, Burst: 11, Hard: true}, OnStoreLoss: StoreLossDegrade},
			want: []string{
				"limit: burst is 11, allowed: at most max with hard, which is 10",
				"onStoreLoss is degrade, which may exceed a hard limit, allowed: `stop` with hard",
			},
		},
		"credentials without a store": {
			config: Config{StoreUsername: "u", StorePassword: secret, StoreToken: secret, StoreSentinelPassword: secret, StoreCAFile: "/ca"},
			want: []string{
				"storeUsername is set, but the store is memory, allowed: with redis and nats stores",
				"storePassword is set, but the store is memory, allowed: with redis and nats stores",
				"storeToken is set, but the store is memory, allowed: with nats:// and tls://",
				"storeSentinelPassword is set, but the store is memory, allowed: with redis+sentinel:// and rediss+sentinel://",
				"storeCAFile is set, but the store is memory, allowed: with nats:// and the schemes over TLS",
			},
		},
		"credentials of another store": {
			config: Config{Store: "redis://h", StoreCredsFile: "/c", StoreNkeyFile: "/n", StoreTokenFile: "/t", StoreKeyFile: "/k", StoreCertFile: "/c"},
			want: []string{
				"storeTokenFile is set, but the store is redis, allowed: with nats:// and tls://",
				"storeCredsFile is set, but the store is redis, allowed: with nats:// and tls://",
				"storeNkeyFile is set, but the store is redis, allowed: with nats:// and tls://",
				"storeCertFile is set, but the store is redis, allowed: with nats:// and the schemes over TLS",
				"storeKeyFile is set, but the store is redis, allowed: with nats:// and the schemes over TLS",
			},
		},
		"the same twice": {
			config: Config{
				Store: "rediss+sentinel://u:" + canary + "@h/m", StoreUsername: "u", StorePassword: secret, StorePasswordFile: "/p",
				StoreSentinelUsername: "u", StoreSentinelPassword: secret, StoreSentinelPasswordFile: "/p", StoreCertFile: "/c",
			},
			want: []string{
				"storePasswordFile is set, and so is the same in storePassword, allowed: one of them",
				"storeSentinelPasswordFile is set, and so is the same in storeSentinelPassword, allowed: one of them",
				"storeUsername is set, and so is the same in the URL, allowed: one of them",
				"storePassword is set, and so is the same in the URL, allowed: one of them",
				"storePasswordFile is set, and so is the same in the URL, allowed: one of them",
				"storeCertFile and storeKeyFile are set one without the other, allowed: both or none",
			},
		},
		"user names without passwords": {
			config: Config{Store: "redis+sentinel://h/m", StoreUsername: "u", StoreSentinelUsername: "u"},
			want: []string{
				"storeUsername is set without a password, allowed: with storePassword or storePasswordFile",
				"storeSentinelUsername is set without a password, allowed: with storeSentinelPassword or storeSentinelPasswordFile",
			},
		},
		"five ways to log in to NATS": {
			config: Config{
				Store: "nats://h", StoreUsername: "u", StorePassword: secret,
				StoreToken: secret, StoreTokenFile: "/t", StoreCredsFile: "/c", StoreNkeyFile: "/n",
			},
			want: []string{
				"storeToken is set, and so is a user name or password, allowed: one way to log in",
				"storeTokenFile is set, and so is a user name or password, allowed: one way to log in",
				"storeCredsFile is set, and so is a user name or password, allowed: one way to log in",
				"storeNkeyFile is set, and so is a user name or password, allowed: one way to log in",
			},
		},
		"a token in the URL and a file": {
			config: Config{Store: "nats://" + canary + "@h", StoreCredsFile: "/c"},
			want:   []string{"storeCredsFile is set, and so is a user name or password, allowed: one way to log in"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.config.Validate()
			if tc.want == nil {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.NotContains(t, err.Error(), canary)
			require.Equal(t, "numathrottle: "+strings.Join(tc.want, "\nnumathrottle: "), err.Error())

			_, opened := Open(t.Context(), tc.config)
			require.EqualError(t, opened, err.Error(), "Open refuses what Validate refuses")
		})
	}
}

func TestLoad(t *testing.T) {
	clearEnv(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	c, err := Load()
	require.NoError(t, err)
	require.Equal(t, Config{Pool: "default", ID: host}, c)

	t.Setenv("NUMATHROTTLE_CONFIG", writeFile(t, "config.yaml",
		"max: 5\nper: 1m\nburst: 2\nhard: true\npool: p\nid: i\n"+
			"maxReserved: 7\nlease: 4s\npolicy: even\nonStoreLoss: stop\nfailFast: true\nstore: redis://h\nstorePassword: x\n"))
	t.Setenv("NUMATHROTTLE_MAX", "6")
	t.Setenv("NUMATHROTTLE_STORE", "nats://h")
	c, err = Load()
	require.NoError(t, err)
	require.Equal(t, Config{
		Limit: throttle.Limit{Max: 6, Per: time.Minute, Burst: 2, Hard: true, MaxReserved: 7}, Store: "nats://h", Pool: "p", ID: "i", Lease: 4 * time.Second,
		Policy: PolicyEven, OnStoreLoss: StoreLossStop, FailFast: true, StorePassword: NewSecret("x"),
	}, c)
}

func TestLoadMovesCredentialsOutOfTheURL(t *testing.T) {
	for raw, want := range map[string]Config{
		"redis://u:p%40@h:1/2?prefix=x": {Store: "redis://h:1/2?prefix=x", StoreUsername: "u", StorePassword: fromURL("p@")},
		"rediss+cluster://:p@h,i":       {Store: "rediss+cluster://h,i", StorePassword: fromURL("p")},
		"nats://token@h":                {Store: "nats://h", StoreToken: fromURL("token")},
		"tls://u:p@h":                   {Store: "tls://h", StoreUsername: "u", StorePassword: fromURL("p")},
		"nats://h":                      {Store: "nats://h"},
	} {
		clearEnv(t)
		t.Setenv("NUMATHROTTLE_STORE", raw)
		t.Setenv("NUMATHROTTLE_ID", "i")
		t.Setenv("NUMATHROTTLE_POOL", "p")
		want.Pool, want.ID = "p", "i"
		got, err := Load()
		require.NoError(t, err)
		require.Equal(t, want, got, raw)
		require.NoError(t, got.Validate())
	}
}

func TestLoadReportsFormAndSenseTogether(t *testing.T) {
	clearEnv(t)
	t.Setenv("NUMATHROTTLE_CONFIG", writeFile(t, "config.yaml", "min: three\nmodes: {goBackN: {coolDownPeriod: 1ms}}\nttl: 48h\nmax: ten\n"))
	t.Setenv("NUMATHROTTLE_LEASE", "1h")
	t.Setenv("NUMATHROTTLE_STRICT", "very")
	t.Setenv("NUMATHROTTLE_POLICYY", "fair")
	t.Setenv("NUMATHROTTLE_STORE_PASSWORD", canary)
	t.Setenv("NUMATHROTTLE_STORE_PASSWORD_FILE", "/p")
	t.Setenv("NUMATHROTTLE_STORE", "redis://:"+canary+"@h?x="+canary)
	path := os.Getenv("NUMATHROTTLE_CONFIG")
	want := strings.Join([]string{
		`min is "three" (` + path + ":1), allowed: a whole number, 1 to `max`, with `hard` at least `max` / `burst`",
		"modes.goBackN.coolDownPeriod is \"1ms\" (" + path + ":2), allowed: a duration, `1s` to `24h`",
		`ttl is "48h" (` + path + ":3), allowed: a duration, `1s` to `24h`",
		`max is "ten" (` + path + `:4), allowed: a whole number, 0 to 1000000000`,
		"strict is \"very\" (NUMATHROTTLE_STRICT), allowed: `true` or `false`, not with `hard` or a ramp",
		"lease is \"1h\" (NUMATHROTTLE_LEASE), allowed: a duration in whole milliseconds, `3s` to `10s`",
		"NUMATHROTTLE_POLICYY is not a variable of numathrottle; did you mean NUMATHROTTLE_POLICY?",
		"store has the unknown parameter x (NUMATHROTTLE_STORE), allowed: db, prefix, durable; secrets have settings of their own",
	}, "\nnumathrottle: ")
	c, err := Load()
	require.EqualError(t, err, "numathrottle: "+want)
	require.Zero(t, c)
	_, err = FromEnv(t.Context())
	require.EqualError(t, err, "numathrottle: "+want)
}

func TestPoolAndIDFollowFromNumaflow(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		env      map[string]string
		pool, id string
	}{
		"elsewhere": {pool: "default", id: host},
		"pipeline": {
			env: map[string]string{
				"NUMAFLOW_NAMESPACE": "ns", "NUMAFLOW_PIPELINE_NAME": "pipe", "NUMAFLOW_VERTEX_NAME": "map", "NUMAFLOW_POD": "pipe-map-0-abc",
			},
			pool: "ns/pipe/map", id: "pipe-map-0-abc",
		},
		"mono vertex": {
			env:  map[string]string{"NUMAFLOW_NAMESPACE": "ns", "NUMAFLOW_MONO_VERTEX_NAME": "mono", "NUMAFLOW_POD": "mono-0-abc"},
			pool: "ns/mono", id: "mono-0-abc",
		},
		"incomplete": {env: map[string]string{"NUMAFLOW_PIPELINE_NAME": "pipe", "NUMAFLOW_VERTEX_NAME": "map"}, pool: "default", id: host},
		"given": {
			env: map[string]string{
				"NUMAFLOW_NAMESPACE": "ns", "NUMAFLOW_MONO_VERTEX_NAME": "mono", "NUMAFLOW_POD": "mono-0-abc",
				"NUMATHROTTLE_POOL": "p", "NUMATHROTTLE_ID": "i",
			},
			pool: "p", id: "i",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			c, err := Load()
			require.NoError(t, err)
			require.Equal(t, tc.pool, c.Pool)
			require.Equal(t, tc.id, c.ID)
		})
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	c := Config{
		Limit: throttle.Limit{Max: 5}, Pool: "a pool", Store: "redis+sentinel://u:" + canary + "@h/m", FailFast: true,
		StorePassword: NewSecret(canary), StoreSentinelPassword: NewSecret(canary), StoreToken: NewSecret(canary),
	}
	want := `{max: 5, store: redis+sentinel://***@h/m, pool: "a pool", failFast: true, storePassword: (set, not shown), ` +
		`storeSentinelPassword: (set, not shown), storeToken: (set, not shown)}`
	require.Equal(t, want, c.String())
	require.Equal(t, want, fmt.Sprintf("%v", c))
	require.Equal(t, want, fmt.Sprintf("%+v", &c))
	require.Equal(t, "numathrottle.Config"+want, fmt.Sprintf("%#v", c))

	hidden := struct{ secret Secret }{NewSecret(canary)} // package fmt cannot call its methods
	exported := struct{ C Config }{c}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%t", "%20v", "%!"} {
		for _, value := range []any{c, &c, []Config{c}, map[string]Config{"": c}, exported, c.StorePassword, &c.StorePassword, hidden, &hidden} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("x", "config", c, "pointer", &c, "nested", exported, "secret", c.StorePassword, "hidden", hidden)
	}
	for _, value := range []any{c, &c, exported, c.StorePassword, hidden} {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		out.Write(text)
	}
	require.NotContains(t, out.String(), canary)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", canary))

	require.Equal(t, canary, c.StorePassword.Reveal())
	require.False(t, NewSecret("").IsSet())
	require.Equal(t, "(not set)", Secret{}.String())
}

// Two services that set no pool would share one limit on a store that both use, and neither would know.
func TestAPoolOnASharedStoreHasAName(t *testing.T) {
	const want = "numathrottle: pool is not set: every service that uses this store and sets none would share one limit"
	for _, store := range []string{"redis://h", "rediss+sentinel://h/m", "redis+cluster://h", "nats://h", "tls://h"} {
		clearEnv(t)
		c := Config{Limit: throttle.Limit{Max: 5}, Store: store}
		require.ErrorContains(t, c.Validate(), want)
		_, err := Open(t.Context(), c)
		require.ErrorContains(t, err, want)
		_, err = InFlight(t.Context(), 3, Config{Store: store})
		require.ErrorContains(t, err, want)
		_, err = FromEnv(t.Context())
		require.NoError(t, err, "nothing is set")
		t.Setenv("NUMATHROTTLE_STORE", store)
		t.Setenv("NUMATHROTTLE_MAX", "5")
		_, err = Load()
		require.ErrorContains(t, err, want+" (store: NUMATHROTTLE_STORE), allowed: a name of up to 256 bytes, "+
			"the same in all pods that share the limit (NUMATHROTTLE_POOL)")
		_, err = FromEnv(t.Context())
		require.ErrorContains(t, err, want)
		look, err := LoadFlags(os.Environ(), nil)
		require.NoError(t, err, "who looks at pools from outside need not name one")
		require.Equal(t, "default", look.Pool)

		// What has been loaded without a limit, and got one.
		t.Setenv("NUMATHROTTLE_MAX", "0")
		c, err = Load()
		require.NoError(t, err)
		c.Limit.Max = 5
		_, err = Open(t.Context(), c)
		require.ErrorContains(t, err, want)

		for name, value := range map[string]string{"NUMATHROTTLE_POOL": "default", "NUMAFLOW_NAMESPACE": "ns"} {
			t.Setenv("NUMAFLOW_MONO_VERTEX_NAME", "mono")
			t.Setenv(name, value)
			require.NoError(t, Config{Limit: throttle.Limit{Max: 5}, Store: store, Pool: os.Getenv("NUMATHROTTLE_POOL")}.Validate())
		}
	}
	for _, store := range []string{"", "memory://x", "static://?replicas=2"} {
		clearEnv(t)
		require.NoError(t, Config{Limit: throttle.Limit{Max: 5}, Store: store}.Validate(), store)
	}
}

package opening

import (
	"context"
	"crypto/tls"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// What keeps a store from answering is said with what to do, by real servers.
func TestStoreErrorsNameTheRemedy(t *testing.T) {
	t.Parallel()
	authorities := testenv.NewAuthority(t)
	redisAddr := testenv.Redis(t).Addr()
	locked := testenv.Redis(t, servers.WithPassword(canary)).Addr()
	natsAddr := strings.TrimPrefix(testenv.NATS(t).URL(), "nats://")
	noStream := strings.TrimPrefix(testenv.NATS(t, func(o *server.Options) { o.JetStream = false }).URL(), "nats://")
	withUser := strings.TrimPrefix(testenv.NATS(t, func(o *server.Options) { o.Username, o.Password = "app", canary }).URL(), "nats://")
	withToken := strings.TrimPrefix(testenv.NATS(t, func(o *server.Options) { o.Authorization = canary }).URL(), "nats://")
	mutual, encrypted := serverConfig(t, authorities, authorities), serverConfig(t, authorities, authorities)
	encrypted.ClientAuth = tls.NoClientCert
	overTLS, withCert := unwrap(t, encrypted, redisAddr), unwrap(t, mutual, redisAddr)
	natsTLS := strings.TrimPrefix(testenv.NATS(t, func(o *server.Options) { o.TLS, o.TLSConfig = true, encrypted }).URL(), "nats://")
	natsFirst := strings.TrimPrefix(testenv.NATS(t, func(o *server.Options) {
		o.TLS, o.TLSConfig, o.TLSTimeout, o.TLSHandshakeFirst = true, encrypted, 5, true
	}).URL(), "nats://")
	ca := writeFile(t, "ca.pem", authorities.PEM)
	other := writeFile(t, "other.pem", testenv.NewAuthority(t).PEM)
	closed, silent := refusingPort(t), silentPort(t)
	wrong := NewSecret("wrong-" + canary)
	file := writeFile(t, "password", "wrong-"+canary)
	for name, tc := range map[string]struct {
		c    Config
		want string
	}{
		"refused redis": {Config{Store: "redis://" + closed}, "nothing listens at " + closed + ": start the store there, or correct NUMATHROTTLE_STORE"},
		"refused nats":  {Config{Store: "nats://" + closed}, "no server answers at " + closed + ": start the store there, or correct NUMATHROTTLE_STORE"},
		"refused TLS":   {Config{Store: "rediss://" + closed}, "nothing listens at " + closed},
		"no such host": {
			Config{Store: "redis://no-such-host.invalid"},
			"no-such-host.invalid is no host name that is known here: correct NUMATHROTTLE_STORE",
		},

		"silent redis": {
			Config{Store: "redis://" + silent},
			silent + " does not answer: see whether it runs and can be reached from here, or correct NUMATHROTTLE_STORE: ",
		},
		"silent nats": {Config{Store: "nats://" + silent}, silent + " does not answer: see whether it runs and can be reached from here"},

		"redis at NATS":    {Config{Store: "redis://" + natsAddr}, "a NATS server listens at " + natsAddr + ": set NUMATHROTTLE_STORE to nats://"},
		"rediss at NATS":   {Config{Store: "rediss://" + natsAddr}, "a NATS server listens at " + natsAddr + ": set NUMATHROTTLE_STORE to nats://"},
		"sentinel at NATS": {Config{Store: "redis+sentinel://" + natsAddr + "/m"}, "a NATS server listens at " + natsAddr},
		"cluster at NATS":  {Config{Store: "redis+cluster://" + natsAddr}, "a NATS server listens at " + natsAddr},
		"NATS at redis": {
			Config{Store: "nats://" + redisAddr},
			redisAddr + " does not greet as a NATS server does: if it is a Redis server, set NUMATHROTTLE_STORE to redis://",
		},
		"NATS TLS at redis": {
			Config{Store: "tls://" + redisAddr},
			redisAddr + " does not greet as a NATS server does: if it is a Redis server, set NUMATHROTTLE_STORE to rediss://",
		},

		"NATS that wants TLS first": {
			Config{Store: "nats://" + natsFirst, StoreCAFile: ca},
			natsFirst + " wants TLS before anything else (handshake_first): set the parameter handshakeFirst=true of NUMATHROTTLE_STORE",
		},
		"NATS that greets before TLS": {
			Config{Store: "tls://" + natsTLS + "?handshakeFirst=true"},
			natsTLS + " greets before TLS: take the parameter handshakeFirst out of NUMATHROTTLE_STORE",
		},

		"redis at TLS": {
			Config{Store: "redis://" + overTLS},
			overTLS + " closes plain connections: if it talks TLS, set NUMATHROTTLE_STORE to rediss://",
		},
		"rediss at plain": {
			Config{Store: "rediss://" + redisAddr},
			redisAddr + " does not answer: see whether it runs and can be reached from here, or correct NUMATHROTTLE_STORE; if it does not talk " +
				"TLS, set that to redis://",
		},
		"tls at plain NATS": {Config{Store: "tls://" + natsAddr}, natsAddr + " does not talk TLS: set NUMATHROTTLE_STORE to nats://"},
		"unknown authority": {
			Config{Store: "rediss://" + overTLS + "?serverName=" + serverName, StoreCAFile: other},
			"the certificate of the store is not one of a known authority: set NUMATHROTTLE_STORE_CA_FILE to the authority's, in PEM",
		},
		"no authority": {
			Config{Store: "tls://" + natsTLS + "?serverName=" + serverName},
			"the certificate of the store is not one of a known authority: set NUMATHROTTLE_STORE_CA_FILE to the authority's, in PEM",
		},
		"another name": {
			Config{Store: "rediss://" + overTLS + "?serverName=elsewhere.example", StoreCAFile: ca},
			"the certificate of the store is for another name: set the parameter serverName of NUMATHROTTLE_STORE to the name that it holds",
		},

		"no certificate": {
			Config{Store: "rediss://" + withCert + "?serverName=" + serverName, StoreCAFile: ca},
			"the store wants a certificate of this client that it knows: set NUMATHROTTLE_STORE_CERT_FILE and NUMATHROTTLE_STORE_KEY_FILE",
		},

		"redis no password": {
			Config{Store: "redis://" + locked},
			"the store wants a password, and none is set: set NUMATHROTTLE_STORE_PASSWORD or NUMATHROTTLE_STORE_PASSWORD_FILE",
		},
		"redis wrong": {Config{Store: "redis://" + locked, StorePassword: wrong}, "the store rejects the password (NUMATHROTTLE_STORE_PASSWORD)"},
		"redis wrong file": {
			Config{Store: "redis://" + locked, StorePasswordFile: file},
			"the store rejects the password (NUMATHROTTLE_STORE_PASSWORD_FILE, " + file + ")",
		},
		"redis wrong user": {
			Config{Store: "redis://" + locked, StoreUsername: "u", StorePassword: wrong},
			"the store rejects the user or the password (NUMATHROTTLE_STORE_USERNAME, NUMATHROTTLE_STORE_PASSWORD)",
		},
		"redis wrong in URL": {Config{Store: "redis://:wrong-" + canary + "@" + locked}, "the store rejects the password (NUMATHROTTLE_STORE)"},
		"nats no password": {
			Config{Store: "nats://" + withUser},
			"the store wants a login, and none is set: set NUMATHROTTLE_STORE_USERNAME and NUMATHROTTLE_STORE_PASSWORD",
		},
		"nats wrong": {
			Config{Store: "nats://" + withUser, StoreUsername: "app", StorePassword: wrong},
			"the store rejects the user or the password (NUMATHROTTLE_STORE_USERNAME, NUMATHROTTLE_STORE_PASSWORD)",
		},
		"nats wrong token":     {Config{Store: "nats://" + withToken, StoreToken: wrong}, "the store rejects the token (NUMATHROTTLE_STORE_TOKEN)"},
		"nats token in URL":    {Config{Store: "nats://wrong-" + canary + "@" + withToken}, "the store rejects the token (NUMATHROTTLE_STORE)"},
		"no JetStream":         {Config{Store: "nats://" + noStream}, "the NATS server has no JetStream: start it with jetstream enabled"},
		"one server a cluster": {Config{Store: "redis+cluster://" + redisAddr}, redisAddr + " is no Redis Cluster: set NUMATHROTTLE_STORE to redis://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := Store(t.Context(), tc.c)
			require.NoError(t, err)
			defer func() { _ = store.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			_, _, err = store.Load(ctx, "p")
			require.Error(t, err)
			require.NotContains(t, err.Error(), canary)
			require.Equal(t, tc.want, err.Error()[:min(len(err.Error()), len(tc.want))], "%T %v", err, err)
		})
	}
}

// A subscription, which the client of NATS takes without a server, is no answer of the store.
func TestASubscriptionIsNoAnswer(t *testing.T) {
	t.Parallel()
	silent := silentPort(t)
	store, err := Store(t.Context(), Config{Store: "nats://" + silent})
	require.NoError(t, err)
	defer func() { _ = store.Close() }()
	pusher, ok := store.(driver.Pusher)
	require.True(t, ok)
	stop, err := pusher.Watch(t.Context(), "p", func([]byte) {})
	require.NoError(t, err)
	defer stop()
	_, _, err = store.Load(t.Context(), "p")
	require.ErrorContains(t, err, silent+" does not answer: see whether it runs")
}

// A pod that had its store says the same when the store changes later.
func TestAPodSaysWhatBecameOfItsStore(t *testing.T) {
	t.Parallel()
	type store struct {
		url, want string
		spoil     func(t *testing.T)
	}
	const gone = " has answered, and does not now: see whether it runs and can be reached from here: "
	onRedis := func(want string, spoil ...any) func(*testing.T) store {
		return func(t *testing.T) store {
			t.Helper()
			srv := testenv.Redis(t, servers.WithRedisConfig("user app on >"+canary+" ~* &* +@all"))
			admin := redis.NewClient(&redis.Options{Addr: srv.Addr()})
			t.Cleanup(func() { _ = admin.Close() })
			return store{"redis://app:" + canary + "@" + srv.Addr(), strings.ReplaceAll(want, "ADDR", srv.Addr()), func(t *testing.T) {
				t.Helper()
				require.NoError(t, admin.Do(t.Context(), spoil...).Err())
			}}
		}
	}
	for name, start := range map[string]func(*testing.T) store{
		"redis full":        onRedis("ADDR has no memory left", "CONFIG", "SET", "maxmemory", "1"),
		"redis a replica":   onRedis("ADDR is a replica", "REPLICAOF", "127.0.0.1", "1"),
		"redis user":        onRedis("the user of the store may not do all that is needed", "ACL", "SETUSER", "app", "-@write"),
		"redis no replicas": onRedis("ADDR has too few replicas", "CONFIG", "SET", "min-replicas-to-write", "1"),
		"redis hung": func(t *testing.T) store {
			srv := testenv.Redis(t)
			return store{"redis://" + srv.Addr(), srv.Addr() + gone, func(t *testing.T) { t.Helper(); require.NoError(t, srv.Stop(t.Context())) }}
		},
		"nats hung": func(t *testing.T) store {
			srv := testenv.NATSBinary(t)
			want := strings.TrimPrefix(srv.URL(), "nats://") + gone
			return store{srv.URL(), want, func(t *testing.T) { t.Helper(); require.NoError(t, srv.Stop(t.Context())) }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			var logs testkit.Book
			c := short(s.url, "i")
			c.Logger = logs.Logger()
			th := mustOpen(t, c)
			eventually(t, grants(th), "a token")
			s.spoil(t)
			reported := regexp.MustCompile(`syncs with the pool's store fail.* error="([^"]*)`)
			eventually(t, func() bool { return reported.MatchString(logs.String()) }, "the loss in the log")
			said := reported.FindStringSubmatch(logs.String())[1]
			require.Equal(t, s.want, said[:min(len(said), len(s.want))], said)
		})
	}
}

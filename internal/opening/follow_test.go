package opening

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// replacing has the ways in which a file is replaced.
var replacing = map[string]func(t *testing.T, path, content string){
	"in place": func(t *testing.T, path, content string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	},
	"by a rename": func(t *testing.T, path, content string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path+".new", []byte(content), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	},
	"by another link": func(t *testing.T, path, content string) { // as Kubernetes does with a mounted Secret
		t.Helper()
		require.NoError(t, os.Symlink(writeFile(t, "data", content), path+".link"))
		require.NoError(t, os.Rename(path+".link", path))
	},
}

// A changing server takes the first files of a client, and the second ones once turn was called, which ends its connections.
type changing struct {
	store         string
	set           func(c *Config, path string)
	key           string // the setting that is named
	first, second string // contents of the file
	turn          func(t *testing.T, second bool)
}

// Every file that a connection needs is followed: a broken one leaves the last one in force, and is told once; a replaced one counts without
// a restart.
func TestFilesOfStoresAreFollowed(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) changing{
		"redis CA":          func(t *testing.T) changing { return turningTLS(t, redisOver(t)) },
		"nats CA":           func(t *testing.T) changing { return turningTLS(t, natsOver(t)) },
		"redis certificate": func(t *testing.T) changing { return turningClients(t, redisOver(t)) },
		"nats certificate":  func(t *testing.T) changing { return turningClients(t, natsOver(t)) },
		"redis password":    turningPassword, "nats password": turningUser, "nats token": turningToken, "nats nkey": turningNkey, "nats creds": turningCreds,
	} {
		for way, replace := range replacing {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				s := start(t)
				path := writeFile(t, "file", s.first)
				var logs testkit.Book
				c := Config{Store: s.store, Logger: logs.Logger()}
				s.set(&c, path)
				store, err := Store(t.Context(), c)
				require.NoError(t, err)
				defer func() { _ = store.Close() }()
				var last error
				serves := func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					_, _, last = store.Load(ctx, "p")
					return errors.Is(last, driver.ErrNoPool)
				}
				eventually(t, serves, "the first file")

				half := s.second[:len(s.second)*3/4]
				if !strings.Contains(half, "-----BEGIN") && !strings.HasPrefix(half, "SU") {
					half = "" // of a secret nothing tells the half
				}
				replace(t, path, half)
				s.turn(t, false)
				eventually(t, serves, "the first file, which half a file replaces")
				s.turn(t, false)
				eventually(t, serves, "the first file, still")
				require.Equal(t, 1, strings.Count(logs.String(), "cannot be used: what it held before stays"), logs.String())
				require.Regexp(t, s.key+`.*`+path, logs.String())

				replace(t, path, s.second)
				s.turn(t, true)
				require.Eventually(t, serves, 30*time.Second, 10*time.Millisecond, "the second file: %v", last)
				require.NotContains(t, logs.String(), canary)
			})
		}
	}
}

// An overTLS starts a server whose TLS may be changed by turn, which ends its connections.
type overTLS struct {
	store string
	conf  *atomic.Pointer[tls.Config]
	cut   func(t *testing.T)
}

func (o *overTLS) turn(t *testing.T, conf *tls.Config) {
	t.Helper()
	o.conf.Store(conf)
	o.cut(t)
}

func redisOver(t *testing.T) *overTLS {
	t.Helper()
	o := &overTLS{conf: &atomic.Pointer[tls.Config]{}}
	srv := testenv.Redis(t).Addr()
	addr := unwrap(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.conf.Load(), nil }}, srv)
	o.store, o.cut = "rediss://"+addr+"?serverName="+serverName, func(t *testing.T) { t.Helper(); command(t, srv, "CLIENT", "KILL", "TYPE", "normal") }
	return o
}

// command sends a command to a Redis server, beside the store's client.
func command(t *testing.T, addr string, args ...any) {
	t.Helper()
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	require.NoError(t, admin.Do(t.Context(), args...).Err())
}

func natsOver(t *testing.T) *overTLS {
	t.Helper()
	o := &overTLS{conf: &atomic.Pointer[tls.Config]{}}
	srv := testenv.NATS(t, func(opts *server.Options) {
		opts.TLS, opts.TLSTimeout = true, 5
		opts.TLSConfig = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.conf.Load(), nil }}
	})
	o.store = strings.Replace(srv.URL(), "nats://", "tls://", 1) + "?serverName=" + serverName
	o.cut = func(t *testing.T) { t.Helper(); require.NoError(t, srv.Restart(t.Context())) }
	return o
}

// turningTLS gets a certificate of a second authority, which the file has beside the first.
func turningTLS(t *testing.T, o *overTLS) changing {
	t.Helper()
	old, next := testenv.NewAuthority(t), testenv.NewAuthority(t)
	first, second := old.Server(t, serverName), next.Server(t, serverName)
	o.conf.Store(first)
	return changing{
		store: o.store, key: "storeCAFile", first: old.PEM, second: old.PEM + next.PEM, set: func(c *Config, path string) { c.StoreCAFile = path },
		turn: func(t *testing.T, then bool) {
			t.Helper()
			if then {
				o.turn(t, second)
				return
			}
			o.turn(t, first)
		},
	}
}

// turningClients trusts another authority of clients.
func turningClients(t *testing.T, o *overTLS) changing {
	t.Helper()
	authority, old, next := testenv.NewAuthority(t), testenv.NewAuthority(t), testenv.NewAuthority(t)
	conf := func(clients *x509.CertPool) *tls.Config {
		conf := authority.Server(t, serverName)
		conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, clients
		return conf
	}
	o.conf.Store(conf(old.Pool()))
	pair := func(a *testenv.Authority) string { // in one file, which both settings may name
		cert, key := a.Issue(t, "client")
		return key + cert
	}
	ca := writeFile(t, "ca.pem", authority.PEM)
	return changing{
		store: o.store, key: "storeCertFile", first: pair(old), second: pair(next),
		set: func(c *Config, path string) { c.StoreCAFile, c.StoreCertFile, c.StoreKeyFile = ca, path, path },
		turn: func(t *testing.T, then bool) {
			t.Helper()
			if then {
				o.turn(t, conf(next.Pool()))
				return
			}
			o.turn(t, o.conf.Load())
		},
	}
}

func turningPassword(t *testing.T) changing {
	t.Helper()
	const first, second = canary + "1", canary + "2"
	addr := testenv.Redis(t, servers.WithRedisConfig("user app on >"+first+" ~* &* +@all")).Addr()
	return changing{
		store: "redis://" + addr, key: "storePasswordFile", first: first, second: second,
		set: func(c *Config, path string) { c.StoreUsername, c.StorePasswordFile = "app", path },
		turn: func(t *testing.T, then bool) {
			t.Helper()
			if then {
				command(t, addr, "ACL", "SETUSER", "app", "resetpass", ">"+second)
			}
			command(t, addr, "CLIENT", "KILL", "TYPE", "normal")
		},
	}
}

// turning is a NATS server that is started again with what the second file needs.
func turning(t *testing.T, key, first, second string, set func(c *Config, path string), needs func(o *server.Options, second bool)) changing {
	t.Helper()
	var then atomic.Bool
	srv := testenv.NATS(t, func(o *server.Options) { needs(o, then.Load()) })
	return changing{
		store: srv.URL(), key: key, first: first, second: second, set: set,
		turn: func(t *testing.T, second bool) {
			t.Helper()
			then.Store(second)
			require.NoError(t, srv.Restart(t.Context()))
		},
	}
}

// pick returns one of two.
func pick[T any](first, second T, then bool) T {
	if then {
		return second
	}
	return first
}

func turningUser(t *testing.T) changing {
	t.Helper()
	const first, second = canary + "1", canary + "2"
	return turning(t, "storePasswordFile", first, second, func(c *Config, path string) { c.StoreUsername, c.StorePasswordFile = "app", path },
		func(o *server.Options, then bool) { o.Username, o.Password = "app", pick(first, second, then) })
}

func turningToken(t *testing.T) changing {
	t.Helper()
	const first, second = canary + "1", canary + "2"
	return turning(t, "storeTokenFile", first, second, func(c *Config, path string) { c.StoreTokenFile = path },
		func(o *server.Options, then bool) { o.Authorization = pick(first, second, then) })
}

func turningNkey(t *testing.T) changing {
	t.Helper()
	first, public := newKey(t, nkeys.CreateUser)
	second, other := newKey(t, nkeys.CreateUser)
	return turning(t, "storeNkeyFile", string(first), string(second), func(c *Config, path string) { c.StoreNkeyFile = path },
		func(o *server.Options, then bool) { o.Nkeys = []*server.NkeyUser{{Nkey: pick(public, other, then)}} })
}

func turningCreds(t *testing.T) changing {
	t.Helper()
	configure, first := newAccount(t)
	other, second := newAccount(t)
	return turning(t, "storeCredsFile", first, second, func(c *Config, path string) { c.StoreCredsFile = path },
		func(o *server.Options, then bool) { pick(configure, other, then)(o) })
}

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A storeFault is a store that no pod can use, and how what to do about it begins, behind the server's address.
type storeFault struct {
	store    string
	user     string
	does, at string
	make     bool // the fault is that a pod could not make or fill the bucket: who only reads does not try
}

// What keeps a pod from its store is said first, and once, also where reading works: by check, by why, by status, and in the pod's log.
func TestStoreFaultsAreSaidFirstAndOnce(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) storeFault{
		"redis user that may not write": func(t *testing.T) storeFault {
			addr := testenv.Redis(t, servers.WithRedisConfig("user app on >"+canary+" ~* &* +@all -@write +eval +evalsha")).Addr()
			return storeFault{store: "redis://" + addr, user: "app", does: "the user of the store may not do all that is needed"}
		},
		"redis replica": func(t *testing.T) storeFault {
			host, port, _ := strings.Cut(testenv.Redis(t).Addr(), ":")
			addr := testenv.Redis(t, servers.WithRedisConfig("replicaof "+host+" "+port, "replica-serve-stale-data yes")).Addr()
			return storeFault{store: "redis://" + addr, at: addr, does: " is a replica: set NUMATHROTTLE_STORE to the master"}
		},
		"redis without memory": func(t *testing.T) storeFault {
			addr := testenv.Redis(t, servers.WithRedisConfig("maxmemory 1", "maxmemory-policy noeviction")).Addr()
			return storeFault{store: "redis://" + addr, at: addr, does: " has no memory left: raise its maxmemory"}
		},
		"redis that cannot save": func(t *testing.T) storeFault {
			addr := testenv.Redis(t, servers.WithRedisConfig("dbfilename taken")).Addr()
			cannotSave(t, addr)
			return storeFault{store: "redis://" + addr, at: addr, does: " cannot save to its disk"}
		},
		"redis without replicas": func(t *testing.T) storeFault {
			addr := testenv.Redis(t, servers.WithRedisConfig("min-replicas-to-write 1")).Addr()
			return storeFault{store: "redis://" + addr, at: addr, does: " has too few replicas in reach"}
		},
		"redis without the database": func(t *testing.T) storeFault {
			addr := testenv.Redis(t).Addr()
			return storeFault{store: "redis://" + addr + "/99", at: addr, does: " has no database of that number"}
		},
		"redis cluster without slots": func(t *testing.T) storeFault {
			addr := testenv.Redis(t, servers.WithRedisConfig("cluster-enabled yes")).Addr()
			return storeFault{store: "redis+cluster://" + addr, does: "the Redis Cluster at " + addr + " does not serve all slots"}
		},
		"hung redis": func(t *testing.T) storeFault {
			srv := testenv.Redis(t)
			require.NoError(t, srv.Stop(t.Context()))
			return storeFault{store: "redis://" + srv.Addr(), at: srv.Addr(), does: " does not answer: see whether it runs and can be reached"}
		},
		"hung nats": func(t *testing.T) storeFault {
			srv := testenv.NATSBinary(t)
			require.NoError(t, srv.Stop(t.Context()))
			return storeFault{store: srv.URL(), at: strings.TrimPrefix(srv.URL(), "nats://"), does: " does not answer: see whether it runs and can be reached"}
		},
		"nats without JetStream": func(t *testing.T) storeFault {
			srv := testenv.NATS(t, func(o *server.Options) { o.JetStream = false })
			return storeFault{store: srv.URL(), does: "the NATS server has no JetStream"}
		},
		"nats user without JetStream": func(t *testing.T) storeFault {
			return lacks(t, "$JS.API.>")
		},
		"nats user that may not make a bucket": func(t *testing.T) storeFault {
			return lacks(t, "$JS.API.STREAM.CREATE.>")
		},
		"nats user that may not write": func(t *testing.T) storeFault {
			return lacks(t, "$KV.>")
		},
		"nats without room": func(t *testing.T) storeFault {
			srv := testenv.NATS(t, func(o *server.Options) { o.JetStreamMaxStore = 1 << 10 })
			return storeFault{store: srv.URL(), does: "the NATS servers have no room for the bucket", make: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := start(t)
			want := fault.at + fault.does
			environ := []string{"NUMATHROTTLE_STORE=" + fault.store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=5"}
			if fault.user != "" {
				environ = append(environ, "NUMATHROTTLE_STORE_USERNAME="+fault.user, "NUMATHROTTLE_STORE_PASSWORD="+canary)
			}
			for _, args := range []string{"check --connect --timeout=3s", "why --timeout=3s", "status --timeout=3s"} {
				out, err := newTerminal(nil, environ...).run(t, strings.Fields(args)...)
				require.Error(t, err, "%s: %s", args, out)
				if fault.make && args[0] != 'c' {
					require.ErrorContains(t, err, "the store has no pool at all", args)
					continue
				}
				requireOnce(t, want, err.Error())
				require.Equal(t, ExitStore, ExitCode(err), args)
			}

			var logs testkit.Book
			c, err := opening.LoadFlags(environ, nil)
			require.NoError(t, err)
			c.Logger = logs.Logger()
			th, err := numathrottle.Open(t.Context(), numathrottle.Config(c))
			require.NoError(t, err)
			defer func() { _ = th.Close() }()
			reported := regexp.MustCompile(`syncs with the pool's store fail.* error="([^"]*(\\"[^"]*)*)"`)
			require.Eventually(t, func() bool { return reported.MatchString(logs.String()) }, 30*time.Second, 10*time.Millisecond)
			requireOnce(t, want, strings.ReplaceAll(reported.FindStringSubmatch(logs.String())[1], `\"`, `"`))
		})
	}
}

// requireOnce requires that a text begins with want, and holds no clause twice.
func requireOnce(t *testing.T, want, text string) {
	t.Helper()
	require.Equal(t, want, text[:min(len(text), len(want))], text)
	seen := map[string]bool{}
	for clause := range strings.SplitSeq(text, ": ") {
		if len(clause) > 12 {
			require.False(t, seen[clause], "twice %q in %s", clause, text)
		}
		seen[clause] = true
	}
}

// cannotSave makes the next write of a server fail, because its file is a directory.
func cannotSave(t *testing.T, addr string) {
	t.Helper()
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	dir, err := admin.ConfigGet(t.Context(), "dir").Result()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir["dir"], "taken", "x"), 0o700))
	require.NoError(t, admin.ConfigSet(t.Context(), "save", "3600 1").Err())
	require.NoError(t, admin.BgSave(t.Context()).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	}, 10*time.Second, 10*time.Millisecond)
}

// lacks starts a NATS server whose user may not publish to a subject.
func lacks(t *testing.T, subject string) storeFault {
	t.Helper()
	srv := testenv.NATS(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "admin", Password: canary}, {Username: "app", Password: canary, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{subject}},
		}}}
	})
	return storeFault{store: srv.URL(), user: "app", does: "the user of the store may not do all that is needed", make: subject == "$JS.API.STREAM.CREATE.>"}
}

// Who only reads makes no bucket. A pod's trial does, and finds out that its user gets no news.
func TestOnlyATrialMakesABucket(t *testing.T) {
	srv := testenv.NATS(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "admin", Password: canary}, {Username: "app", Password: canary, Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Deny: []string{"$KV.*.push.>"}},
		}}}
	})
	nc, err := nats.Connect(srv.URL(), nats.UserInfo("admin", canary))
	require.NoError(t, err)
	defer nc.Close()
	js, err := nc.JetStream()
	require.NoError(t, err)
	buckets := func() (n int) {
		for range js.StreamNames() {
			n++
		}
		return n
	}
	tm := newTerminal(nil, "NUMATHROTTLE_STORE="+srv.URL(), "NUMATHROTTLE_STORE_USERNAME=app", "NUMATHROTTLE_STORE_PASSWORD="+canary,
		"NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=5")
	for _, command := range []string{"why", "status", "pools"} {
		_, err := tm.run(t, command)
		require.Equal(t, command == "pools", err == nil, err)
		require.Contains(t, fmt.Sprint(err, tm.errOut.String()), "the store has no pool at all")
		require.Zero(t, buckets(), command)
	}
	_, err = tm.run(t, "check", "--connect")
	require.ErrorContains(t, err, "the store delivers no news")
	require.Equal(t, ExitStore, ExitCode(err))
	require.Equal(t, 1, buckets())
}

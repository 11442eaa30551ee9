//go:build numathrottle_faults

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// promotedLane has a master and a replica under sentinels.
func promotedLane(t *testing.T, g *ledger) {
	s := testenv.RedisSentinel(t, 1)
	url := fmt.Sprintf("redis+sentinel://%s/%s", s.Addrs()[0], s.MasterName())
	l := newLane(t, g, poolConfig{Stores: everyone(url)})
	l.run(promoted(s, l.lost()), promoted(s, l.lost())) // there and back
}

// promoted is a replica that becomes the master without the newest writes.
func promoted(s *servers.RedisSentinel, allowed time.Duration) fault {
	var master, replica *servers.Redis
	return fault{
		name: "replica promoted, writes lost", allowed: allowed, lost: true,
		inject: func(l *lane) {
			ctx, cancel := l.bounded()
			defer cancel()
			var err error
			master, err = s.Master(ctx)
			require.NoError(l, err)
			replica = s.Data()[0]
			if replica == master {
				replica = s.Data()[1]
			}
			// A replica that logs in to a master without passwords is sent away.
			asReplica := redisClient(l, replica)
			require.NoError(l, asReplica.ConfigSet(ctx, "masterauth", "wrong").Err())
			require.NoError(l, asReplica.ClientKillByFilter(ctx, "TYPE", "master").Err())
			l.pass(l.between(500*time.Millisecond, 2*time.Second)) // some syncs, at least
			require.NotEqual(l, records(l, master), records(l, replica), "no write was lost")
			require.NoError(l, master.Kill())
			l.gone = clock()
			l.until("the replica is the master", func(ctx context.Context) error {
				l.back = clock() // it was not before that
				if now, err := s.Master(ctx); err != nil || now != replica {
					return errors.Join(err, errors.New("the sentinel still names the old master"))
				}
				role, err := asReplica.Do(ctx, "ROLE").Slice()
				if err != nil || role[0] != "master" {
					return fmt.Errorf("the replica's role is %v: %w", role, err)
				}
				return nil
			})
		},
		repair: func(l *lane) {
			ctx, cancel := l.bounded()
			defer cancel()
			require.NoError(l, master.Restart(ctx))
			for _, server := range s.Data() {
				// The sentinel has had the password written to a file.
				client := redisClient(l, server)
				require.NoError(l, client.ConfigSet(ctx, "masterauth", "").Err())
				require.NoError(l, client.ConfigRewrite(ctx).Err())
			}
			// The sentinel would do that ten seconds later.
			host, port := split(l, replica.Addr())
			require.NoError(l, redisClient(l, master).Do(ctx, "REPLICAOF", host, port).Err())
			l.until("the old master follows the new one", func(ctx context.Context) error { return inStep(ctx, s) })
		},
	}
}

// records returns all that a server has on record of pools.
func records(t testing.TB, server *servers.Redis) map[string]map[string]string {
	t.Helper()
	client, found := redisClient(t, server), map[string]map[string]string{}
	keys, err := client.Keys(t.Context(), "*:pool:*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		found[key], err = client.HGetAll(t.Context(), key).Result()
		require.NoError(t, err)
	}
	return found
}

// inStep fails unless the sentinel knows a replica that it could promote.
func inStep(ctx context.Context, s *servers.RedisSentinel) error {
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs()[0]})
	defer sentinel.Close()
	replicas, err := sentinel.Replicas(ctx, s.MasterName()).Result()
	if err != nil {
		return err
	}
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
		return fmt.Errorf("the sentinel sees %v", replicas)
	}
	return nil
}

func split(t testing.TB, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return host, port
}

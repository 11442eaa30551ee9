package numathrottle

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
)

// openRedis returns a store on a server, behind Sentinel or in a Cluster. The
// client connects when it is used.
func (c Config) openRedis(store *config.StoreURL, creds *credentials) backend {
	o := redisstore.ClientOptions(store.Hosts...)
	o.DB = store.DB
	o.TLSConfig = creds.tls
	if creds.hasLogin() {
		o.CredentialsProviderContext = func(context.Context) (username, password string, err error) {
			return creds.login()
		}
	} else {
		o.OnConnect = wantsNoLogin
	}

	var client redis.UniversalClient
	switch store.Kind {
	case config.RedisSentinel:
		o.MasterName = store.Master
		o.SentinelUsername, o.SentinelPassword = c.StoreSentinelUsername, creds.sentinelPassword
		client = redis.NewFailoverClient(o.Failover())
	case config.RedisCluster:
		cluster := o.Cluster()
		cluster.DisableRoutingPolicies = true // else it asks for COMMAND, which no request here needs
		client = redis.NewClusterClient(cluster)
	default:
		client = redis.NewClient(o.Simple())
	}

	opts := []redisstore.Option{redisstore.WithLogger(c.Logger)}
	if store.Prefix != "" {
		opts = append(opts, redisstore.WithPrefix(store.Prefix))
	}
	if store.Durable {
		opts = append(opts, redisstore.WithDurable())
	}
	if c.longestLease > 0 {
		opts = append(opts, redisstore.WithLongestLease(c.longestLease))
	}
	return backend{
		store: &guarded{store: redisstore.New(client, opts...), secrets: &creds.seen},
		close: func(context.Context) error { return client.Close() },
	}
}

// wantsNoLogin fails if the server wants a password. What it answers to a long
// command before the login does not say so.
func wantsNoLogin(ctx context.Context, conn *redis.Conn) error {
	if err := conn.Ping(ctx).Err(); err != nil && strings.HasPrefix(err.Error(), "NOAUTH") {
		return err
	}
	return nil // other commands show what else is wrong
}

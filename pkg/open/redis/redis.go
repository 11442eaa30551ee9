// Package redis lets pkg/open open stores on Redis: on a server, behind Sentinel, or in a Cluster. Import it for this effect:
//
//	import _ "github.com/numaproj-contrib/numathrottle/pkg/open/redis"
package redis

import (
	"context"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
)

func init() { //nolint:gochecknoinits // as the drivers of database/sql do
	drivers.Register(drivers.Driver{Open: open}, config.Redis, config.RedisSentinel, config.RedisCluster)
}

// open returns a store on a server, behind Sentinel or in a Cluster. The client connects at its first use.
func open(r *drivers.Request) *drivers.Guarded {
	store, creds := r.URL, r.Credentials
	o := redisstore.ClientOptions(store.Hosts...)
	o.DB = store.DB
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		now := redisstore.ClientOptions()
		now.TLSConfig = creds.TLS() // from the files as they are now
		return now.Dialer(ctx, network, addr)
	}
	if creds.HasLogin() {
		o.CredentialsProviderContext = func(context.Context) (username, password string, err error) {
			username, password = creds.Login()
			return username, password, nil
		}
	} else {
		o.OnConnect = wantsNoLogin
	}

	var client redis.UniversalClient
	switch store.Kind {
	case config.RedisSentinel:
		o.MasterName = store.Master
		o.SentinelUsername, o.SentinelPassword = creds.SentinelUsername, creds.SentinelPassword.Text
		client = redis.NewFailoverClient(o.Failover())
	case config.RedisCluster:
		cluster := o.Cluster()
		cluster.DisableRoutingPolicies = true // otherwise it sends COMMAND, which no request here needs
		client = redis.NewClusterClient(cluster)
	default:
		client = redis.NewClient(o.Simple())
	}

	opts := []redisstore.Option{redisstore.WithLogger(r.Logger)}
	if store.Prefix != "" {
		opts = append(opts, redisstore.WithPrefix(store.Prefix))
	}
	if store.Durable {
		opts = append(opts, redisstore.WithDurable())
	}
	if r.LongestLease > 0 {
		opts = append(opts, redisstore.WithLongestLease(r.LongestLease))
	}
	server := redisstore.New(client, opts...)
	return &drivers.Guarded{
		Get: func(context.Context) (drivers.Remote, error) { return server, nil },
		End: func(context.Context) error { return client.Close() },
		Of:  r,
	}
}

// wantsNoLogin fails if the server wants a password. The error for a long command before the login does not say so.
func wantsNoLogin(ctx context.Context, conn *redis.Conn) error {
	if err := conn.Ping(ctx).Err(); err != nil && strings.HasPrefix(err.Error(), "NOAUTH") {
		return err
	}
	return nil // other commands show other faults
}

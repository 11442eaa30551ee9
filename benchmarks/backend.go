package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
)

// quiet is the log of what is broken on purpose.
var quiet = slog.New(slog.DiscardHandler)

// A backend is a server that keeps pools.
type backend struct {
	name string
	// addr is host:port of a Redis server.
	addr string
	// open connects one processor. close ends the connection.
	open func() (s consensus.Store, closeStore func(), err error)
	// bare connects a client that takes permits from the store without this project,
	// all that are given one name in common; nil in memory.
	bare func(name string) (take permitClient, closeClient func(), err error)
	// requests counts how often the server was asked since it started; nil when
	// there is no server.
	requests func(ctx context.Context) (requests, error)
	// cpu is the processor time that the server used; nil when it has no process
	// of its own.
	cpu func(ctx context.Context) (time.Duration, error)
	// halt makes the server stand still until resume; nil when it has no process of its own.
	halt   func(ctx context.Context) error
	resume func() error
	close  func() error
}

// requests are what a server was asked.
type requests struct {
	// steps of pools, as the server counts them: scripts run by Redis, writes to
	// the bucket of NATS.
	steps int64
	// messages are all that was sent to the server for them.
	messages int64
	// busy is how long the server worked on the steps; 0 when it does not say.
	busy time.Duration
}

func (r requests) minus(before requests) requests {
	return requests{r.steps - before.steps, r.messages - before.messages, r.busy - before.busy}
}

// memoryBackend keeps pools in this process.
func memoryBackend() *backend {
	store := memstore.New()
	return &backend{
		name:  "memory",
		open:  func() (consensus.Store, func(), error) { return store, func() {}, nil },
		close: func() error { return nil },
	}
}

// bothBackends starts a Redis and a NATS server for pools whose lease is at most longest. stop ends both.
func (b *bench) bothBackends(ctx context.Context, longest time.Duration) (redis, nats *backend, stop func() error, err error) {
	if redis, err = b.redisBackend(ctx, longest); err != nil {
		return nil, nil, nil, err
	}
	if nats, err = b.natsBackend(ctx, longest); err != nil {
		return nil, nil, nil, errors.Join(err, redis.close())
	}
	return redis, nats, func() error { return errors.Join(nats.close(), redis.close()) }, nil
}

// redisBackend starts a redis-server for pools whose lease is at most longest.
func (b *bench) redisBackend(ctx context.Context, longest time.Duration) (*backend, error) {
	dir, err := os.MkdirTemp(b.dir, "redis")
	if err != nil {
		return nil, fmt.Errorf("folder for the server's files: %w", err)
	}
	server, err := servers.StartRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	connect := func() redis.UniversalClient { return redis.NewUniversalClient(redisstore.ClientOptions(server.Addr())) }
	admin := connect()
	info, err := admin.Info(ctx, "server").Result()
	if err != nil {
		return nil, errors.Join(err, admin.Close(), server.Close())
	}
	b.servers["redis-server"] = field(info, "redis_version") + ", one process, no persistence"
	return &backend{
		name: "Redis",
		addr: server.Addr(),
		open: func() (consensus.Store, func(), error) {
			client := connect()
			return redisstore.New(client, redisstore.WithLongestLease(longest)), func() { _ = client.Close() }, nil
		},
		bare: func(name string) (permitClient, func(), error) {
			client := connect()
			return bareRedis(client, name), func() { _ = client.Close() }, nil
		},
		requests: func(ctx context.Context) (requests, error) { return redisRequests(ctx, admin) },
		cpu:      server.CPUTime,
		halt:     server.Stop,
		resume:   server.Continue,
		close:    func() error { return errors.Join(admin.Close(), server.Close()) },
	}, nil
}

// redisRequests reads the counts of scripts: calls and microseconds.
func redisRequests(ctx context.Context, client redis.UniversalClient) (requests, error) {
	info, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return requests{}, fmt.Errorf("INFO commandstats: %w", err)
	}
	var sum requests
	for _, command := range []string{"eval", "evalsha"} {
		stats := field(info, "cmdstat_"+command)
		if stats == "" {
			continue
		}
		var calls, micros int64
		if _, err := fmt.Sscanf(strings.ReplaceAll(stats, ",", " "), "calls=%d usec=%d", &calls, &micros); err != nil {
			return requests{}, fmt.Errorf("INFO commandstats: %s is %q: %w", command, stats, err)
		}
		sum.steps += calls
		sum.busy += time.Duration(micros) * time.Microsecond
	}
	sum.messages = sum.steps
	return sum, nil
}

// field returns the value of a line "name:value" of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// natsBackend starts a NATS server in this process for pools whose lease is at
// most longest.
func (b *bench) natsBackend(ctx context.Context, longest time.Duration) (*backend, error) {
	dir, err := os.MkdirTemp(b.dir, "nats")
	if err != nil {
		return nil, fmt.Errorf("folder for the server's files: %w", err)
	}
	server, err := servers.StartNATS(ctx, dir)
	if err != nil {
		return nil, err
	}
	connect := func() (*nats.Conn, error) { return nats.Connect(server.URL(), natsstore.ConnectOptions()...) }
	admin, err := connect()
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	b.servers["nats-server"] = admin.ConnectedServerVersion() + ", in the process of the benchmark, one replica on disk"
	js, err := jetstream.New(admin)
	if err != nil {
		admin.Close()
		return nil, errors.Join(err, server.Close())
	}
	var mu sync.Mutex
	var conns []*nats.Conn
	return &backend{
		name: "NATS",
		open: func() (consensus.Store, func(), error) {
			nc, err := connect()
			if err != nil {
				return nil, nil, err
			}
			mu.Lock()
			conns = append(conns, nc)
			mu.Unlock()
			store, err := natsstore.New(nc, natsstore.WithLongestLease(longest), natsstore.WithLogger(quiet))
			return store, nc.Close, err
		},
		bare: func(name string) (permitClient, func(), error) {
			nc, err := connect()
			if err != nil {
				return nil, nil, err
			}
			take, err := bareNATS(ctx, nc, name)
			return take, nc.Close, err
		},
		requests: func(ctx context.Context) (requests, error) {
			mu.Lock()
			defer mu.Unlock()
			return natsRequests(ctx, js, conns)
		},
		close: func() error {
			admin.Close()
			return server.Close()
		},
	}, nil
}

// natsRequests reads the number of writes to the bucket from the server, and the
// number of messages from the processors' connections.
func natsRequests(ctx context.Context, js jetstream.JetStream, conns []*nats.Conn) (requests, error) {
	stream, err := js.Stream(ctx, "KV_"+natsstore.DefaultBucket)
	if err != nil {
		return requests{}, fmt.Errorf("information on the bucket: %w", err)
	}
	r := requests{steps: int64(stream.CachedInfo().State.LastSeq)}
	for _, nc := range conns {
		r.messages += int64(nc.Stats().OutMsgs)
	}
	return r, nil
}

// processorName names processors so that they sort by number.
func processorName(i int) string { return "processor-" + strconv.Itoa(1000 + i)[1:] }

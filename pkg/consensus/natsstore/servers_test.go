package natsstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// patience bounds every wait in these tests.
const patience = 30 * time.Second

// A target is a bucket on a NATS system under test.
type target struct {
	urls     string
	bucket   string
	replicas int
	// moves gives the bucket's stream another identity; nil where there is no way.
	moves func(t testing.TB, bucket string)
	// again restarts a standalone server under its name; nil where there is no way.
	again func(t testing.TB)
}

// current is a standalone server of the version in go.mod.
func current(t testing.TB) target {
	t.Helper()
	name := "first"
	srv := testenv.NATS(t, func(o *server.Options) { o.ServerName = name })
	again := func(t testing.TB) {
		t.Helper()
		require.NoError(t, srv.Restart(context.WithoutCancel(t.Context())))
	}
	return target{urls: srv.URL(), bucket: DefaultBucket, replicas: 1, again: again, moves: func(t testing.TB, _ string) {
		t.Helper()
		name += "-and-another"
		again(t)
	}}
}

// debian is the installed server, standalone.
func debian(t testing.TB) target {
	t.Helper()
	return target{urls: testenv.NATSBinary(t).URL(), bucket: DefaultBucket, replicas: 1}
}

// cluster is three servers of the version in go.mod.
func cluster(t testing.TB) target {
	t.Helper()
	c := testenv.NATSProcessCluster(t, 3)
	urls := strings.Join(c.URLs(), ",")
	return target{urls: urls, bucket: DefaultBucket, replicas: 3, moves: stepDown(urls)}
}

// debianCluster is three of the installed servers.
func debianCluster(t testing.TB) target {
	t.Helper()
	var routes, addrs []string
	for range 3 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addrs = append(addrs, l.Addr().String())
		routes = append(routes, fmt.Sprintf("%q", "nats-route://"+l.Addr().String()))
		require.NoError(t, l.Close())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	// A server answers only when the cluster has a leader, so all start at once.
	nodes, errs := make([]*servers.NATSProcess, len(addrs)), make([]error, len(addrs))
	var wg sync.WaitGroup
	for i, addr := range addrs {
		dir := t.TempDir()
		wg.Go(func() {
			nodes[i], errs[i] = servers.StartNATSProcess(ctx, dir,
				fmt.Sprintf("cluster { name: old, listen: %q, routes: [%s] }", addr, strings.Join(routes, ",")))
		})
	}
	wg.Wait()
	var urls []string
	for _, n := range nodes {
		if n != nil {
			t.Cleanup(func() { require.NoError(t, n.Close()) })
			urls = append(urls, n.URL())
		}
	}
	err := errors.Join(errs...)
	if errors.Is(err, servers.ErrNotInstalled) && os.Getenv(testenv.RequireStores) != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
	joined := strings.Join(urls, ",")
	awaitPeers(t, joined)
	move := stepDown(joined)
	return target{urls: joined, bucket: DefaultBucket, replicas: 3, moves: func(t testing.TB, bucket string) {
		t.Helper()
		// After several changes of its leader in a few seconds, under load, 2.9.10 may elect
		// one that answers reads but commits no write any more, of any client. That is an outage
		// of the server's making, which another change ends.
		nc := connect(t, joined)
		before := leaderOf(t, nc, bucket)
		for move(t, bucket); ; move(t, bucket) {
			took := takesWrites(nc, bucket)
			if took && leaderOf(t, nc, bucket) != before {
				return
			}
			t.Logf("the stream's leader moves on: commits writes %t", took)
		}
	}}
}

// awaitPeers waits until the leader of the cluster knows enough servers for a bucket: it
// is elected before it has heard of all.
func awaitPeers(t testing.TB, urls string) {
	t.Helper()
	js, err := jetstream.New(connect(t, urls))
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "peers", Replicas: 3})
		assert.NoError(c, err)
	}, patience, 50*time.Millisecond)
	require.NoError(t, js.DeleteStream(t.Context(), "peers"))
}

// takesWrites tells whether a write by any client is committed within a few seconds.
func takesWrites(nc *nats.Conn, bucket string) bool {
	_, err := nc.Request("$KV."+bucket+".probe", nil, 3*time.Second)
	return err == nil
}

// stepDown lets another server lead the stream.
func stepDown(urls string) func(t testing.TB, bucket string) {
	return func(t testing.TB, bucket string) {
		t.Helper()
		nc := connect(t, urls)
		leader := leaderOf(t, nc, bucket)
		_, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN.KV_"+bucket, nil, patience)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			now := leaderOf(t, nc, bucket)
			return now != "" && now != leader
		}, patience, 20*time.Millisecond)
	}
}

func leaderOf(t testing.TB, nc *nats.Conn, bucket string) string {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return ""
	}
	return stream.CachedInfo().Cluster.Leader
}

// kinds are the kinds of server that every test of the protocol runs on.
var kinds = []struct {
	name  string
	start func(t testing.TB) target
}{{"current", current}, {"debian", debian}, {"cluster", cluster}, {"debian cluster", debianCluster}}

// TestOnEachServer runs tests on every kind of server, or on a cluster alone, each in a bucket of its own.
func TestOnEachServer(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			on := kind.start(t)
			for _, test := range []struct {
				name string
				only string
				run  func(t *testing.T, on target)
			}{
				{"a pool", "", testPool},
				{"deleted records", "", testDeletedRecords},
				{"a hundred processors", "", testHundred},
				{"news", "", testNews},
				{"of another program", "cluster", testBucketOfAnotherProgram},
				{"election", "cluster", testElection},
				{"one of several", "cluster", testOneServerOfSeveral},
			} {
				on.bucket = strings.ReplaceAll(test.name, " ", "-")
				if test.only == "" || test.only == kind.name {
					t.Run(test.name, func(t *testing.T) { test.run(t, on) })
				}
			}
		})
	}
}

var silent = slog.New(slog.DiscardHandler)

// connect connects and waits until the connection is there.
func connect(t testing.TB, urls string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(urls, append(append(ConnectOptions(), errorHandler(silent)), opts...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	return nc
}

// open returns a Store on a connection of its own.
func open(t testing.TB, on target, opts ...Option) *Store {
	t.Helper()
	s, err := New(connect(t, on.urls), append([]Option{WithBucket(on.bucket), WithLogger(silent)}, opts...)...)
	require.NoError(t, err)
	return s
}

// quick lets new pools start after three tenths of a second.
const quick = 200 * time.Millisecond

// request is a request as a processor sends it that has taken no answer yet.
func request(pool, id string, seq uint64) driver.Request {
	return driver.Request{
		Pool: pool, ID: id, Incarnation: "i", Seq: seq, Nonce: seq + 1000, Lease: quick,
		Report: driver.Report{Wanted: driver.Whole, Demand: driver.Whole, PoolSize: 1},
	}
}

// slow gives the request the lease that processors usually have.
func slow(req driver.Request) driver.Request {
	req.Lease = driver.DefaultLease
	return req
}

// follow returns the request after an answer.
func follow(req driver.Request, ans driver.Answer) driver.Request {
	req.LastSeq, req.LastNonce, req.LastTime, req.Revision = ans.Seq, ans.Nonce, ans.Time, ans.Revision
	req.Unanswered = nil
	req.Seq++
	req.Nonce++
	inUse := ans.Share
	req.Report = driver.Report{InUse: inUse, Wanted: driver.Whole, Demand: driver.Whole, PoolSize: 1}
	return req
}

// trySync syncs with the time that a Member would give it.
func trySync(s *Store, req driver.Request) (driver.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), protocol.SyncTimeout(driver.DefaultLease))
	defer cancel()
	return s.Sync(ctx, req)
}

// mustSync syncs, and repeats a request that got no answer as a Member would: a cluster that has just formed may lose one.
func mustSync(t testing.TB, s *Store, req driver.Request) driver.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	ans, err := s.Sync(ctx, req)
	for errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil {
		ans, err = s.Sync(ctx, req)
	}
	require.NoError(t, err)
	require.Equal(t, driver.Granted, ans.Status)
	return ans
}

// syncUntil goes on until the answer is as it should be, and returns the next request.
func syncUntil(t testing.TB, s *Store, req driver.Request, done func(driver.Answer) bool) driver.Request {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ans := mustSync(t, s, req)
		req = follow(req, ans)
		if done(ans) {
			return req
		}
		require.True(t, time.Now().Before(deadline), "last answer: %+v", ans)
	}
}

func isWhole(ans driver.Answer) bool { return ans.Share == driver.Whole }

// keyValue opens the bucket as any other program does.
func keyValue(t testing.TB, on target) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(connect(t, on.urls))
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), on.bucket)
	require.NoError(t, err)
	return kv
}

func deleteBucket(t testing.TB, s *Store) {
	t.Helper()
	_, err := s.nc.Request(s.api("STREAM.DELETE"), nil, patience)
	require.NoError(t, err)
}

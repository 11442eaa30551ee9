package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// calls counts what the server carries out during do, the scripts' own calls included.
func calls(t *testing.T, server *servers.Redis, do func()) map[string]int64 {
	t.Helper()
	before := commands(t, server)
	do()
	calls := commands(t, server)
	calls["info"]-- // that of commands
	for command, n := range before {
		if calls[command] -= n; calls[command] == 0 {
			delete(calls, command)
		}
	}
	return calls
}

func commands(t *testing.T, server *servers.Redis) map[string]int64 {
	t.Helper()
	calls, err := server.Commands(t.Context())
	require.NoError(t, err)
	return calls
}

// TestDrawsTakeNoOtherRequest: the tag buckets are read and written by the script of the sync, and only while there are any.
func TestDrawsTakeNoOtherRequest(t *testing.T) {
	const syncs = 50
	server := testenv.Redis(t)
	s := New(client(t, ClientOptions(server.Addr())))
	req := request("p", "a", 1, 1)
	req.Draws = []driver.Draw{{Key: 1, Total: 1000, Per: time.Second, Ask: 1}, {Key: 2, Ask: 1}}
	granted(t, s, req)
	require.Equal(t, map[string]int64{
		"evalsha": syncs, "info": syncs, "time": syncs, "hgetall": syncs,
		"hmget": syncs + syncs/2, "hset": syncs + syncs/2, "pexpire": 3 * syncs,
	}, calls(t, server, func() {
		for n := range uint64(syncs) {
			next := request("p", "a", n+2, 1)
			if n%2 == 0 {
				next.Draws = req.Draws
			}
			granted(t, s, next)
		}
	}))
}

// TestLostTagBucketsFreeze: a server that evicts the tag buckets and keeps the pool has forgotten something.
func TestLostTagBucketsFreeze(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c, WithLongestLease(longest))
	next := request("p", "a", 1, 1)
	next.Lease = longest
	sync := func() driver.Answer {
		next.Draws = []driver.Draw{{Key: 1, Total: 1000, Per: time.Second, Ask: 1}}
		ans, err := s.Sync(t.Context(), next)
		require.NoError(t, err)
		require.Equal(t, driver.Granted, ans.Status)
		next.Seq, next.LastSeq, next.LastNonce, next.LastTime, next.Revision = next.Seq+1, next.Seq, next.Nonce, ans.Time, ans.Revision
		return ans
	}
	waitFor(t, "the freeze of a new pool ends", func() bool { return sync().Frozen == 0 })
	require.EqualValues(t, 1, sync().Draws[0].Tokens)
	pool, _ := s.keys("p")
	require.NoError(t, c.Del(t.Context(), tagBucketsKey(pool)).Err())
	ans := sync()
	require.Equal(t, wire.Removal(longest), ans.Frozen)
	require.Equal(t, driver.LackFrozen, ans.Draws[0].Lack)

	// Others' data under the key is refused and stays.
	require.NoError(t, c.Set(t.Context(), tagBucketsKey(pool), "x", 0).Err())
	_, err := s.Sync(t.Context(), next)
	require.ErrorIs(t, err, driver.ErrWrongAnswer)
	require.Equal(t, "x", c.Get(t.Context(), tagBucketsKey(pool)).Val())
	require.NoError(t, c.Del(t.Context(), tagBucketsKey(pool)).Err())
	require.NoError(t, c.HSet(t.Context(), tagBucketsKey(pool), "\x00\x00\x00\x00\x00\x00\x00\x01", "short").Err())
	_, err = s.Sync(t.Context(), next)
	require.ErrorIs(t, err, driver.ErrWrongAnswer)
	require.ErrorContains(t, err, "a tag bucket is not of format 1")
}

// TestOneRequestPerReservation counts at the server, too.
func TestOneRequestPerReservation(t *testing.T) {
	const reservations = 50
	server := testenv.Redis(t)
	s := New(client(t, ClientOptions(server.Addr())), WithLongestLease(longest))
	req := request("p", "a", 1, 1)
	req.Spacing, req.Strict = wire.MinSpacing, true
	waitFor(t, "permits are issued", func() bool {
		granted(t, s, req)
		req.Seq, req.LastSeq, req.LastNonce = req.Seq+1, req.Seq, req.Nonce
		want := reservation("p")
		want.Spacing = wire.MinSpacing
		res, err := s.Reserve(t.Context(), want)
		return err == nil && res.Count == 1
	})
	require.Equal(t, map[string]int64{
		"evalsha": reservations, "info": reservations, "time": reservations, "hget": reservations, "hset": reservations,
	}, calls(t, server, func() {
		for range reservations {
			_, err := s.Reserve(t.Context(), driver.Reserve{Pool: "p", Count: 1, Ahead: 100, Spacing: wire.MinSpacing, Lease: longest})
			require.NoError(t, err)
		}
	}))
}

// TestRetriesCountOnce: a client that retries has one request applied several
// times when the server stood still for a while.
func TestRetriesCountOnce(t *testing.T) {
	const retries = 3
	server := testenv.Redis(t)
	opts := ClientOptions(server.Addr())
	opts.MaxRetries = retries
	opts.ReadTimeout = 200 * time.Millisecond
	retrying := redis.NewClient(opts.Simple())
	defer retrying.Close()
	s := New(retrying)
	first := granted(t, s, request("p", "a", 1, driver.Whole/2))
	openConnections(t, retrying, retries+1)

	before, err := server.Commands(t.Context())
	require.NoError(t, err)
	require.NoError(t, server.Stop(t.Context()))
	lost := request("p", "a", 2, driver.Whole/2)
	_, err = s.Sync(t.Context(), lost)
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, server.Continue())

	waitFor(t, "the server has done all repeats", func() bool {
		after, err := server.Commands(t.Context())
		return err == nil && after["evalsha"]-before["evalsha"] == retries+1
	})
	plain := New(client(t, ClientOptions(server.Addr())))
	again := granted(t, plain, lost)
	require.Equal(t, first.Revision+1, again.Revision, "applied once")
	next := request("p", "a", 3, driver.Whole/2)
	require.Equal(t, first.Revision+2, granted(t, plain, next).Revision)
}

// openConnections leaves connections in the client's pool that were used before,
// for none can be made while the server stands still.
func openConnections(t *testing.T, c *redis.Client, n int) {
	t.Helper()
	var conns []*redis.Conn
	for range n {
		conn := c.Conn()
		require.NoError(t, conn.Ping(t.Context()).Err())
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
}

// TestServerTime logs what a sync costs the server, and requires that a hundred
// processors with one sync per second each take less than 5 % of a core.
func TestServerTime(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	server := testenv.Redis(t)
	s := New(client(t, ClientOptions(server.Addr())))
	for _, of := range []struct{ rows, draws int }{{1, 0}, {10, 0}, {100, 0}, {1000, 0}, {100, wire.MaxDraws}} {
		next := fill(t, s, fmt.Sprint("pool of ", of), of.rows)
		var draws []driver.Draw
		for key := range of.draws {
			draws = append(draws, driver.Draw{Key: uint64(key) << 40, Total: 1000, Per: time.Second, Burst: 100, Ask: 10})
		}
		syncs := 200
		before, err := server.CPUTime(t.Context())
		require.NoError(t, err)
		began := time.Now()
		for range syncs {
			req := next()
			req.Draws = draws
			granted(t, s, req)
		}
		took := time.Since(began) / time.Duration(syncs)
		after, err := server.CPUTime(t.Context())
		require.NoError(t, err)
		cpu := (after - before) / time.Duration(syncs)
		t.Logf("pool of %4d, %4d draws: server %s of CPU, round trip and parsing %s per sync",
			of.rows, of.draws, cpu.Round(time.Microsecond), took.Round(time.Microsecond))
		if of.rows == 100 && of.draws == 0 {
			require.Less(t, 100*cpu, 50*time.Millisecond, "a hundred syncs per second")
		}
	}
}

// fill makes a pool of so many processors, and returns a function that returns the
// next request of one after the other.
func fill(t testing.TB, s *Store, pool string, rows int) func() driver.Request {
	t.Helper()
	n := uint64(0)
	taken := make([]driver.Answer, rows)
	next := func() driver.Request {
		i := int(n) % rows
		n++
		req := request(pool, fmt.Sprintf("simple-pipeline-cat-%d-x7kzq", i), n, driver.Whole/driver.Share(rows))
		req.Incarnation, req.Lease = "3f1d5e60-9a9d-4f6e", driver.DefaultLease
		req.LastSeq, req.LastNonce, req.LastTime = taken[i].Seq, taken[i].Nonce, taken[i].Time
		taken[i] = driver.Answer{Seq: req.Seq, Nonce: req.Nonce, Time: time.Now().UnixMicro()}
		return req
	}
	for range rows {
		granted(t, s, next())
	}
	return next
}

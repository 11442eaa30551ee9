package natsstore

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func testPool(t *testing.T, on target) {
	a, b := open(t, on, WithLongestLease(quick)), open(t, on, WithLongestLease(quick))
	first := mustSync(t, a, request("ns/pipe.v2", "a", 1))
	require.Zero(t, first.Share)
	require.Equal(t, driver.FreezeNewRecord, first.FrozenBy)
	require.Equal(t, wire.Removal(quick), first.Frozen)

	js, err := jetstream.New(connect(t, on.urls))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_"+on.bucket)
	require.NoError(t, err)
	made := stream.CachedInfo().Config
	require.Equal(t, on.replicas, made.Replicas, "three where the servers are a cluster")
	require.Equal(t, jetstream.FileStorage, made.Storage)
	require.Equal(t, int64(1), made.MaxMsgsPerSubject)
	require.Equal(t, int64(defaultMaxBytes), made.MaxBytes)
	require.GreaterOrEqual(t, made.MaxAge, 24*time.Hour)
	require.False(t, made.AllowDirect)

	next := syncUntil(t, a, follow(request("ns/pipe.v2", "a", 1), first), isWhole)
	mustSync(t, a, next)
	mustSync(t, b, request("ns/pipe.v2", "b", 1))

	entry, err := keyValue(t, on).Get(t.Context(), "ns/pipe=2Ev2")
	require.NoError(t, err)
	rec, err := driver.ParseRecord(entry.Value())
	require.NoError(t, err)
	require.Len(t, rec.Rows, 2)
}

func TestLongestLease(t *testing.T) {
	on := current(t)
	s := open(t, on, WithLongestLease(100*time.Millisecond))
	_, err := trySync(s, request("p", "a", 1))
	var refused *driver.RequestError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, driver.RequestError{Field: "Lease", Value: "200ms", Allowed: "at most 100ms in this store"}, *refused)

	// A pool that has a longer lease all the same freezes for as long as it needs.
	req := request("p", "b", 1)
	ans := mustSync(t, open(t, on, WithLongestLease(time.Second)), req)
	req = follow(req, ans)
	req.Lease, req.Revision = 100*time.Millisecond, ans.Revision+1
	require.Equal(t, wire.Removal(quick), mustSync(t, s, req).Frozen)
}

// A write that is not acknowledged may be recorded later, or not; whichever it
// is, the next requests do not mind.
func TestUnacknowledgedWrite(t *testing.T) {
	srv := testenv.NATSBinary(t)
	s := open(t, target{urls: srv.URL(), bucket: DefaultBucket}, WithLongestLease(quick))
	next := syncUntil(t, s, request("p", "a", 1), isWhole)
	require.NoError(t, srv.Stop(t.Context()))
	begun := time.Now()
	_, err := trySync(s, next)
	require.Error(t, err)
	require.Less(t, time.Since(begun), 2*time.Second)

	// The write itself, as one that had been read for when the server stopped.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, line{s, s.nc}.write(ctx, s.prefix+"p", []byte("late"), 1<<40, &streamInfo{}), context.DeadlineExceeded)

	require.NoError(t, srv.Continue())
	require.Eventually(t, func() bool {
		next.Seq++
		next.Nonce++
		ans, err := trySync(s, next)
		return err == nil && ans.Status == driver.Granted && isWhole(ans)
	}, patience, 10*time.Millisecond)
}

// One sync is three messages to the server, one of them a write; a repeat is two.
func TestMessagesPerSync(t *testing.T) {
	on := current(t)
	s := open(t, on, WithLongestLease(quick))
	next := syncUntil(t, s, request("p", "a", 1), isWhole)

	watcher := connect(t, on.urls)
	api, err := watcher.SubscribeSync("$JS.API.>")
	require.NoError(t, err)
	writes, err := watcher.SubscribeSync("$KV.>")
	require.NoError(t, err)
	require.NoError(t, watcher.Flush())
	count := func(sub *nats.Subscription) int {
		require.NoError(t, s.nc.Flush())
		require.NoError(t, watcher.Flush())
		n, _, err := sub.Pending()
		require.NoError(t, err)
		return n
	}

	const syncs = 50
	for range syncs {
		next = follow(next, mustSync(t, s, next))
	}
	require.Equal(t, 2*syncs, count(api))
	require.Equal(t, syncs, count(writes))
	next.Seq--
	mustSync(t, s, request("p", "b", 1))
	mustSync(t, s, request("p", "b", 1))
	require.Equal(t, 2*syncs+4, count(api))
	require.Equal(t, syncs+1, count(writes))

	_, err = s.Save(t.Context(), "p", driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
	require.NoError(t, err)
	_, _, err = s.Load(t.Context(), "p")
	require.NoError(t, err)
	require.Equal(t, 2*syncs+8, count(api))
	require.Equal(t, syncs+2, count(writes), "a saved document is one write")
}

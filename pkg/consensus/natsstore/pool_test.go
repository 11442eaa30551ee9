package natsstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func testPool(t *testing.T, on target) {
	a, b := open(t, on, WithLongestLease(quick)), open(t, on, WithLongestLease(quick))
	first := mustSync(t, a, request("ns/pipe.v2", "a", 1))
	require.Zero(t, first.Share)
	require.Equal(t, driver.FreezeNewRecord, first.FrozenBy)
	require.Equal(t, driver.Removal(quick), first.Frozen)

	js, err := jetstream.New(connect(t, on.urls))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_"+on.bucket)
	require.NoError(t, err)
	made := stream.CachedInfo().Config
	require.Equal(t, on.replicas, made.Replicas, "three where the servers are a cluster")
	require.Equal(t, jetstream.FileStorage, made.Storage)
	require.Equal(t, int64(1), made.MaxMsgsPerSubject)
	require.Equal(t, int64(DefaultMaxBytes), made.MaxBytes)
	require.GreaterOrEqual(t, made.MaxAge, 24*time.Hour)
	require.False(t, made.AllowDirect)

	next := syncUntil(t, a, follow(request("ns/pipe.v2", "a", 1), first), isWhole)
	again := mustSync(t, b, next)
	require.Equal(t, again, mustSync(t, a, next), "a repeat at another handle changes nothing")
	seen := mustSync(t, b, request("ns/pipe.v2", "b", 1))
	require.Zero(t, seen.Share)
	require.Equal(t, 2, seen.Live)

	entry, err := keyValue(t, on).Get(t.Context(), "ns/pipe=2Ev2")
	require.NoError(t, err)
	rec, err := driver.ParseRecord(entry.Value())
	require.NoError(t, err)
	require.Len(t, rec.Rows, 2)

	next = follow(next, again)
	require.NoError(t, a.Leave(t.Context(), driver.Leave{
		Pool: "ns/pipe.v2", ID: "a", Incarnation: "i", Seq: next.Seq, LastSeq: next.LastSeq, LastNonce: next.LastNonce,
	}))
	require.True(t, isWhole(mustSync(t, b, follow(request("ns/pipe.v2", "b", 1), seen))), "a leave frees the share at once")
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
	require.Equal(t, driver.Removal(quick), mustSync(t, s, req).Frozen)
}

func TestAnotherServerFreezes(t *testing.T) {
	for name, start := range map[string]func(testing.TB) target{"restarted": current, "leader moved": cluster} {
		t.Run(name, func(t *testing.T) {
			on := start(t)
			next := syncUntil(t, open(t, on, WithLongestLease(quick)), request("p", "a", 1), isWhole)
			on.moves(t, on.bucket)
			ans := mustSync(t, open(t, on, WithLongestLease(quick)), next)
			require.Equal(t, driver.FreezeIdentity, ans.FrozenBy)
			require.Equal(t, driver.Whole, ans.Share, "what is in use goes on")
		})
	}
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

func TestEndedContext(t *testing.T) {
	s := open(t, current(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := s.Sync(ctx, request("p", "a", 1))
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Sync(t.Context(), driver.Request{})
	require.ErrorAs(t, err, new(*driver.RequestError))
}

// Two syncs that are recorded never have the same revision: the compare-and-set
// holds, whatever the server and however many write at once.
func testCompareAndSet(t *testing.T, on target) {
	const writers, each = 8, 40
	revisions := make(chan []uint64, writers)
	for i := range writers {
		s := open(t, on)
		go func() { revisions <- syncOften(t, s, fmt.Sprint("pod-", i), each) }()
	}
	seen := map[uint64]bool{}
	for range writers {
		for _, r := range <-revisions {
			require.False(t, seen[r], "revision %d was given twice", r)
			seen[r] = true
		}
	}
	require.Len(t, seen, writers*each)
}

// syncOften returns the revisions of a number of syncs in a closed loop.
func syncOften(t *testing.T, s *Store, id string, syncs int) []uint64 {
	var revisions []uint64
	req := slow(request("p", id, 1))
	for deadline := time.Now().Add(patience); len(revisions) < syncs && time.Now().Before(deadline); req.Seq++ {
		req.Nonce = rand.Uint64()
		ans, err := trySync(s, req)
		if err != nil {
			// It may have been recorded, under a revision that nobody is told. Who does not
			// name it then is taken for another process.
			req.Unanswered = append(slices.Clone(req.Unanswered), driver.Ticket{Seq: req.Seq, Nonce: req.Nonce})
			continue
		}
		if !assert.Equal(t, driver.Granted, ans.Status) {
			break
		}
		req.LastSeq, req.LastNonce, req.LastTime, req.Revision = ans.Seq, ans.Nonce, ans.Time, ans.Revision
		req.Unanswered = nil
		revisions = append(revisions, ans.Revision)
	}
	return revisions
}

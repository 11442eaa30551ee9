package natsstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// newcomers makes pools that nobody has heard of.
func newcomers() func() string {
	n := 0
	return func() string { n++; return fmt.Sprint("new-", n) }
}

// fresh is why the first sync of a new pool is frozen. One that is not gets all it wants.
func fresh(t testing.TB, s *Store, pool string) driver.FreezeCause {
	t.Helper()
	ans := mustSync(t, s, request(pool, "a", 1))
	require.Equal(t, ans.Frozen == 0, isWhole(ans))
	return ans.FrozenBy
}

// awaitTrust waits until new pools are known as such.
func awaitTrust(t testing.TB, s *Store, next func() string) {
	t.Helper()
	require.Eventually(t, func() bool { return fresh(t, s, next()) == driver.FreezeNone }, patience, 20*time.Millisecond)
}

// putMarker writes the marker as a user would.
func putMarker(t testing.TB, on target, value string) {
	t.Helper()
	_, err := keyValue(t, on).Put(context.WithoutCancel(t.Context()), markerKeys[0], []byte(value))
	require.NoError(t, err)
}

// readMarker returns the marker's parts: format, since, life.
func readMarker(t testing.TB, on target) []string {
	t.Helper()
	e, err := keyValue(t, on).Get(context.WithoutCancel(t.Context()), markerKeys[0])
	require.NoError(t, err)
	return strings.SplitN(string(e.Value()), " ", 3)
}

// TestNewPools asks what the first sync of a new pool is told after something happened to a
// bucket that knew new pools as such.
func TestNewPools(t *testing.T) {
	on := current(t)
	s := open(t, on, WithLongestLease(quick))
	next := newcomers()
	began := time.Now()
	require.Equal(t, driver.FreezeNewRecord, fresh(t, s, next()), "a bucket of which nothing is known")
	awaitTrust(t, s, next)
	require.GreaterOrEqual(t, time.Since(began), wire.Removal(quick))

	js, err := jetstream.New(connect(t, on.urls))
	require.NoError(t, err)
	for _, test := range []struct {
		name   string
		happen func(t *testing.T)
		want   driver.FreezeCause
	}{
		{"nothing", func(*testing.T) {}, driver.FreezeNone},
		{"the bucket deleted", func(t *testing.T) { deleteBucket(t, s) }, driver.FreezeNewRecord},
		{"the bucket purged", func(t *testing.T) {
			stream, err := js.Stream(t.Context(), "KV_"+on.bucket)
			require.NoError(t, err)
			require.NoError(t, stream.Purge(t.Context()))
		}, driver.FreezeNewRecord},
		{"the server restarted under the same name, with all data", func(t *testing.T) {
			awaitRestart(t, on, s)
		}, driver.FreezeNewRecord},
		{"the marker deleted", func(t *testing.T) {
			require.NoError(t, keyValue(t, on).Delete(t.Context(), markerKeys[0]))
		}, driver.FreezeNewRecord},
		{"the marker of another life", func(t *testing.T) {
			putMarker(t, on, "1 1 2026-11-21T10:08:27Z first")
			time.Sleep(2 * wire.Removal(quick)) // by the server's clock: it is old enough
		}, driver.FreezeNewRecord},
		{"a marker from the future", func(t *testing.T) {
			m := readMarker(t, on)
			putMarker(t, on, fmt.Sprintf("1 %d %s", time.Now().Add(time.Hour).UnixMicro(), m[2]))
			time.Sleep(2 * wire.Removal(quick))
		}, driver.FreezeNewRecord},
		{"a marker that says more than its stamp", func(t *testing.T) {
			putMarker(t, on, "1 1 "+readMarker(t, on)[2])
		}, driver.FreezeNewRecord},
	} {
		t.Run(test.name, func(t *testing.T) {
			awaitTrust(t, s, next)
			test.happen(t)
			require.Equal(t, test.want, fresh(t, s, next()))
			awaitTrust(t, s, next)
		})
	}

	lasting := request(next(), "a", 1)
	lasting.Outlasts = wire.MaxOutlasts
	require.Equal(t, driver.FreezeNewRecord, mustSync(t, s, lasting).FrozenBy, "somebody may go on without the store")
}

// awaitRestart restarts the server of a target, which keeps its name, and waits for the Store's connection.
func awaitRestart(t *testing.T, on target, s *Store) {
	t.Helper()
	_, before := line{s, s.nc}.server()
	on.again(t)
	require.Eventually(t, func() bool {
		_, id := line{s, s.nc}.server()
		return s.nc.IsConnected() && id != before
	}, patience, time.Millisecond)
}

// A value that is no marker is told, and stays.
func TestForeignMarker(t *testing.T) {
	on := current(t)
	s := open(t, on, WithLongestLease(quick))
	mustSync(t, s, request("old", "a", 1))
	for _, value := range []string{"", "hello", "1", "1 2", "1 2 ", "1 x life", "2 1 life"} {
		putMarker(t, on, value)
		_, err := trySync(s, request("p", "a", 1))
		require.ErrorIs(t, err, driver.ErrWrongAnswer, value)
		require.ErrorContains(t, err, "$KV.numathrottle.=marker-1")
		require.ErrorContains(t, err, "not a marker of format 1")
		mustSync(t, s, request("old", "b"+value, 1)) // a pool on record needs none
	}
}

// Another leader knows nothing of new pools at first.
func testElection(t *testing.T, on target) {
	s := open(t, on, WithLongestLease(quick))
	next := newcomers()
	awaitTrust(t, s, next)
	on.moves(t, on.bucket)
	require.Equal(t, driver.FreezeNewRecord, fresh(t, s, next()))
	awaitTrust(t, s, next)
}

// A pool that is in use keeps a marker, also in a bucket that had none, and when the leader has
// changed: the next new pool need not be the first to be seen.
func TestPoolsInUseKeepTheMarker(t *testing.T) {
	for name, happen := range map[string]func(t *testing.T, on target){
		"a bucket of an older release": func(t *testing.T, on target) {
			require.NoError(t, keyValue(t, on).Purge(t.Context(), markerKeys[0]))
		},
		"restarted": func(t *testing.T, on target) { on.again(t) },
	} {
		t.Run(name, func(t *testing.T) {
			on := current(t)
			next := newcomers()
			used := syncUntil(t, open(t, on, WithLongestLease(quick)), request("used", "a", 1), isWhole)
			happen(t, on)
			s := open(t, on, WithLongestLease(quick))
			used = follow(used, mustSync(t, s, used))
			until := time.Now().Add(2 * wire.Removal(quick))
			syncUntil(t, s, used, func(driver.Answer) bool { return time.Now().After(until) })
			require.Equal(t, driver.FreezeNone, fresh(t, s, next()))
		})
	}
}

// A marker is written again long before the one that counts expires, and that one goes on counting.
func TestMarkerIsRenewed(t *testing.T) {
	on := current(t)
	s := open(t, on, WithLongestLease(quick))
	mustSync(t, s, request("p", "a", 1))
	l := line{s, s.nc}
	began := time.Now()
	after := func(d time.Duration) time.Duration {
		info, err := l.info(t.Context())
		require.NoError(t, err)
		now := began.Add(d)
		info.TimeStamp = &now
		known, err := l.remembers(t.Context(), info)
		require.NoError(t, err)
		return known.Round(time.Minute)
	}
	kv := keyValue(t, on)
	require.Equal(t, renewal-time.Hour, after(renewal-time.Hour))
	_, err := kv.Get(t.Context(), markerKeys[1])
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound, "it is too early")
	require.Equal(t, renewal+time.Hour, after(renewal+time.Hour))
	_, err = kv.Get(t.Context(), markerKeys[1])
	require.NoError(t, err)
	require.Equal(t, renewal+2*time.Hour, after(renewal+2*time.Hour))
	require.NoError(t, kv.Purge(t.Context(), markerKeys[0])) // as if it had expired
	require.Equal(t, time.Hour, after(renewal+2*time.Hour))
	require.Equal(t, renewal+time.Minute, after(2*renewal+time.Hour+time.Minute))
	require.Equal(t, 2*renewal, after(3*renewal+time.Hour))
}

// A server that does not tell its time knows no new pool, and keeps no marker.
func TestNewPoolsOfAnOldServer(t *testing.T) {
	on := debian(t)
	s := open(t, on, WithLongestLease(quick))
	next := newcomers()
	pool := next()
	syncUntil(t, s, request(pool, "a", 1), isWhole)
	require.Equal(t, driver.FreezeNewRecord, fresh(t, s, next()))
	_, err := keyValue(t, on).Get(t.Context(), markerKeys[0])
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
}

// A stream in memory that one server keeps is lost with it, and its name and age are not.
func TestNewPoolsInMemory(t *testing.T) {
	on := current(t)
	js, err := jetstream.New(connect(t, on.urls))
	require.NoError(t, err)
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: on.bucket, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	s := open(t, on, WithLongestLease(quick))
	syncUntil(t, s, request("p", "a", 1), isWhole)
	require.Equal(t, driver.FreezeNewRecord, fresh(t, s, "q"))
}

// Beyond the bucket's limit the oldest entries go first: the marker before any pool
// that is in use, and a pool that has gone was silent for longer than the marker is old.
func TestMarkerIsEvictedFirst(t *testing.T) {
	on := current(t)
	s := open(t, on, WithLongestLease(quick), WithMaxBytes(minMaxBytes))
	next := newcomers()
	awaitTrust(t, s, next)
	mustSync(t, s, request("used", "a", 1))
	kv := keyValue(t, on)
	for i := range 12 {
		_, err := kv.Put(t.Context(), fmt.Sprint("filler-", i), make([]byte, 10_000))
		require.NoError(t, err)
		mustSync(t, s, request("used", fmt.Sprint("b", i), 1))
	}
	_, err := kv.Get(t.Context(), markerKeys[0])
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
	_, err = kv.Get(t.Context(), "used")
	require.NoError(t, err)
	require.Equal(t, driver.FreezeNewRecord, fresh(t, s, next()))
}

// The first answer of a new pool is void when the write may have come to another bucket
// than the one that was asked, and the pool is frozen from then on.
func TestBucketMadeAnewWhileAPoolBegins(t *testing.T) {
	on := current(t)
	s := open(t, on, WithLongestLease(quick))
	next := newcomers()
	awaitTrust(t, s, next)
	l := line{s, s.nc}
	req := request("late", "a", 1)
	err := l.try(t.Context(), &step{pool: req.Pool, mayCreate: true, apply: func(rec *driver.Record, at driver.At) bool {
		deleteBucket(t, s) // between what was read and the write
		require.ErrorIs(t, l.create(t.Context()), errMade)
		ans, changed := rec.Sync(&req, at)
		require.True(t, isWhole(ans))
		return changed
	}})
	require.ErrorContains(t, err, "the answer is void")
	require.NotErrorAs(t, err, new(passing))
	req.Unanswered = []driver.Ticket{{Seq: req.Seq, Nonce: req.Nonce}}
	req.Seq, req.Nonce = 2, 2
	ans := mustSync(t, s, req)
	require.Equal(t, driver.FreezeIdentity, ans.FrozenBy)
	require.Zero(t, ans.Share)
}

// On one server of several only a client of that server can tell its life from the next one.
func testOneServerOfSeveral(t *testing.T, on target) {
	next := newcomers()
	mustSync(t, open(t, on, WithReplicas(1)), request(next(), "a", 1))
	leader := leaderOf(t, connect(t, on.urls), on.bucket)
	for url := range strings.SplitSeq(on.urls, ",") {
		s := open(t, target{urls: url, bucket: on.bucket}, WithLongestLease(quick))
		if name, _ := (line{s, s.nc}).server(); name == leader {
			awaitTrust(t, s, next)
			continue
		}
		syncUntil(t, s, request(next(), "a", 1), isWhole)
		require.Equal(t, driver.FreezeNewRecord, fresh(t, s, next()))
	}
}

package natsstore

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Whoever leaves a pool, looks at one or saves a document makes neither bucket nor pool.
func TestWhereNothingIs(t *testing.T) {
	on := current(t)
	s := open(t, on)
	leave := driver.Leave{Pool: "p", ID: "a", Incarnation: "i", Seq: 1}
	require.NoError(t, s.Leave(t.Context(), leave))
	requireNoPool := func() {
		_, _, err := s.Load(t.Context(), "p")
		require.ErrorIs(t, err, driver.ErrNoPool)
		_, err = s.Save(t.Context(), "p", driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
		require.ErrorIs(t, err, driver.ErrNoPool)
		require.ErrorContains(t, err, `pool "p"`)
	}
	requireNoPool()
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	_, err = js.Stream(t.Context(), "KV_numathrottle")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "none of these makes a bucket")

	mustSync(t, s, request("other", "a", 1))
	require.NoError(t, s.Leave(t.Context(), leave))
	requireNoPool()
	_, err = keyValue(t, on).Get(t.Context(), "p")
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
	require.ErrorAs(t, s.Leave(t.Context(), driver.Leave{}), new(*driver.RequestError))
}

// What another program has put under the key is told, and stays.
func TestForeignValues(t *testing.T) {
	on := current(t)
	s := open(t, on)
	mustSync(t, s, request("other", "a", 1))
	kv := keyValue(t, on)
	for name, tt := range map[string]struct{ value, want string }{
		"text":         {"hello", "5 bytes that are not a pool's record"},
		"empty":        {"", "0 bytes that are not a pool's record"},
		"newer format": {"NT\x02whatever", "the record has format 2, written by a newer release"},
		"damaged":      {"NT\x01\x01", "ends in the middle of a field"},
	} {
		t.Run(name, func(t *testing.T) {
			seq, err := kv.Put(t.Context(), "p", []byte(tt.value))
			require.NoError(t, err)
			_, err = trySync(s, request("p", "a", 1))
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "$KV.numathrottle.p")
			require.ErrorContains(t, err, "nats kv del numathrottle p")
			require.ErrorIs(t, s.Leave(t.Context(), driver.Leave{Pool: "p", ID: "a", Incarnation: "i", Seq: 1}), driver.ErrWrongAnswer)
			_, _, err = s.Load(t.Context(), "p")
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
			require.NotErrorIs(t, err, driver.ErrNoPool)
			_, err = s.Save(t.Context(), "p", driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
			entry, err := kv.Get(t.Context(), "p")
			require.NoError(t, err)
			require.Equal(t, seq, entry.Revision(), "the value was overwritten")
		})
	}
}

// A record that a user deletes is a new one, frozen.
func testDeletedRecords(t *testing.T, on target) {
	s := open(t, on, WithLongestLease(quick))
	next := syncUntil(t, s, request("p", "a", 1), isWhole)
	kv := keyValue(t, on)
	for name, remove := range map[string]func() error{
		"delete": func() error { return kv.Delete(t.Context(), "p") },
		"purge":  func() error { return kv.Purge(t.Context(), "p") },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, remove())
			other := mustSync(t, s, request("p", "b"+name, 1))
			require.Equal(t, driver.FreezeNewRecord, other.FrozenBy)
			require.Zero(t, other.Share)
			ans := mustSync(t, s, next)
			require.Equal(t, driver.Whole, ans.Share, "what is in use goes on")
			next = follow(next, ans)
			next = syncUntil(t, s, next, func(ans driver.Answer) bool { return ans.Frozen == 0 && ans.Live == 1 })
		})
	}
}

// A bucket that was made as other programs make theirs will do: no read takes
// the way that any replica may answer.
func testBucketOfAnotherProgram(t *testing.T, on target) {
	nc := connect(t, on.urls)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: on.bucket, Replicas: 3, History: 5, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_"+on.bucket)
	require.NoError(t, err)
	require.True(t, stream.CachedInfo().Config.AllowDirect)
	direct, err := nc.SubscribeSync("$JS.API.DIRECT.GET.>")
	require.NoError(t, err)

	var log strings.Builder
	s, err := New(nc, WithBucket(on.bucket), WithReplicas(5), WithLongestLease(quick), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	syncUntil(t, s, request("p", "a", 1), isWhole)
	pending, _, err := direct.Pending()
	require.NoError(t, err)
	require.Zero(t, pending)
	_, err = kv.Get(t.Context(), "p")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "one warning, once")
	for _, odd := range []string{"storage memory", "max_msgs_per_subject 5", "3 replicas instead of 5"} {
		require.Contains(t, log.String(), odd)
	}
}

func TestUnfitBuckets(t *testing.T) {
	on := current(t)
	s := open(t, on)
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	fit := jetstream.StreamConfig{Name: "KV_numathrottle", Subjects: []string{"$KV.numathrottle.>"}, MaxMsgsPerSubject: 1}
	for name, tt := range map[string]struct {
		spoil func(c *jetstream.StreamConfig)
		want  string
	}{
		"other subjects": {func(c *jetstream.StreamConfig) { c.Subjects = []string{"other"} }, `its subjects are ["other"], must include "$KV.numathrottle.>"`},
		"work queue":     {func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, `its retention is "workqueue", allowed: "limits"`},
		"short age":      {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "its max_age is 1h0m0s, allowed: 0 or 24h0m0s and more"},
		"refuses updates": {func(c *jetstream.StreamConfig) {
			c.Discard, c.DiscardNewPerSubject = jetstream.DiscardNew, true
		}, "it refuses updates (discard_new_per_subject)"},
		"no acknowledgements": {func(c *jetstream.StreamConfig) { c.NoAck = true }, "it acknowledges no writes (no_ack)"},
		"early acknowledgements": {func(c *jetstream.StreamConfig) {
			c.PersistMode = jetstream.AsyncPersistMode
		}, "it acknowledges writes before they are kept (persist_mode async)"},
		"sources": {func(c *jetstream.StreamConfig) {
			c.Sources = []*jetstream.StreamSource{{Name: "elsewhere"}}
		}, "it copies other streams (sources)"},
		"mirror": {func(c *jetstream.StreamConfig) {
			c.Subjects, c.Mirror = nil, &jetstream.StreamSource{Name: "elsewhere"}
		}, "it is a mirror"},
		"transform": {func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "$KV.numathrottle.x", Destination: "$KV.numathrottle.y"}
		}, "it changes subjects (subject_transform)"},
		"counters": {func(c *jetstream.StreamConfig) { c.AllowMsgCounter = true }, "it keeps counters (allow_msg_counter)"},
		"two faults": {func(c *jetstream.StreamConfig) {
			c.MaxAge, c.Retention = time.Hour, jetstream.InterestPolicy
		}, `its retention is "interest", allowed: "limits"; its max_age is 1h0m0s`},
	} {
		t.Run(name, func(t *testing.T) {
			config := fit
			tt.spoil(&config)
			var err error
			require.Eventually(t, func() bool { // the server is still deleting the one before
				_, err = js.CreateStream(t.Context(), config)
				return err == nil
			}, patience, 10*time.Millisecond)
			defer deleteBucket(t, s)
			_, err = trySync(s, request("p", "a", 1))
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "KV_numathrottle")
		})
	}
}

// Replicas that the servers cannot keep are an error, not fewer replicas.
func TestReplicasAreNotLowered(t *testing.T) {
	_, err := trySync(open(t, current(t), WithReplicas(3)), request("p", "a", 1))
	require.ErrorContains(t, err, "replicas > 1 not supported in non-clustered mode")
}

package natsstore

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// News come between no writes: the bucket keeps nothing of them, whatever the server's version.
func testNews(t *testing.T, on target) {
	s := open(t, on, WithLongestLease(longest))
	mustSync(t, s, request("p", "a", 1))
	l := line{s, s.nc}
	before, err := l.info(t.Context())
	require.NoError(t, err)
	received := make(chan []byte, 100)
	stop, err := s.Watch(t.Context(), "p", func(news []byte) { received <- news })
	require.NoError(t, err)
	t.Cleanup(stop)
	require.NoError(t, s.nc.FlushTimeout(patience))
	for range 100 {
		require.NoError(t, s.Push(t.Context(), "p", []byte("news")))
	}
	for range 100 {
		require.Equal(t, "news", string(<-received))
	}
	mustSync(t, s, request("p", "b", 1))
	after, err := l.info(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.State.LastSeq+1, after.State.LastSeq)
}

// A user who may do what is documented hears news; one who may not subscribe does everything else.
func TestPermissionsForNews(t *testing.T) {
	as := withUsers(t, map[string][]string{"all": documented, "deaf": documented},
		map[string][]string{"all": {"_INBOX.>", "$KV.numathrottle.push.>"}, "deaf": {"_INBOX.>"}})
	all, deaf, received := as("all"), as("deaf"), make(chan string, 1)
	stop, err := all.Watch(t.Context(), "p", func(news []byte) { received <- string(news) })
	require.NoError(t, err)
	t.Cleanup(stop)
	require.NoError(t, all.nc.FlushTimeout(patience))
	stopDeaf, err := deaf.Watch(t.Context(), "p", func([]byte) { t.Error("heard without a permission") })
	require.NoError(t, err, "the server tells nobody but the connection")
	t.Cleanup(stopDeaf)
	require.NoError(t, deaf.nc.FlushTimeout(patience), "the refusal comes before the answer to a ping")
	require.NoError(t, deaf.Push(t.Context(), "p", []byte("news")))
	select {
	case news := <-received:
		require.Equal(t, "news", news)
	case <-time.After(patience):
		require.Fail(t, "no news")
	}
	require.ErrorIs(t, deaf.nc.LastError(), nats.ErrPermissionViolation)
	require.NotContains(t, line{deaf, deaf.nc}.refusal("$JS.API.X"), "lacks a permission", "that is not why an answer is late")
	mustSync(t, deaf, request("p", "a", 1))
	mustSync(t, all, request("p", "b", 1))
}

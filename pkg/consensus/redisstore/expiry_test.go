package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A server that comes to a request when its caller has given up does nothing of what it asks.
func TestAnExpiredRequestIsNotCarriedOut(t *testing.T) {
	srv := testenv.Redis(t)
	c := client(t, ClientOptions(srv.Addr()))
	s := New(c, WithLongestLease(longest))
	pool, _ := s.keys("p")
	granted(t, s, request("p", "a", 1, 1))
	_, err := s.Reserve(t.Context(), reservation("p")) // the script is known to the server
	require.NoError(t, err)
	holds := request("p", "a", 2, 1)
	holds.InUse = 1
	for name, call := range map[string]func(ctx context.Context) error{
		"sync":        func(ctx context.Context) error { _, err := s.Sync(ctx, holds); return err },
		"reservation": func(ctx context.Context) error { _, err := s.Reserve(ctx, reservation("p")); return err },
	} {
		before, run := everything(t, c), commands(t, srv)["evalsha"] // which leaves a connection that is open
		require.NoError(t, srv.Stop(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		require.Error(t, call(ctx), name)
		cancel()
		require.NoError(t, srv.Continue())
		waitFor(t, "the server comes to the "+name, func() bool { return commands(t, srv)["evalsha"] == run+1 })
		require.Equal(t, before, everything(t, c), name)
	}
	require.Contains(t, c.HGet(t.Context(), pool, "a\x001").Val(), fmt.Sprint(" ", request("p", "a", 1, 1).Nonce, " "))
	holds.Unanswered = []driver.Ticket{{Seq: holds.Seq, Nonce: holds.Nonce}}
	holds.Seq, holds.Nonce = holds.Seq+1, holds.Nonce+1
	require.Equal(t, driver.Granted, granted(t, s, holds).Status)
}

// Who does not know the server's time joins a small pool at once, and a large one with a second request.
func TestAJoinOfALargePoolExpiresToo(t *testing.T) {
	srv := testenv.Redis(t)
	full := New(client(t, ClientOptions(srv.Addr())))
	for i := range 64 {
		granted(t, full, request("p", fmt.Sprint("member ", i), 1, 1))
	}
	for pool, want := range map[string]int64{"p": 2, "small": 1} {
		s := New(client(t, ClientOptions(srv.Addr())))
		run := commands(t, srv)["evalsha"]
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		answer, err := s.Sync(ctx, request(pool, "newcomer", 1, 1))
		cancel()
		require.NoError(t, err)
		require.Equal(t, driver.Granted, answer.Status)
		require.Equal(t, run+want, commands(t, srv)["evalsha"], pool)
	}
}

// A clock that was set does not keep a processor from its store.
func TestAServerClockThatWasSet(t *testing.T) {
	s := New(client(t, ClientOptions(testenv.Redis(t).Addr())))
	answer := granted(t, s, request("p", "a", 1, 1))
	for n, off := range []time.Duration{-time.Hour, time.Hour, -time.Hour} {
		now := time.Since(s.base)
		c := &s.clocks[groupOf("p")]
		c.offset, c.at = time.Duration(answer.Wall)*time.Microsecond-now+off, now
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		got, err := s.Sync(ctx, request("p", "a", uint64(n)+2, 1))
		cancel()
		require.NoError(t, err)
		require.Equal(t, driver.Granted, got.Status)
	}
}

// The estimate is never too early, and as early as the quickest answer allows.
func TestServerClock(t *testing.T) {
	const ahead = 1000 * time.Second // of the server's clock
	var c serverClock
	require.Zero(t, c.expires(time.Second), "nothing is known")
	answered := func(sent, took time.Duration) { c.observe((sent + took + ahead).Microseconds(), sent) }
	early := func(at time.Duration) time.Duration {
		return time.Duration(c.expires(at))*time.Microsecond - at - ahead
	}
	answered(0, 300*time.Millisecond)
	require.Equal(t, 300*time.Millisecond, early(0))
	answered(time.Second, 2*time.Millisecond)
	require.Equal(t, 2*time.Millisecond, early(time.Second))
	answered(2*time.Second, 900*time.Millisecond)
	require.Equal(t, 3*time.Millisecond, early(2*time.Second), "it ages by a thousandth")
	answered(100*time.Second, 20*time.Millisecond)
	require.Equal(t, 20*time.Millisecond, early(100*time.Second))
	late := (200*time.Second + 900*time.Millisecond + ahead).Microseconds()
	require.False(t, c.learn(late, 200*time.Second, 201*time.Second), "the server was late")
	require.Equal(t, 120*time.Millisecond, early(200*time.Second))
	require.True(t, c.learn(late, 200*time.Second, 200*time.Second+700*time.Millisecond), "its clock was set ahead")
	require.Equal(t, 900*time.Millisecond, early(200*time.Second))
}

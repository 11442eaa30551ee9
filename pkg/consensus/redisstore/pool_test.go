package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// request returns the n-th request of a processor that takes every answer. The
// nonces do not fit a double.
func request(pool, id string, n uint64, wanted driver.Share) driver.Request {
	const nonce = 1<<63 + 1
	req := driver.Request{
		Pool: pool, ID: id, Incarnation: "1", Seq: n, Nonce: nonce + n, LastSeq: n - 1, Lease: longest,
		Report: driver.Report{Wanted: wanted, Demand: wanted, PoolSize: 1},
	}
	if n > 1 {
		req.LastNonce, req.LastTime = req.Nonce-1, time.Now().UnixMicro()
	}
	return req
}

// leaving returns the leave of the same processor, as its n-th request.
func leaving(pool, id string, n uint64) driver.Leave {
	last := request(pool, id, n, 0)
	return driver.Leave{Pool: pool, ID: id, Incarnation: last.Incarnation, Seq: n, LastSeq: last.LastSeq, LastNonce: last.LastNonce}
}

// granted makes a sync that must be granted.
func granted(t testing.TB, s *Store, req driver.Request) driver.Answer {
	t.Helper()
	answer, err := s.Sync(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, driver.Granted, answer.Status)
	return answer
}

// mates returns a function that names ever new pools of one group.
func mates(s *Store) func() string {
	_, group := s.keys("pool 0")
	n := 0
	return func() string {
		for {
			n++
			name := fmt.Sprint("pool ", n)
			if _, marker := s.keys(name); marker == group {
				return name
			}
		}
	}
}

// fresh tells why a new pool is frozen.
func fresh(t testing.TB, s *Store, pool string) driver.FreezeCause {
	t.Helper()
	return granted(t, s, request(pool, "a", 1, 1)).FrozenBy
}

// waitTrusted returns once a new pool of the group is not frozen.
func waitTrusted(t testing.TB, s *Store, next func() string) {
	t.Helper()
	waitFor(t, "new pools are known as such", func() bool { return fresh(t, s, next()) == driver.FreezeNone })
}

// everything returns all that the server holds.
func everything(t testing.TB, c redis.UniversalClient) map[string]string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	dumps := map[string]string{}
	for _, key := range keys {
		if dumps[key], err = c.Dump(t.Context(), key).Result(); err != nil {
			require.ErrorIs(t, err, redis.Nil)
		}
	}
	return dumps
}

// waitFor polls until something has happened.
func waitFor(t testing.TB, what string, happened func() bool) {
	t.Helper()
	limit := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !happened() {
		require.True(t, time.Now().Before(limit), "did not happen: %s", what)
		<-tick.C
	}
}

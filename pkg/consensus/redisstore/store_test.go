package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

func client(t testing.TB, addrs ...string) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(ClientOptions(addrs...))
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func request(id string, seq uint64) consensus.Request {
	return consensus.Request{Pool: "p", ID: id, Incarnation: "i", Seq: seq, Nonce: 1<<63 + seq, Lease: 10 * time.Second,
		Tags: []consensus.TagReport{{Wanted: consensus.Whole, PoolSize: 1}}}
}

func TestQuick(t *testing.T) {
	srv := testenv.Redis(t)
	s := New(client(t, srv.Addr()))
	a, err := s.Sync(context.Background(), request("a", 1))
	require.NoError(t, err)
	t.Logf("%+v", a)
	a, err = s.Sync(context.Background(), request("a", 1))
	require.NoError(t, err)
	t.Logf("%+v", a)
	require.NoError(t, s.Leave(context.Background(), consensus.Leave{Pool: "p", ID: "a", Incarnation: "i", Seq: 2}))
	c := client(t, srv.Addr())
	t.Log(c.Keys(context.Background(), "*").Val())
	t.Logf("%q", c.HGetAll(context.Background(), c.Keys(context.Background(), "*pool*").Val()[0]).Val())
	t.Logf("%q", c.Get(context.Background(), c.Keys(context.Background(), "*marker*").Val()[0]).Val())
}

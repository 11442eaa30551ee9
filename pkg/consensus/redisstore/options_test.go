package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func TestFaultyOptions(t *testing.T) {
	c := client(t, ClientOptions("127.0.0.1:1"))
	for name, test := range map[string]struct {
		store *Store
		field string
	}{
		"no client":              {New(nil), "client"},
		"no prefix":              {New(c, WithPrefix("")), "WithPrefix"},
		"prefix with a hash tag": {New(c, WithPrefix("{a}")), "WithPrefix"},
		"closing brace":          {New(c, WithPrefix("}")), "WithPrefix"},
		"long prefix":            {New(c, WithPrefix(strings.Repeat("p", 129))), "WithPrefix"},
		"no logger":              {New(c, WithLogger(nil)), "WithLogger"},
		"no lease":               {New(c, WithLongestLease(0)), "WithLongestLease"},
		"negative lease":         {New(c, WithLongestLease(-time.Second)), "WithLongestLease"},
		"lease beyond all":       {New(c, WithLongestLease(driver.MaxLease+time.Millisecond)), "WithLongestLease"},
		"lease of microseconds":  {New(c, WithLongestLease(time.Second+time.Microsecond)), "WithLongestLease"},
		"the first of several":   {New(c, WithPrefix("{"), WithLogger(nil)), "WithPrefix"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.store.Sync(t.Context(), request("p", "a", 1, 1))
			for _, err := range []error{err, test.store.Leave(t.Context(), leaving("p", "a", 1))} {
				var bad *driver.RequestError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, test.field, bad.Field)
				require.NotEmpty(t, bad.Value)
				require.NotEmpty(t, bad.Allowed)
			}
			require.NoError(t, test.store.Close())
		})
	}
}

func TestWithPrefix(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s, other := New(c), New(c, WithPrefix("team a"))
	granted(t, s, request("p", "a", 1, 1))
	require.Equal(t, 1, granted(t, other, request("p", "b", 1, 1)).Live)
	for key := range everything(t, c) {
		require.Regexp(t, `^\{(numathrottle|team a):1\}:(pool:p|marker)$`, key)
	}
	require.Len(t, everything(t, c), 4)
}

func TestWithLongestLease(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c, WithLongestLease(longest))
	req := request("p", "a", 1, 1)
	require.InDelta(t, wire.Removal(longest), granted(t, s, req).Frozen, 0)

	req = request("p", "b", 1, 1)
	req.Lease = longest + time.Millisecond
	requireRefused := func() {
		t.Helper()
		_, err := s.Sync(t.Context(), req)
		var bad *driver.RequestError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "Lease", bad.Field)
	}
	requireRefused()
	require.Equal(t, 2, granted(t, s, request("p", "c", 1, 1)).Live, "what is refused is not recorded")

	// Another store of the pool allows more.
	req = request("q", "a", 1, 1)
	req.Lease = 2 * longest
	granted(t, New(c), req)
	req = request("q", "b", 1, 1)
	requireRefused()
}

func TestGroups(t *testing.T) {
	s := New(nil)
	used := map[string]bool{}
	for i := range 1000 {
		pool, marker := s.keys(strings.Repeat("x", i))
		tag, _, _ := strings.Cut(marker, "}")
		require.True(t, strings.HasPrefix(pool, tag+"}:pool:"), pool)
		used[tag] = true
	}
	require.Len(t, used, groups)
	// Names of keys are part of the format: processors of all releases share them.
	pool, marker := s.keys("default/pipeline/vertex")
	require.Equal(t, "{numathrottle:4}:pool:default/pipeline/vertex", pool)
	require.Equal(t, "{numathrottle:4}:marker", marker)
}

func TestClientOptions(t *testing.T) {
	opts := ClientOptions("a:1", "b:2")
	require.Equal(t, []string{"a:1", "b:2"}, opts.Addrs)
	simple := redis.NewClient(opts.Simple()).Options()
	require.Zero(t, simple.MaxRetries)
	require.True(t, simple.ContextTimeoutEnabled)
	for _, timeout := range []time.Duration{simple.DialTimeout, simple.ReadTimeout, simple.WriteTimeout, simple.PoolTimeout} {
		require.Equal(t, 500*time.Millisecond, timeout)
	}
}

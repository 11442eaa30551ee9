package numathrottle

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// closedPort returns an address on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// silentPort returns an address that takes connections and never says anything.
func silentPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// remoteStores is a URL for every scheme with hosts; HOST stands for the address.
var remoteStores = []string{
	"redis://:" + canary + "@HOST/1", "rediss://:" + canary + "@HOST", "redis+sentinel://:" + canary + "@HOST/m",
	"rediss+sentinel://u:" + canary + "@HOST/m", "redis+cluster://:" + canary + "@HOST,HOST", "rediss+cluster://:" + canary + "@HOST",
	"nats://" + canary + "@HOST,HOST", "tls://u:" + canary + "@HOST",
}

// schemeOf names a test after the scheme.
func schemeOf(store string) string {
	scheme, _, _ := strings.Cut(store, ":")
	return scheme
}

func TestOpenDoesNotWaitForTheStore(t *testing.T) {
	for _, server := range []struct {
		name string
		addr func(*testing.T) string
		says string
	}{
		{"refuses", closedPort, "connection refused"},
		{"is silent", silentPort, ""},
	} {
		for _, store := range remoteStores {
			t.Run(server.name+"/"+schemeOf(store), func(t *testing.T) {
				t.Parallel()
				var logs logBook
				c := Config{
					Limit: throttle.Limit{Max: 1_000_000}, Pool: "p", ID: "i", Logger: logs.logger(),
					Store: strings.ReplaceAll(store, "HOST", server.addr(t)), StoreSentinelPassword: sentinelPassword(store),
				}
				began := time.Now()
				th, err := Open(t.Context(), c)
				require.NoError(t, err)
				require.Less(t, time.Since(began), time.Second, "Open waited")

				require.False(t, grants(th)())
				require.Equal(t, throttle.ReasonNoShare, reason(th))
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err = th.Acquire(ctx, 1)
				require.ErrorIs(t, err, throttle.ErrThrottled)
				require.ErrorContains(t, err, "no_share")

				// A line at once, and no more than one in five seconds.
				eventually(t, func() bool { return strings.Contains(logs.String(), "does not answer") }, "a line in the log")
				eventually(t, func() bool { return strings.Count(logs.String(), "does not answer") == 2 }, "a second line")
				require.GreaterOrEqual(t, time.Since(began), 5*time.Second)
				require.Contains(t, logs.String(), server.says)
				require.False(t, grants(th)())

				began = time.Now()
				err = th.Close()
				require.Less(t, time.Since(began), 8*time.Second, "Close did not end in time")
				require.Equal(t, throttle.ReasonClosed, reason(th))
				require.Error(t, err, "nobody was told")
				require.NotContains(t, err.Error()+logs.String(), canary)
			})
		}
	}
}

func sentinelPassword(store string) Secret {
	if strings.Contains(store, "sentinel") {
		return NewSecret(canary)
	}
	return Secret{}
}

func TestFailFastSaysWhy(t *testing.T) {
	for _, store := range remoteStores {
		t.Run(schemeOf(store), func(t *testing.T) {
			t.Parallel()
			c := Config{
				Limit: throttle.Limit{Max: 1}, Pool: "p", FailFast: true, Logger: quiet(),
				Store: strings.ReplaceAll(store, "HOST", closedPort(t)), StoreSentinelPassword: sentinelPassword(store),
			}
			began := time.Now()
			_, err := Open(t.Context(), c)
			require.Error(t, err)
			require.Less(t, time.Since(began), 5*time.Second)
			require.NotContains(t, err.Error(), canary)
			require.Contains(t, err.Error(), "numathrottle: store "+schemeOf(store)+"://***@127.0.0.1:")
			require.Contains(t, err.Error(), `first sync of pool "p"`)
			if strings.HasPrefix(store, "redis") {
				require.ErrorContains(t, err, "connection refused")
			} else {
				require.ErrorContains(t, err, "not connected to NATS")
			}
		})
	}
}

func TestFailFastEndsWithItsContext(t *testing.T) {
	for _, store := range remoteStores {
		t.Run(schemeOf(store), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := Open(ctx, Config{
				Limit: throttle.Limit{Max: 1}, Pool: "p", FailFast: true, Logger: quiet(),
				Store: strings.ReplaceAll(store, "HOST", silentPort(t)), StoreSentinelPassword: sentinelPassword(store),
			})
			require.Error(t, err)
			require.NotContains(t, err.Error(), canary)
			require.Less(t, time.Since(began), 4*time.Second)
		})
	}
}

package opening

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// refusingPort returns an address on which nothing listens until the test ends.
func refusingPort(t *testing.T) string {
	t.Helper()
	// Taken and not listened at, so that nobody else can have the port meanwhile.
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	require.NoError(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(socket)
	require.NoError(t, err)
	inet, ok := name.(*syscall.SockaddrInet4)
	require.True(t, ok)
	return fmt.Sprintf("127.0.0.1:%d", inet.Port)
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

// An unreachable is a Throttle whose store cannot be reached.
type unreachable struct {
	name string // of the case
	says string // what the log says of the store: a regular expression
	th   *throttle.Throttle
	logs testkit.Book
}

// openUnreachable opens a Throttle on every store with hosts: on ports on which
// nothing listens, and on ports that are silent.
func openUnreachable(t *testing.T) []*unreachable {
	t.Helper()
	var all []*unreachable
	for _, store := range remoteStores {
		for _, u := range []*unreachable{{name: "closed", says: "connection refused|no servers available"}, {name: "silent"}} {
			addr := refusingPort(t)
			if u.name == "silent" {
				addr = silentPort(t)
			}
			u.name += " " + schemeOf(store)
			began := time.Now()
			th, err := Open(t.Context(), Config{
				Limit: throttle.Limit{Max: 1_000_000}, Pool: "p", ID: "i", Logger: u.logs.Logger(),
				Store: strings.ReplaceAll(store, "HOST", addr), StoreSentinelPassword: sentinelPassword(store),
			})
			require.NoError(t, err, u.name)
			require.Less(t, time.Since(began), time.Second, "%s: Open waited", u.name)
			u.th = th
			all = append(all, u)
		}
	}
	return all
}

// TestOpenDoesNotWaitForTheStore has all stores wait at the same time.
func TestOpenDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	const line = "syncs with the pool's store fail"
	all := openUnreachable(t)
	for _, u := range all {
		require.False(t, grants(u.th)(), u.name)
		require.Equal(t, throttle.ReasonNoShare, reason(u.th), u.name)
		// Long enough that it does not end before it is waited for, on a busy machine: that would be no wait for a token.
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := u.th.Acquire(ctx, 1)
		cancel()
		require.ErrorIs(t, err, throttle.ErrThrottled, u.name)
		require.ErrorContains(t, err, "no_share", u.name)
	}
	// A line at once, with what it means, and no other one soon after.
	for _, u := range all {
		eventually(t, func() bool { return strings.Contains(u.logs.String(), line) }, u.name+": a line in the log")
	}
	for _, u := range all {
		require.Equal(t, 1, strings.Count(u.logs.String(), line), u.logs.String())
		require.Regexp(t, u.says, u.logs.String(), u.name)
		require.Contains(t, u.logs.String(), "nothing is granted until the store answers for the first time", u.name)
		require.False(t, grants(u.th)(), u.name)
	}

	began := time.Now()
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, u := range all {
		closing.Go(func() { errs[i] = u.th.Close() })
	}
	closing.Wait()
	require.Less(t, time.Since(began), 8*time.Second, "Close did not end in time")
	for i, u := range all {
		require.ErrorContains(t, errs[i], `leaving pool "p"`, u.name)
		require.Equal(t, throttle.ReasonClosed, reason(u.th), u.name)
		require.NotContains(t, errs[i].Error()+u.logs.String(), canary, u.name)
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
				Store: strings.ReplaceAll(store, "HOST", testenv.ClosedPort(t)), StoreSentinelPassword: sentinelPassword(store),
			}
			began := time.Now()
			_, err := Open(t.Context(), c)
			require.Error(t, err)
			require.Less(t, time.Since(began), 5*time.Second)
			require.NotContains(t, err.Error(), canary)
			require.Contains(t, err.Error(), "numathrottle: store "+schemeOf(store)+"://***@127.0.0.1:")
			require.Regexp(t, `: (nothing listens|no server answers) at .*: start the store there, or correct NUMATHROTTLE_STORE: `, err.Error())
			if strings.HasPrefix(store, "redis") {
				require.ErrorContains(t, err, "connection refused")
			} else {
				require.ErrorContains(t, err, "not connected to NATS")
				// The client may be between two attempts, and tells of the last one then.
				require.Regexp(t, "no servers available for connection|the last attempt to connect: .*connection refused", err.Error())
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

package natsstore

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A silentDialer connects until it is told to be silent. Then it waits, and with it whoever needs the client's lock.
type silentDialer struct {
	silent atomic.Bool
	waits  chan struct{} // gets a value when it begins to wait
	end    chan struct{}
}

func (d *silentDialer) Dial(network, address string) (net.Conn, error) {
	if d.silent.Load() {
		select {
		case d.waits <- struct{}{}:
		default:
		}
		<-d.end
	}
	return new(net.Dialer).Dial(network, address)
}

// TestCallsEndWithTheirContext: a client that looks for a server, and does not find one for ever, holds no call. A call
// that waits for the client does not return before the dialer does, which is after all of them.
func TestCallsEndWithTheirContext(t *testing.T) {
	server := testenv.NATS(t)
	d := &silentDialer{waits: make(chan struct{}, 1), end: make(chan struct{})}
	nc := connect(t, server.URL()+",nats://127.0.0.1:1", nats.SetCustomDialer(d), nats.DontRandomize())
	t.Cleanup(func() { close(d.end) }) // before the connection is closed, which waits, too
	s, err := New(nc, WithLongestLease(quick))
	require.NoError(t, err)
	mustSync(t, s, request("p", "a", 1))
	d.silent.Store(true)
	go func() { _ = nc.ForceReconnect() }()
	<-d.waits

	calls := map[string]func(ctx context.Context) error{
		"Sync": func(ctx context.Context) error { _, err := s.Sync(ctx, request("p", "a", 2)); return err },
		"Leave": func(ctx context.Context) error {
			return s.Leave(ctx, driver.Leave{Pool: "p", ID: "a", Incarnation: "i", Seq: 3})
		},
		"Load": func(ctx context.Context) error { _, _, err := s.Load(ctx, "p"); return err },
		"Push": func(ctx context.Context) error { return s.Push(ctx, "p", []byte("news")) },
	}
	for began := time.Now(); time.Since(began) < 2*stranded; { // until a second connection is wanted, too
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), callTimeout+100*time.Millisecond) // a request may end before
			ended := make(chan error, 1)
			go func() { ended <- call(ctx) }()
			select {
			case err := <-ended:
				require.Error(t, err, name)
			case <-time.After(patience):
				require.Fail(t, "the call waits for the client", name)
			}
			cancel()
		}
	}
}

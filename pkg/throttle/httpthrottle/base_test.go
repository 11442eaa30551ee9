package httpthrottle_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A connection that dies without a word is given up after one timeout, and the calls after that have a new one.
func TestDeadConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served sync.WaitGroup
		dialled := 0
		base := httpthrottle.NewBase()
		base.Protocols = &http.Protocols{}
		base.Protocols.SetUnencryptedHTTP2(true)
		base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			dialled++
			dies := dialled == 1
			s := &hostile{act: func(n int) deed {
				if dies && n > 1 {
					return die
				}
				return serveIt
			}}
			out := queued{theirs, make(chan []byte, 100)}
			served.Go(func() {
				for frame := range out.frames {
					_, _ = theirs.Write(frame)
				}
			})
			served.Go(func() {
				defer theirs.Close()
				defer close(out.frames)
				(&frames{hostile: s, conn: out}).serve()
			})
			return ours, nil
		}
		l := throttletest.New()
		tr := httpthrottle.NewTransport(base, l)
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return exchange(tr, request(t, http.MethodGet, "").WithContext(ctx))
		}
		require.NoError(t, get())
		synctest.Wait() // net/http takes the connection back meanwhile
		started := time.Now()
		var calls sync.WaitGroup
		for range 10 { // all into the dead connection
			calls.Go(func() { require.Error(t, get()) })
			time.Sleep(time.Second)
		}
		calls.Wait()
		require.Equal(t, 15*time.Second, time.Since(started))
		for range 10 {
			require.NoError(t, get())
			synctest.Wait()
		}
		require.Equal(t, 2, dialled)
		require.Len(t, l.Draws(), 21)
		base.CloseIdleConnections()
		served.Wait()
	})
}

// A queued connection does not wait for its reader.
type queued struct {
	net.Conn

	frames chan []byte
}

func (q queued) Write(p []byte) (int, error) {
	q.frames <- p
	return len(p), nil
}

// silence reads what comes, and says nothing.
func silence(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func TestPingTime(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0: 15 * time.Second, time.Second: time.Second,
		2 * time.Second: time.Second, 8 * time.Second: 2 * time.Second, 30 * time.Second: 7500 * time.Millisecond, time.Hour: 15 * time.Second,
	} {
		require.Equal(t, want, httpthrottle.PingTime(timeout))
	}
}

// A transport without a base notices dead connections, too. One that the user has put in the place of net/http's stays.
func TestBaseOfTransportsWithoutOne(t *testing.T) {
	base, ok := httpthrottle.SharedBase().(*http.Transport)
	require.True(t, ok)
	require.NotNil(t, base.HTTP2)
	require.Positive(t, base.HTTP2.SendPingTimeout)
	require.Positive(t, base.HTTP2.PingTimeout)
	require.Same(t, base, httpthrottle.SharedBase(), "connections are shared")
	require.NotSame(t, http.DefaultTransport, base)

	before := http.DefaultTransport
	other := base.Clone()
	http.DefaultTransport = other
	require.NotSame(t, base, httpthrottle.SharedBase(), "another default transport has a base of its own")
	require.NotSame(t, other, httpthrottle.SharedBase())
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = httpthrottle.NewTransport(base, nil)
	require.Equal(t, http.DefaultTransport, httpthrottle.SharedBase())
}

package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds what should happen at once; quiet is how long something must not happen.
const (
	patience = 10 * time.Second
	quiet    = 150 * time.Millisecond
)

// A target is a server whose connections the test holds.
type target struct {
	listener net.Listener
	conns    chan net.Conn
}

func newTarget(t *testing.T) *target {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	s := &target{listener: l, conns: make(chan net.Conn, 16)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns <- conn
		}
	}()
	return s
}

// accepted returns the server's end of the next connection.
func (s *target) accepted(t *testing.T) net.Conn {
	t.Helper()
	select {
	case conn := <-s.conns:
		t.Cleanup(func() { conn.Close() })
		return conn
	case <-time.After(patience):
		require.FailNow(t, "the target got no connection")
		return nil
	}
}

func start(t *testing.T, target string) *Proxy {
	t.Helper()
	p, err := Start(t.Context(), target)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp4", p.Addr(), patience)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// pair returns both ends of a connection through the proxy.
func pair(t *testing.T) (p *Proxy, client, server net.Conn) {
	t.Helper()
	s := newTarget(t)
	p = start(t, s.listener.Addr().String())
	client = dial(t, p)
	return p, client, s.accepted(t)
}

// send writes, receive reads exactly what is expected, and nothingComes waits in vain.
func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := conn.Write([]byte(text))
	require.NoError(t, err)
}

func receive(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	got := make([]byte, len(text))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

func nothingComes(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(quiet)))
	n, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Zero(t, n)
}

func isReset(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// What one side sends before it ends its direction arrives, and the other direction stays open.
func TestHalfClose(t *testing.T) {
	p, client, server := pair(t)
	send(t, client, "last words")
	closeWrite(client)
	receive(t, server, "last words")
	_, err := server.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	send(t, server, "answer")
	receive(t, client, "answer")
	require.NoError(t, server.Close())
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Eventually(t, func() bool { return p.Connections() == 0 }, patience, time.Millisecond)
}

func TestDelayEachWay(t *testing.T) {
	const late = 120 * time.Millisecond
	for _, test := range []struct {
		name       string
		up, down   time.Duration
		least, all time.Duration // until the target has it, until the answer is back
	}{
		{"up", late, 0, late, late},
		{"down", 0, late, 0, late},
		{"both", late, late, late, 2 * late},
		{"none", 0, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, client, server := pair(t)
			p.Delay(test.up, test.down)
			began := time.Now()
			send(t, client, "ping")
			receive(t, server, "ping")
			require.GreaterOrEqual(t, time.Since(began), test.least)
			send(t, server, "pong")
			receive(t, client, "pong")
			require.GreaterOrEqual(t, time.Since(began), test.all)
		})
	}
}

// A shorter delay holds at once for what is on its way, and keeps the order.
func TestHealEndsADelay(t *testing.T) {
	p, client, server := pair(t)
	p.Delay(time.Hour, 0)
	send(t, client, "one")
	nothingComes(t, server)
	require.NoError(t, p.Heal())
	send(t, client, "two")
	receive(t, server, "onetwo")
}

func TestSwallowEachWay(t *testing.T) {
	for _, test := range []struct {
		name     string
		up, down bool
	}{{"up", true, false}, {"down", false, true}, {"both", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			p, client, server := pair(t)
			p.Swallow(test.up, test.down)
			for _, way := range []struct {
				swallowed bool
				from, to  net.Conn
			}{{test.up, client, server}, {test.down, server, client}} {
				send(t, way.from, "late?")
				if !way.swallowed {
					receive(t, way.to, "late?")
					continue
				}
				nothingComes(t, way.to)
			}
			require.Equal(t, 1, p.Connections())
			require.NoError(t, p.Heal())
			if test.up {
				receive(t, server, "late?")
			}
			if test.down {
				receive(t, client, "late?")
			}
		})
	}
}

// A connection made while packets up are swallowed is accepted, and reaches the target when that ends; so does the
// end of a connection.
func TestSwallowKeepsConnectionsAndTheirEndBack(t *testing.T) {
	s := newTarget(t)
	p := start(t, s.listener.Addr().String())
	p.Swallow(true, true)
	client := dial(t, p)
	send(t, client, "hello")
	require.NoError(t, client.Close())
	select {
	case <-s.conns:
		require.Fail(t, "the connection got through")
	case <-time.After(quiet):
	}
	require.NoError(t, p.Heal())
	server := s.accepted(t)
	receive(t, server, "hello")
	_, err := server.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestCutAndHeal(t *testing.T) {
	s := newTarget(t)
	p := start(t, s.listener.Addr().String())
	client := dial(t, p)
	server := s.accepted(t)
	p.Swallow(true, false)
	send(t, client, "lost")

	p.Cut()
	p.Cut() // changes nothing
	isReset(t, client)
	isReset(t, server)
	require.Eventually(t, func() bool { return p.Connections() == 0 }, patience, time.Millisecond)
	_, err := net.DialTimeout("tcp4", p.Addr(), patience)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	require.NoError(t, p.Heal())
	require.NoError(t, p.Heal()) // changes nothing
	client = dial(t, p)
	send(t, client, "new")
	receive(t, s.accepted(t), "new")
}

// Close ends what is open, waits and hangs, and frees the port.
func TestClose(t *testing.T) {
	s := newTarget(t)
	p, err := Start(t.Context(), s.listener.Addr().String())
	require.NoError(t, err)
	plain := dial(t, p)
	s.accepted(t)
	p.Swallow(true, true)
	waiting := dial(t, p)
	send(t, plain, "swallowed")
	require.Eventually(t, func() bool { return p.Connections() == 2 }, patience, time.Millisecond)

	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	isReset(t, plain)
	isReset(t, waiting)
	require.Zero(t, p.Connections())
	require.NoError(t, p.Heal()) // after Close nothing comes back
	_, err = net.DialTimeout("tcp4", p.Addr(), patience)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	hold, err := net.ListenPacket("udp4", p.Addr())
	require.NoError(t, err)
	require.NoError(t, hold.Close())
}

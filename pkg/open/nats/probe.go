package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/drivers"
)

// probeTimeout bounds a probe. It is shorter than explain waits for it.
const probeTimeout = 300 * time.Millisecond

// theServer finds the address of the server in an error of the client.
var theServer = regexp.MustCompile(`->([0-9A-Za-z.:\[\]%-]+:[0-9]+): `)

// probed adds to the error of a server that sent no greeting what the server is. One that waits for TLS, one of Redis and a stopped one are
// all silent.
func probed(err error, handshakeFirst bool) error {
	at := theServer.FindStringSubmatch(fmt.Sprint(err))
	if at == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	found := make(chan error, 2)
	ask := func(is bool, of func(net.Conn) bool, what error) {
		go func() {
			if is && talks(at[1], of) {
				found <- what
				return
			}
			found <- nil
		}()
	}
	ask(true, isRedis, drivers.ErrRedis)
	ask(!handshakeFirst, greetsOverTLS, drivers.ErrHandshakeFirst)
	for range cap(found) {
		if what := <-found; what != nil {
			return fmt.Errorf("%w: %w", what, err)
		}
	}
	return err
}

// talks connects to a server and returns what of says about it.
func talks(addr string, of func(net.Conn) bool) bool {
	conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(probeTimeout)) // fails only on a closed connection
	return of(conn)
}

// isRedis reports whether the answer to a PING without a login is one of Redis.
func isRedis(conn net.Conn) bool {
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	answer := make([]byte, 64)
	n, _ := conn.Read(answer)
	return regexp.MustCompile(`^(\+PONG|-[A-Z]+ )`).Match(answer[:n])
}

// greetsOverTLS reports whether a server begins a TLS handshake that comes first. It ends there, so that the server's certificate need not
// be checked.
func greetsOverTLS(conn net.Conn) (seen bool) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	_ = tls.Client(conn, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // only that a certificate comes counts, and nothing is sent
		VerifyConnection:   func(tls.ConnectionState) error { seen = true; return errors.New("seen") },
	}).HandshakeContext(ctx)
	return seen
}

package httpthrottle_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A hostile server does with each request what act says, and knows when each came. It speaks HTTP/1.1 and, by
// frames written by hand, HTTP/2.
type hostile struct {
	// act is called for each request, from 1, when its head has come.
	act func(n int) deed

	listener net.Listener
	scheme   string

	mu   sync.Mutex
	seen []time.Time
	read int // bytes of bodies, over HTTP/2
	open map[net.Conn]bool
}

// A deed is what a hostile server does with a request.
type deed int

const (
	serveIt     deed = iota
	serveSlowly      // the answer comes in two parts
	serveEarly       // before the body was read
	hint             // 103 before the answer
	askFor           // 100 before the body is read; HTTP/2: as hint
	end              // the connection ends
	reset            // it is reset
	garbage          // what comes is no answer
	refuseIt         // REFUSED_STREAM; HTTP/1.1: as end
	hintRefuse       // 103, then as refuseIt
	goAway           // GOAWAY that leaves this stream out; HTTP/1.1: as end
	protocol         // PROTOCOL_ERROR; HTTP/1.1: as garbage
	deeds
	die        // the connection says nothing any more; HTTP/2 only
	serveEmpty // an answer without a body, before the request's body was read; HTTP/2 only
)

// The ways to speak to a hostile server.
const (
	h1    = "HTTP/1.1"
	h1TLS = "HTTP/1.1 over TLS"
	h2    = "HTTP/2"
	h2c   = "HTTP/2 without TLS"
)

var ways = []string{h1, h1TLS, h2, h2c}

// serveHostile starts a hostile server, and returns a transport that speaks to it.
func serveHostile(t *testing.T, way string, act func(n int) deed) (*hostile, *http.Transport) {
	t.Helper()
	s := &hostile{act: act, scheme: "http", open: map[net.Conn]bool{}}
	var err error
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	base := &http.Transport{Protocols: &http.Protocols{}}
	base.Protocols.SetHTTP1(way == h1 || way == h1TLS)
	base.Protocols.SetHTTP2(way == h2)
	base.Protocols.SetUnencryptedHTTP2(way == h2c)
	if way == h1TLS || way == h2 {
		s.scheme = "https"
		certificate := httptest.NewUnstartedServer(nil)
		certificate.StartTLS()
		t.Cleanup(certificate.Close)
		base.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		base.TLSClientConfig.RootCAs.AddCert(certificate.Certificate())
		s.listener = tls.NewListener(s.listener, &tls.Config{
			Certificates: certificate.TLS.Certificates, NextProtos: map[bool][]string{true: {"h2"}, false: {"http/1.1"}}[way == h2],
		})
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[conn] = true
			s.mu.Unlock()
			served.Go(func() {
				defer s.close(conn)
				if way == h2 || way == h2c {
					(&frames{hostile: s, conn: conn}).serve()
					return
				}
				s.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		base.CloseIdleConnections()
		_ = s.listener.Close()
		s.mu.Lock()
		for conn := range s.open {
			_ = conn.Close()
		}
		s.mu.Unlock()
		served.Wait()
	})
	return s, base
}

// certify writes a certificate and its key for 127.0.0.1 into dir, and returns what a client needs to trust them.
func certify(t *testing.T, dir string) *tls.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, "key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return &tls.Config{RootCAs: roots}
}

func (s *hostile) url() string { return s.scheme + "://" + s.listener.Addr().String() }

func (s *hostile) close(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

// came notes a request.
func (s *hostile) came() deed {
	s.mu.Lock()
	s.seen = append(s.seen, time.Now())
	n := len(s.seen)
	s.mu.Unlock()
	return s.act(n)
}

// requests returns how many came.
func (s *hostile) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// linger makes Close reset a connection.
func linger(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// serve speaks HTTP/1.1.
func (s *hostile) serve(conn net.Conn) {
	reader := bufio.NewReader(conn)
	say := func(text string) { _, _ = io.WriteString(conn, text) }
	const fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
	for {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		d := s.came()
		if d == serveEarly {
			say(fine + "fine")
		}
		if d == askFor {
			say("HTTP/1.1 100 Continue\r\n\r\n")
		}
		if d != reset {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		switch d {
		case serveIt, askFor:
			say(fine + "fine")
		case serveSlowly:
			say(fine + "fi")
			time.Sleep(time.Millisecond)
			say("ne")
		case hint:
			say("HTTP/1.1 103 Early Hints\r\n\r\n" + fine + "fine")
		case serveEarly:
		case hintRefuse:
			say("HTTP/1.1 103 Early Hints\r\n\r\n")
			return
		case garbage, protocol:
			say("nonsense\r\n")
			return
		case reset:
			linger(conn)
			return
		default:
			return
		}
	}
}

// frames speaks HTTP/2, as far as it takes to count requests and to be hostile.
type frames struct {
	*hostile

	conn net.Conn
	last uint32          // the highest stream that was served
	due  map[uint32]deed // what is done at the end of a request
}

const (
	dataFrame, headersFrame, resetFrame, settingsFrame, pingFrame, goAwayFrame = 0, 1, 3, 4, 6, 7
	windowFrame                                                                = 8
	endStream, endHeaders, ack                                                 = 1, 4, 1
	refusedStream, protocolError                                               = 7, 1
)

// The status, as HPACK has it.
var (
	status200 = []byte{0x88}
	status103 = []byte{0x08, 3, '1', '0', '3'}
)

func (f *frames) write(kind, flags byte, stream uint32, payload []byte) {
	frame := make([]byte, 0, 9+len(payload))
	frame = append(frame, 0, 0, byte(len(payload)), kind, flags)
	frame = binary.BigEndian.AppendUint32(frame, stream)
	_, _ = f.conn.Write(append(frame, payload...))
}

func (f *frames) serve() {
	f.due = map[uint32]deed{}
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(f.conn, preface); err != nil {
		return
	}
	f.write(settingsFrame, 0, 0, nil)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(f.conn, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(f.conn, payload); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == settingsFrame && flags&ack == 0:
			f.write(settingsFrame, ack, 0, nil)
		case kind == pingFrame && flags&ack == 0:
			f.write(pingFrame, ack, 0, payload)
		case kind == dataFrame && len(payload) > 0:
			f.mu.Lock()
			f.read += len(payload)
			f.mu.Unlock()
			f.write(windowFrame, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(len(payload))))
		case kind == headersFrame:
			d := f.came()
			if !f.begin(stream, d) {
				return
			}
		}
		if (kind == headersFrame || kind == dataFrame) && flags&endStream != 0 {
			if d, ok := f.due[stream]; ok {
				delete(f.due, stream)
				f.answer(stream, d)
			}
		}
	}
}

// begin does what is done at the head of a request, and tells whether the connection goes on.
func (f *frames) begin(stream uint32, d deed) bool {
	switch d {
	case serveIt, serveSlowly, hint, askFor:
		f.due[stream] = d
		f.last = stream
	case serveEarly:
		f.last = stream
		f.answer(stream, d)
	case refuseIt, hintRefuse, protocol:
		if d == hintRefuse {
			f.write(headersFrame, endHeaders, stream, status103)
		}
		code := map[bool]uint32{true: protocolError, false: refusedStream}[d == protocol]
		f.write(resetFrame, 0, stream, binary.BigEndian.AppendUint32(nil, code))
	case goAway:
		f.write(goAwayFrame, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, f.last), 0))
		return false
	case garbage:
		_, _ = io.WriteString(f.conn, "this is no frame of HTTP/2")
		return false
	case reset:
		linger(f.conn)
		return false
	case serveEmpty:
		f.write(headersFrame, endHeaders|endStream, stream, status200)
	case die:
		silence(f.conn)
		return false
	default:
		return false
	}
	return true
}

func (f *frames) answer(stream uint32, d deed) {
	if d == hint || d == askFor {
		f.write(headersFrame, endHeaders, stream, status103)
	}
	f.write(headersFrame, endHeaders, stream, status200)
	if d == serveSlowly {
		f.write(dataFrame, 0, stream, []byte("fi"))
		time.Sleep(time.Millisecond)
		f.write(dataFrame, endStream, stream, []byte("ne"))
		return
	}
	f.write(dataFrame, endStream, stream, []byte("fine"))
}

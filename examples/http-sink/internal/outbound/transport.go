package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
)

// A Connection configures the connections.
type Connection struct {
	// Dial, TLS and Header bound the phases: connecting, the handshake, and the wait for the head of a response once the request is
	// written.
	Dial, TLS, Header time.Duration
	// Allow is the set of addresses that may be dialled.
	Allow dialguard.Addresses
	// Proxy is used for everything; nil for none. Its own address is not checked, and the addresses that it dials cannot be.
	Proxy *url.URL
	// CAFile contains, in PEM, the authorities that replace the system's. CertFile and KeyFile contain the client's certificate and key.
	// When one of the files has changed, new requests use new connections; while the files are unusable, the old ones stay.
	CAFile, CertFile, KeyFile string
	// Log is told while a changed file cannot be used. Nil is slog.Default().
	Log *slog.Logger
	// Idle is how many unused connections are kept per host.
	Idle int
	// PingAfter is how long an HTTP/2 connection may be silent before a ping. PingTimeout bounds the ping's response before the connection
	// is closed, with all its requests.
	PingAfter, PingTimeout time.Duration
}

// NewTransport returns a transport for c. The error says which file is at fault.
func NewTransport(c Connection) (http.RoundTripper, error) {
	c.Log = cmp.Or(c.Log, slog.Default())
	before := c.files()
	follow, err := config.Follow(c.transport)
	if err != nil {
		return nil, err
	}
	t := follow.Get(c.Log)
	if len(before) == 0 {
		return t, nil
	}
	return &reloading{connection: c, current: t, files: before, follow: follow}, nil
}

// transport reads the files and makes a transport.
func (c Connection) transport() (_ *http.Transport, err error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		if conf.RootCAs, err = config.Authorities("caFile", c.CAFile); err != nil {
			return nil, err
		}
	}
	if c.CertFile != "" {
		pair, err := config.Pair("certFile", c.CertFile, "keyFile", c.KeyFile)
		if err != nil {
			return nil, err
		}
		conf.Certificates = []tls.Certificate{*pair}
	}
	t := &http.Transport{
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    c.TLS,
		ResponseHeaderTimeout:  c.Header,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    c.Idle,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a response is bounded as it comes
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: c.PingAfter, PingTimeout: c.PingTimeout},
	}
	dialer := &net.Dialer{Timeout: c.Dial, KeepAliveConfig: aliveness}
	if c.Proxy != nil {
		t.Proxy = http.ProxyURL(c.Proxy) // only the proxy is dialled
	} else {
		dialer.Control = c.Allow.Control
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, &notSentError{err}
		}
		return conn, nil
	}
	return t, nil
}

// aliveness lets the system detect dead unused connections after 30 s. For connections in use the timeouts of an attempt are shorter.
var aliveness = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// files returns the current state of the files; nil for a missing file.
func (c Connection) files() []os.FileInfo {
	var infos []os.FileInfo
	for _, name := range []string{c.CAFile, c.CertFile, c.KeyFile} {
		if name != "" {
			info, _ := os.Stat(name)
			infos = append(infos, info)
		}
	}
	return infos
}

// A reloading transport is replaced when its files have changed.
type reloading struct {
	connection Connection
	follow     *config.Followed[*http.Transport]

	mu      sync.Mutex
	current *http.Transport
	files   []os.FileInfo
}

// RoundTrip implements http.RoundTripper.
func (r *reloading) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.transport().RoundTrip(req)
}

// CloseIdleConnections closes unused connections.
func (r *reloading) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.CloseIdleConnections()
}

func (r *reloading) transport() *http.Transport {
	r.mu.Lock()
	defer r.mu.Unlock()
	files := r.connection.files()
	if slices.EqualFunc(files, r.files, sameFile) {
		return r.current
	}
	// Unusable files are checked again with the next request: a certificate may come before its key.
	if t := r.follow.Get(r.connection.Log); t != r.current {
		r.current.CloseIdleConnections()
		r.current, r.files = t, files
	}
	return r.current
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// A notSentError means that there was no connection: the service has not seen the request.
type notSentError struct{ err error }

// Error implements error.
func (e *notSentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *notSentError) Unwrap() error { return e.err }

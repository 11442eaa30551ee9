package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// A Connection says how connections are made.
type Connection struct {
	// Dial, TLS and Header bound the phases: to connect, to shake hands, and to wait for
	// the head of an answer once the request is written.
	Dial, TLS, Header time.Duration
	// Allow is which addresses may be dialled.
	Allow Addresses
	// Proxy is used for everything; nil for none. Its own address is not checked, and the
	// addresses that it dials cannot be.
	Proxy *url.URL
	// CAFile holds, in PEM, the authorities that are trusted instead of the system's.
	// It is read once.
	CAFile string
	// CertFile and KeyFile are the client's certificate and key, in PEM. They are read anew
	// for every handshake that asks for them.
	CertFile, KeyFile string
	// Idle is how many unused connections are kept for each host.
	Idle int
}

// NewTransport returns a transport for c. The error says which file is at fault.
func NewTransport(c Connection) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("caFile cannot be read: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("caFile is %q, which holds no certificate in PEM", c.CAFile)
		}
	}
	if c.CertFile != "" {
		if _, err := loadPair(c.CertFile, c.KeyFile); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return loadPair(c.CertFile, c.KeyFile)
		}
	}
	checked := &net.Dialer{Timeout: c.Dial, KeepAlive: 30 * time.Second, Control: c.Allow.control}
	dial := checked.DialContext
	t := &http.Transport{
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    c.TLS,
		ResponseHeaderTimeout:  c.Header,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    c.Idle,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // an answer is bounded as it comes
	}
	if c.Proxy != nil {
		t.Proxy = http.ProxyURL(c.Proxy)
		plain := &net.Dialer{Timeout: c.Dial, KeepAlive: 30 * time.Second}
		dial = plain.DialContext // everything dialled is the proxy
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &notSentError{err}
		}
		return conn, nil
	}
	return t, nil
}

// A notSentError is why there was no connection: the service has not seen the request.
type notSentError struct{ err error }

// Error implements error.
func (e *notSentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *notSentError) Unwrap() error { return e.err }

// loadPair reads a certificate and its key. The error holds nothing of them.
func loadPair(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("certFile or keyFile cannot be read: %w", pathErr)
	}
	if err != nil {
		return nil, fmt.Errorf("certFile %q and keyFile %q are no pair in PEM", certFile, keyFile)
	}
	return &pair, nil
}

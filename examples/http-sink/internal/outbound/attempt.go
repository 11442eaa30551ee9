package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// An Attempt sends one request once. Its fields must not change afterwards.
type Attempt struct {
	// Base makes the connection.
	Base http.RoundTripper
	// Timeout bounds the attempt, including the body of its response.
	Timeout time.Duration
	// Login and Signer may be nil.
	Login  Login
	Signer RequestSigner
	// ID identifies a request for the Signer, and Body returns the part of it to sign.
	ID   func(*http.Request) string
	Body func(*http.Request) []byte
	// Sent receives a request as it is sent, logged in and signed; it may be nil.
	Sent func(*http.Request)
}

// A Failure is the body of a response with status 0, which represents an attempt without a response: the layers above treat it like any
// other.
type Failure struct {
	// Err is the cause.
	Err error
}

// Read implements io.Reader.
func (*Failure) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (*Failure) Close() error { return nil }

// Headers of a response that say how to treat it.
const (
	// NotSent: the service has not seen the request.
	NotSent = "Http-Sink-Not-Sent"
	// NoRetry: another attempt at once would be as futile.
	NoRetry = "Http-Sink-No-Retry"
	// Renewed: the login was refused, and another attempt has a new one.
	Renewed = "Http-Sink-Renewed"
)

// FailureOf returns the cause if a response has status 0, else nil.
func FailureOf(res *http.Response) error {
	body := res.Body
	for {
		switch b := body.(type) {
		case *Failure:
			return b.Err
		case interface{ Unwrap() io.ReadCloser }: // wrapped by a transport above
			body = b.Unwrap()
		default:
			return nil
		}
	}
}

func failure(req *http.Request, err error) *http.Response {
	h := http.Header{}
	open, notSent, noToken := (*OpenError)(nil), (*notSentError)(nil), (*TokenError)(nil)
	switch {
	case errors.As(err, &open), errors.Is(err, dialguard.ErrAddress), errors.As(err, &noToken):
		h.Set(NoRetry, "1")
	case errors.As(err, &notSent):
		h.Set(NotSent, "1")
	}
	return &http.Response{Header: h, Body: &Failure{err}, Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// ErrTimeout is the error of an attempt that took too long.
var ErrTimeout = errors.New("no answer in time (timeout)")

// RoundTrip implements http.RoundTripper. It returns an error only when the request's context
// has ended.
func (a *Attempt) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), a.Timeout, ErrTimeout)
	sent := req.Clone(ctx)
	if err := a.prepare(sent); err != nil {
		cancel()
		closeBody(req)
		return failure(req, &notSentError{err}), nil //nolint:nilerr // the answer holds it
	}
	if a.Sent != nil {
		a.Sent(sent)
	}
	res, err := a.Base.RoundTrip(sent)
	if err != nil {
		cause := context.Cause(ctx)
		cancel()
		// A transport above that stops a retry ends the context as well; the attempt failed nevertheless.
		if ended := context.Cause(req.Context()); ended != nil && !errors.Is(ended, httpthrottle.ErrUnanswered) {
			return nil, ended
		}
		if late, ok := errors.AsType[net.Error](err); errors.Is(cause, ErrTimeout) || ok && late.Timeout() {
			a.closeIdle()
		}
		return failure(req, explain(err, cause)), nil
	}
	for _, name := range []string{NotSent, NoRetry, Renewed} {
		res.Header.Del(name) // the service must not set it
	}
	if res.StatusCode == http.StatusUnauthorized && a.Login != nil && a.Login.Refused(sent.Header) {
		res.Header.Set(Renewed, "1")
	}
	res.Body = &ending{ReadCloser: res.Body, end: cancel}
	return res, nil
}

// prepare logs in and signs.
func (a *Attempt) prepare(req *http.Request) error {
	if a.Login != nil {
		if err := a.Login.Set(req.Header); err != nil {
			return err
		}
	}
	if a.Signer == nil {
		return nil
	}
	return a.Signer.sign(req, a.ID(req), a.Body(req), time.Now())
}

// closeIdle closes the unused connections. When one has been silent for too long, the others to the same service have often died with it,
// and would cost a request each.
func (a *Attempt) closeIdle() {
	if c, ok := a.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// explain returns the reason for a missing response, without details that differ between requests.
func explain(err, cause error) error {
	unsent := (*notSentError)(nil)
	isUnsent := errors.As(err, &unsent)
	var why error
	dns, authority, host, invalid := (*net.DNSError)(nil), x509.UnknownAuthorityError{}, x509.HostnameError{}, x509.CertificateInvalidError{}
	alert := tls.AlertError(0)
	timeout, isTimeout := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, dialguard.ErrAddress):
		return dialguard.ErrAddress
	case errors.Is(cause, ErrTimeout):
		why = ErrTimeout
	case errors.As(err, &dns):
		why = errors.New("the host's name cannot be resolved")
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		why = errors.New("the server's certificate is not valid")
	case errors.As(err, &alert):
		why = fmt.Errorf("the server ended the TLS handshake: %w", alert)
	case isTimeout && timeout.Timeout():
		why = errors.New("no answer in time (dialTimeout, tlsTimeout or headerTimeout)")
	case isUnsent:
		why = errors.New("cannot connect")
	default:
		why = errors.New("the connection broke off")
	}
	if isUnsent {
		return &notSentError{why}
	}
	return why
}

// An ending body calls end when it is closed.
type ending struct {
	io.ReadCloser

	end func()
}

// Close implements io.Closer.
func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

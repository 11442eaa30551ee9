package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// newTransport returns a transport to the provider, which sends through base; nil is one of its own. Each request draws from l, a limiter of
// limits, once. The caller retries refused or failed calls, for as long as the message may wait.
func newTransport(s *settings, limits *account.Limits, l throttle.Limiter, base http.RoundTripper, log *slog.Logger,
	more ...httpthrottle.Option,
) http.RoundTripper {
	opts := append(limits.Options(), []httpthrottle.Option{
		httpthrottle.WithMaxAttempts(1),
		httpthrottle.WithMaxWait(longestPause),
		httpthrottle.WithMaxPause(s.MaxPause),
		httpthrottle.WithLogger(log),
		httpthrottle.RefusalsAsErrors(),
	}...)
	if base == nil {
		// A dead connection is noticed before its first call has timed out.
		base = newBase(httpthrottle.PingTime(s.Timeout))
	}
	// The timeout covers only the attempt: it is below the throttle, which waits.
	base = &attempt{base: base, timeout: s.Timeout, login: s.login(), key: s.APIKey, longest: s.longestAnswer()}
	return httpthrottle.NewTransport(limits.Watch(base), l, append(opts, more...)...)
}

// newBase returns a transport for many calls to one host. Over HTTP/2 they share a connection. A silently dead one is noticed when it was
// silent for ping, and a ping is not answered for as long. While a model thinks the connection is silent, too, so pings are usual.
func newBase(ping time.Duration) http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 256
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: ping, PingTimeout: ping}
	return t
}

// longestPause bounds a call's wait within the transport for the end of a pause.
const longestPause = time.Hour

// errRedirected: a redirect could send prompts elsewhere.
var errRedirected = errors.New("the endpoint redirects, which is not followed; set baseURL to where it leads")

// A draw is the draw of one call, and its result. It is used by one goroutine.
type draw struct {
	tried bool      // it was passed to the network
	key   string    // the key it was sent with
	began time.Time // when it was passed on
}

type drawKey struct{}

// drawOf returns the draw of a call; an empty one if it has none.
func drawOf(ctx context.Context) *draw {
	if d, ok := ctx.Value(drawKey{}).(*draw); ok {
		return d
	}
	return &draw{}
}

// An attempt logs a request in, and bounds its duration.
type attempt struct {
	base    http.RoundTripper
	timeout time.Duration
	login   func(h http.Header, key string)
	key     program.Credential
	longest int64 // of a response, in bytes
}

// errTimeout is the error of an attempt that took too long.
var errTimeout = errors.New("the call took longer than the setting timeout allows")

// RoundTrip implements http.RoundTripper.
func (a *attempt) RoundTrip(req *http.Request) (*http.Response, error) {
	outer := req.Context()
	begun := begin(outer)
	key, err := a.key.ReadHeader() // reread each time: a changed Secret needs no restart
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("apiKey: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(begun, a.timeout, errTimeout)
	context.AfterFunc(outer, func() {
		if errors.Is(outer.Err(), context.Canceled) { // by the throttle; the end of maxWait does not concern a call that was sent
			cancel()
		}
	})
	req = req.Clone(ctx)
	if key != "" {
		a.login(req.Header, key)
	}
	d := drawOf(begun)
	d.tried, d.key, d.began = true, key, time.Now()
	res, err := a.base.RoundTrip(req)
	if err != nil {
		if errors.Is(context.Cause(ctx), errTimeout) {
			err = errTimeout
		}
		cancel()
		return nil, err
	}
	res.Body = &answerBody{ReadCloser: res.Body, ctx: ctx, end: cancel, left: a.longest}
	return res, nil
}

// maxAnswer bounds a response, in bytes, and maxVectors one of vectors: thousands of them have 20 bytes for each of thousands of numbers.
const (
	maxAnswer  = chat.MaxBody
	maxVectors = 256 << 20
)

// longestAnswer bounds a response, in bytes.
func (s *settings) longestAnswer() int64 {
	if s.embeds() {
		return maxVectors
	}
	return maxAnswer
}

var errTooLong = errors.New("the answer is too long")

// An answerBody can be read for as long as an attempt may take, and up to a bound.
type answerBody struct {
	io.ReadCloser

	ctx  context.Context //nolint:containedctx // the attempt's own, which ends with the body
	end  func()
	left int64
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, errTooLong
	case err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errTimeout):
		return n, errTimeout
	}
	return n, err
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

package httpthrottle_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A source is the body of a request, of a kind that net/http knows nothing about.
type source struct {
	io.Reader

	closed int
}

func (s *source) Close() error {
	s.closed++
	return nil
}

// post makes a request with a body that cannot be had again.
func post(t *testing.T, body io.Reader, length int64) (*http.Request, *source) {
	t.Helper()
	s := &source{Reader: body}
	req := request(t, http.MethodPost, "")
	req.Body, req.ContentLength = s, length
	return req, s
}

func opts(opts ...httpthrottle.Option) []httpthrottle.Option { return opts }

func TestBodyIsSentAgain(t *testing.T) {
	long := strings.Repeat("x", 1<<20+1)
	for _, tc := range []struct {
		name     string
		body     string
		length   int64
		opts     []httpthrottle.Option
		attempts int
	}{
		{"of known length", "hello", 5, nil, 2},
		{"of unknown length", "hello", -1, nil, 1},
		{"of unknown length, asked for", "hello", -1, opts(httpthrottle.WithBodyBuffer(5)), 2},
		{"of unknown length, too long", "hello!", -1, opts(httpthrottle.WithBodyBuffer(5)), 1},
		{"too long", long, int64(len(long)), nil, 1},
		{"too long for what was asked", "hello", 5, opts(httpthrottle.WithBodyBuffer(4)), 1},
		{"never", "hello", 5, opts(httpthrottle.WithBodyBuffer(0)), 1},
		{"empty", "", 0, opts(httpthrottle.WithBodyBuffer(4)), 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(refuse(429))
				req, body := post(t, strings.NewReader(tc.body), tc.length)
				tr := httpthrottle.NewTransport(s, nil, append(tc.opts, httpthrottle.WithMaxAttempts(2))...)
				res, err := tr.RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, 429, res.StatusCode)
				require.Len(t, s.seen, tc.attempts)
				for _, a := range s.seen {
					require.Equal(t, tc.body, a.body)
				}
				require.Equal(t, 1, body.closed)
				require.Same(t, body, req.Body)
				require.Nil(t, req.GetBody)
			})
		})
	}
}

func TestBodyIsClosedWhateverFails(t *testing.T) {
	closed := throttletest.New()
	closed.Close()
	wrong := errors.New("wrong")
	for _, tc := range []struct {
		name   string
		l      throttle.Limiter
		opts   []httpthrottle.Option
		body   io.Reader
		length int64 // 0: not known, so that it is not read in advance
		ended  bool
		want   error
	}{
		{name: "the limiter refuses", l: throttletest.New(throttletest.Deny(wrong)), want: wrong},
		{name: "the limiter is closed", l: closed, want: throttle.ErrClosed},
		{name: "the context has ended", l: throttletest.New(), ended: true, want: context.Canceled},
		{name: "the body cannot be read", l: throttletest.New(), body: failing{wrong}, length: 5, want: wrong},
		{name: "the body cannot be sent", l: throttletest.New(), body: failing{wrong}, opts: opts(httpthrottle.WithMaxAttempts(1)), want: wrong},
		{name: "the key is wrong", l: throttletest.New(), opts: opts(httpthrottle.WithIdempotencyKey(func(*http.Request) string { return "a\nb" }))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := tc.body
			if body == nil {
				body = strings.NewReader("hello")
			}
			req, sent := post(t, body, tc.length)
			if tc.ended {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				req = req.WithContext(ctx)
			}
			res, err := httpthrottle.NewTransport(serve(ok), tc.l, tc.opts...).RoundTrip(req)
			require.Nil(t, res)
			require.Error(t, err)
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
			}
			require.NotZero(t, sent.closed)
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestPanicsLeaveNothingBehind(t *testing.T) {
	boom := func(*http.Request) int { panic("boom") }
	panicking := baseFunc(func(*http.Request) (*http.Response, error) { panic("boom") })
	for name, tc := range map[string]struct {
		base http.RoundTripper
		opt  httpthrottle.Option
	}{
		"cost":  {serve(ok), httpthrottle.WithCost(boom)},
		"base":  {panicking, nil},
		"meter": {serve(ok), httpthrottle.WithMeter(func(*http.Response) httpthrottle.Meter { panic("boom") })},
	} {
		t.Run(name, func(t *testing.T) {
			slots, err := throttle.NewInFlight(1)
			require.NoError(t, err)
			tr := httpthrottle.NewTransport(tc.base, slots, tc.opt)
			req, body := post(t, strings.NewReader("hello"), 5)
			require.Panics(t, func() { _, _ = tr.RoundTrip(req) })
			require.NotZero(t, body.closed)
			p, free := slots.TryAcquire(1)
			require.True(t, free, "a slot is gone")
			p.Cancel()
		})
	}
}

type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestAttemptThatCannotBeMadeCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		req := request(t, http.MethodPost, "hello")
		req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		l := throttletest.New()
		_, err := httpthrottle.NewTransport(serve(refuse(429)), l).RoundTrip(req)
		require.ErrorIs(t, err, gone)
		require.Equal(t, 1, l.Used())

		// Nor does one whose context ended while it got its tokens.
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(ok)
		l = throttletest.New()
		_, err = httpthrottle.NewTransport(s, cancelling{l, cancel}).RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, s.seen)
		require.Zero(t, l.Used())
	})
}

// cancelling is a Limiter under which the caller goes away as it gets its tokens.
type cancelling struct {
	throttle.Limiter

	cancel func()
}

func (l cancelling) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	defer l.cancel()
	return l.Limiter.Acquire(ctx, n)
}

func TestOptionsAreChecked(t *testing.T) {
	opts := []httpthrottle.Option{
		nil, httpthrottle.WithMaxAttempts(101), httpthrottle.WithMaxWait(-time.Second), httpthrottle.WithMaxElapsed(0), httpthrottle.WithBodyBuffer(-1),
	}
	const want = `httpthrottle: WithMaxAttempts is 101, allowed: 1 to 100
httpthrottle: WithMaxWait is -1s, allowed: more than 0
httpthrottle: WithMaxElapsed is 0s, allowed: more than 0
httpthrottle: WithBodyBuffer is -1, allowed: 0 or more`
	require.EqualError(t, httpthrottle.Check(opts...), want)
	require.PanicsWithError(t, want, func() { httpthrottle.NewTransport(serve(ok), nil, opts...) })
	require.NoError(t, httpthrottle.Check(httpthrottle.WithMaxAttempts(100), nil))

	for key, want := range map[string]string{
		"a\nb":                   "httpthrottle: Idempotency-Key has the byte 0x0a at 1, allowed: visible ASCII",
		strings.Repeat("a", 256): "httpthrottle: Idempotency-Key has 256 characters, allowed: at most 255",
	} {
		opt := httpthrottle.WithIdempotencyKey(func(*http.Request) string { return key })
		_, err := httpthrottle.NewTransport(serve(ok), nil, opt).RoundTrip(request(t, http.MethodPost, "hello"))
		require.EqualError(t, err, want)
	}
}

func TestHost(t *testing.T) {
	require.Equal(t, "service.test", httpthrottle.Host(request(t, http.MethodGet, "")))
	require.Empty(t, httpthrottle.Host(&http.Request{}))
}

func TestTagger(t *testing.T) {
	tags := map[string]*throttletest.Limiter{"": throttletest.New(), "service.test": throttletest.New()}
	for _, opt := range []httpthrottle.Option{nil, httpthrottle.WithTag(httpthrottle.Host)} {
		res, err := httpthrottle.NewTransport(serve(ok), tagger{tags[""], tags}, opt).RoundTrip(request(t, http.MethodGet, ""))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	require.Len(t, tags[""].Draws(), 1)
	require.Len(t, tags["service.test"].Draws(), 1)
}

type tagger struct {
	throttle.Limiter

	tags map[string]*throttletest.Limiter
}

func (l tagger) ForTag(tag string) throttle.Limiter { return l.tags[tag] }

// No error and no text in one holds what a request carries.
func TestErrorsHoldNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		echo := refuse(429, "Retry-After", "900", "X-Ratelimit-Remaining-Sesame!", "0")
		echo.body = `{"error":{"code":"sesame sesame","message":"key sesame"}}`
		l := throttletest.New(throttletest.Grant(), throttletest.Grant(), throttletest.Deny(nil))
		tr := httpthrottle.NewTransport(serve(echo), l, httpthrottle.RefusalsAsErrors(), httpthrottle.WithTag(httpthrottle.Host))
		for range 3 { // refused, paused, throttled
			_, err := tr.RoundTrip(request(t, http.MethodPost, "sesame"))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "sesame")
			time.Sleep(time.Hour)
		}
	})
}

func TestCloseIdleConnectionsReachesTheBase(t *testing.T) {
	base := &idle{}
	client := &http.Client{Transport: httpthrottle.NewTransport(base, nil)}
	client.CloseIdleConnections()
	require.Equal(t, 1, base.closed)
	(&http.Client{Transport: httpthrottle.NewTransport(serve(ok), nil)}).CloseIdleConnections()
}

type idle struct {
	http.RoundTripper

	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

// A long body of an error is not lost by looking at it, nor is the error in its middle.
func TestErrorBodyComesWhole(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	res, err := httpthrottle.NewTransport(serve(answer{status: 500, body: long}), nil).RoundTrip(request(t, http.MethodGet, ""))
	require.NoError(t, err)
	require.Equal(t, long, read(t, res))

	broken := errors.New("broken")
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		body := io.NopCloser(io.MultiReader(bytes.NewBufferString("half"), failing{broken}))
		return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}, Body: body, Request: req}, nil
	})
	res, err = httpthrottle.NewTransport(base, nil).RoundTrip(request(t, http.MethodGet, ""))
	require.NoError(t, err)
	data, err := io.ReadAll(res.Body)
	require.ErrorIs(t, err, broken)
	require.Equal(t, "half", string(data))
	require.NoError(t, res.Body.Close())
}

package httpthrottle_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

func TestPanicsLeaveNothingBehind(t *testing.T) {
	boom := func(*http.Request) int { panic("boom") }
	panicking := baseFunc(func(*http.Request) (*http.Response, error) { panic("boom") })
	for name, tc := range map[string]struct {
		base http.RoundTripper
		opt  httpthrottle.Option
	}{
		"cost":  {fine, httpthrottle.WithCost(boom)},
		"base":  {panicking, nil},
		"meter": {fine, httpthrottle.WithMeter(func(*http.Response) httpthrottle.Meter { panic("boom") })},
	} {
		t.Run(name, func(t *testing.T) {
			slots, err := throttle.NewInFlight(1)
			require.NoError(t, err)
			tr := httpthrottle.NewTransport(tc.base, slots, tc.opt)
			req, closed := request(t, http.MethodPost, ""), false
			req.Body, req.ContentLength = body{strings.NewReader("hello"), &closed}, 5
			require.Panics(t, func() { _, _ = tr.RoundTrip(req) })
			require.True(t, closed)
			p, free := slots.TryAcquire(1)
			require.True(t, free, "a slot is gone")
			p.Cancel()
		})
	}
}

// A body of a kind that net/http knows nothing about.
type body struct {
	io.Reader

	closed *bool
}

func (b body) Close() error {
	*b.closed = true
	return nil
}

func TestOptionsAreChecked(t *testing.T) {
	opts := []httpthrottle.Option{
		nil, httpthrottle.WithMaxAttempts(101), httpthrottle.WithMaxWait(-time.Second), httpthrottle.WithMaxElapsed(0), httpthrottle.WithMaxPause(0),
		httpthrottle.WithBodyBuffer(-1),
	}
	const want = `httpthrottle: WithMaxAttempts is 101, allowed: 1 to 100
httpthrottle: WithMaxWait is -1s, allowed: more than 0
httpthrottle: WithMaxElapsed is 0s, allowed: more than 0
httpthrottle: WithMaxPause is 0s, allowed: more than 0
httpthrottle: WithBodyBuffer is -1, allowed: 0 or more`
	require.EqualError(t, httpthrottle.Check(opts...), want)
	require.PanicsWithError(t, want, func() { httpthrottle.NewTransport(fine, nil, opts...) })
	require.NoError(t, httpthrottle.Check(httpthrottle.WithMaxAttempts(100), nil))

	for key, want := range map[string]string{
		"a b":                    "httpthrottle: Idempotency-Key has the byte 0x20 at 1, allowed: visible ASCII",
		strings.Repeat("a", 256): "httpthrottle: Idempotency-Key has 256 characters, allowed: at most 255",
	} {
		opt := httpthrottle.WithIdempotencyKey(func(*http.Request) string { return key })
		_, err := httpthrottle.NewTransport(fine, nil, opt).RoundTrip(request(t, http.MethodPost, "hello"))
		require.EqualError(t, err, want)
	}
}

func TestHost(t *testing.T) {
	require.Equal(t, "service.test", httpthrottle.Host(request(t, http.MethodGet, "")))
	require.Empty(t, httpthrottle.Host(&http.Request{}))
}

func TestCloseIdleConnectionsReachesTheBase(t *testing.T) {
	base := &idle{}
	client := &http.Client{Transport: httpthrottle.NewTransport(base, nil)}
	client.CloseIdleConnections()
	require.Equal(t, 1, base.closed)
	(&http.Client{Transport: httpthrottle.NewTransport(fine, nil)}).CloseIdleConnections()
}

type idle struct {
	http.RoundTripper

	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

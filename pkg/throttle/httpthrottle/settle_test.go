package httpthrottle_test

import (
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

// bytesRead is a Meter that counts bytes.
type bytesRead struct {
	n       int
	unknown bool
}

func (m *bytesRead) Write(p []byte) (int, error) {
	m.n += len(p)
	return len(p), nil
}

func (m *bytesRead) Used() (int, bool) { return m.n, !m.unknown }

func TestPermitIsSettledWithTheBody(t *testing.T) {
	counted := func(*http.Response) httpthrottle.Meter { return &bytesRead{} }
	unknown := func(*http.Response) httpthrottle.Meter { return &bytesRead{unknown: true} }
	none := func(*http.Response) httpthrottle.Meter { return nil }
	end := func(t *testing.T, body io.ReadCloser) { _, _ = io.ReadAll(body) }
	closed := func(t *testing.T, body io.ReadCloser) { _ = body.Close() }
	part := func(t *testing.T, body io.ReadCloser) {
		_, _ = io.ReadFull(body, make([]byte, 3))
		_ = body.Close()
	}
	for _, tc := range []struct {
		name  string
		meter func(*http.Response) httpthrottle.Meter
		read  func(*testing.T, io.ReadCloser)
		used  int
	}{
		{"read to the end", counted, end, 9},
		{"closed at once", counted, closed, 0},
		{"closed in the middle", counted, part, 3},
		{"of unknown cost", unknown, end, 5},
		{"without a meter for it", none, end, 5},
		{"without a meter", nil, closed, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := throttletest.New()
			tr := httpthrottle.NewTransport(serve(answer{status: 200, body: "nine byte"}), l, httpthrottle.WithMeter(tc.meter),
				httpthrottle.WithCost(func(*http.Request) int { return 5 }))
			res, err := tr.RoundTrip(request(t, http.MethodGet, ""))
			require.NoError(t, err)
			require.False(t, l.Draws()[0].Settled, "settled before the body was read")
			tc.read(t, res.Body)
			require.True(t, l.Draws()[0].Settled)
			require.Equal(t, tc.used, l.Used())
			require.NoError(t, res.Body.Close())
			require.Equal(t, tc.used, l.Used())
		})
	}
}

// A slot is taken as long as the answer streams, and not while a call waits for its next
// attempt.
func TestSlotIsHeldAsLongAsTheBodyIsOpen(t *testing.T) { synctest.Test(t, slotIsHeld) }

func slotIsHeld(t *testing.T) {
	slots, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	free := func() bool {
		p, ok := slots.TryAcquire(1)
		p.Cancel()
		return ok
	}
	res, err := httpthrottle.NewTransport(serve(ok), slots).RoundTrip(request(t, http.MethodGet, ""))
	require.NoError(t, err)
	require.False(t, free())
	require.NoError(t, res.Body.Close())
	require.True(t, free())

	// Asked before the second attempt draws.
	f := &lookingFeedback{look: func() { require.True(t, free(), "held while the call waits") }}
	res, err = httpthrottle.NewTransport(serve(refuse(429), ok), slots, httpthrottle.WithFeedback(f)).RoundTrip(request(t, http.MethodGet, ""))
	require.NoError(t, err)
	require.Equal(t, 2, f.asked)
	require.NoError(t, res.Body.Close())
	require.True(t, free())
}

// lookingFeedback looks at something before each attempt draws.
type lookingFeedback struct {
	seenFeedback

	look  func()
	asked int
	drawn bool
}

func (f *lookingFeedback) Paused(string) time.Duration {
	if f.drawn = !f.drawn; f.drawn {
		f.asked++
		f.look()
	}
	return 0
}

func TestSwitchOfProtocols(t *testing.T) {
	conn := &connection{Reader: strings.NewReader("pong")}
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{}, Body: conn, Request: req}, nil
	})
	l := throttletest.New()
	res, err := httpthrottle.NewTransport(base, l).RoundTrip(request(t, http.MethodGet, ""))
	require.NoError(t, err)
	rw, is := res.Body.(io.ReadWriteCloser)
	require.True(t, is)
	_, err = rw.Write([]byte("ping"))
	require.NoError(t, err)
	require.Equal(t, "ping", conn.written)
	require.Equal(t, "pong", read(t, res))
	require.True(t, l.Draws()[0].Settled)
}

type connection struct {
	io.Reader

	written string
}

func (c *connection) Write(p []byte) (int, error) {
	c.written += string(p)
	return len(p), nil
}

func (c *connection) Close() error { return nil }

func TestResponseWithoutBodyIsSettledAtOnce(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"none": http.NoBody, "nil": nil} {
		t.Run(name, func(t *testing.T) {
			base := baseFunc(func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: body, Request: req}, nil
			})
			l := throttletest.New()
			res, err := httpthrottle.NewTransport(base, l).RoundTrip(request(t, http.MethodGet, ""))
			require.NoError(t, err)
			require.True(t, l.Draws()[0].Settled)
			require.Equal(t, body, res.Body)
		})
	}
}

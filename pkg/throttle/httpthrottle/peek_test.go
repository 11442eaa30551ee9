package httpthrottle_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A slowBody comes a byte at a time; after its text it goes on for ever, or ends with err.
type slowBody struct {
	text  string
	every time.Duration
	err   error // nil: it never ends

	once   sync.Once
	closed chan struct{}
}

func slowText(text string, every time.Duration, err error) *slowBody {
	return &slowBody{text: text, every: every, err: err, closed: make(chan struct{})}
}

func (b *slowBody) Read(p []byte) (int, error) {
	wait := b.every
	if b.text == "" {
		if b.err != nil {
			return 0, b.err
		}
		wait = 24 * time.Hour
	}
	select {
	case <-b.closed:
		return 0, errors.New("closed")
	case <-time.After(wait):
	}
	n := copy(p[:min(1, len(p))], b.text)
	b.text = b.text[n:]
	return n, nil
}

func (b *slowBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// slowly answers the first attempt with a slow body and the others with 200, and notes when they came.
func slowly(status int, body *slowBody, header ...string) (base http.RoundTripper, times func() []time.Duration) {
	var mu sync.Mutex
	var seen []time.Duration
	started := time.Now()
	base = baseFunc(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, time.Since(started))
		if len(seen) > 1 {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
		}
		return &http.Response{StatusCode: status, Header: refuse(status, header...).header, Body: body, Request: req}, nil
	})
	return base, func() []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return append([]time.Duration(nil), seen...)
	}
}

const never = 0 * time.Second

// What the head of a refusal says holds back the others at once, however long its body takes.
func TestRefusalWhoseBodyNeverEnds(t *testing.T) {
	for name, body := range map[string]func() *slowBody{
		"nothing comes": func() *slowBody { return slowText("", never, nil) },
		"it trickles":   func() *slowBody { return slowText(strings.Repeat("x", 1000), time.Second, nil) },
		"it breaks off": func() *slowBody { return slowText("x", 100*time.Millisecond, io.ErrUnexpectedEOF) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, times := slowly(429, body(), "Retry-After", "3")
				l := throttletest.New()
				tr := httpthrottle.NewTransport(base, l)
				var calls sync.WaitGroup
				for range 25 {
					calls.Go(func() {
						res, err := tr.RoundTrip(request(t, http.MethodGet, ""))
						require.NoError(t, err)
						require.Equal(t, http.StatusOK, res.StatusCode)
						require.NoError(t, res.Body.Close())
					})
					time.Sleep(100 * time.Millisecond)
				}
				calls.Wait()
				seen := times()
				require.Len(t, seen, 26)
				require.Zero(t, seen[0])
				within(t, 3*time.Second, 3300*time.Millisecond, seen[1])
				within(t, 3*time.Second, 3300*time.Millisecond, seen[25])
				require.Equal(t, 26, l.Used())
			})
		})
	}
}

// Whoever gets a response has all of its body, also of one that is still under way.
func TestSlowBodyComesWhole(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		status int
		end    error
	}{"a refusal": {429, io.EOF}, "another error": {404, io.EOF}, "one that breaks off": {404, broken}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, _ := slowly(tc.status, slowText("abcdefgh", 300*time.Millisecond, tc.end))
				started := time.Now()
				res, err := httpthrottle.NewTransport(base, nil, httpthrottle.WithMaxAttempts(1)).RoundTrip(request(t, http.MethodGet, ""))
				require.NoError(t, err)
				require.Equal(t, time.Second, time.Since(started), "the call is held for longer than a second")
				data, err := io.ReadAll(res.Body)
				require.Equal(t, "abcdefgh", string(data))
				require.Equal(t, 2400*time.Millisecond, time.Since(started))
				if tc.end == broken { //nolint:errorlint // the case itself
					require.ErrorIs(t, err, broken)
				}
				require.NoError(t, res.Body.Close())
			})
		})
	}
}

// A noted Feedback keeps what it is told, and holds back like a Pause.
type noted struct {
	httpthrottle.Pause

	mu       sync.Mutex
	refusals []httpthrottle.Refusal
}

func (n *noted) Refused(ctx context.Context, r httpthrottle.Refusal) {
	n.mu.Lock()
	n.refusals = append(n.refusals, r)
	n.mu.Unlock()
	n.Pause.Refused(ctx, r)
}

// What the body says counts: a refusal is told once, as it is in the end. That no wait helps lets the others go.
func TestBodyRefinesWhatTheHeadSays(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		class  httpthrottle.Class
		others time.Duration // when another call is sent
	}{
		"no wait helps": {`{"error":{"code":"insufficient_quota"}}`, httpthrottle.Stop, 390 * time.Millisecond},
		"a code":        {`{"error":{"code":"rate_limit_exceeded"}}`, httpthrottle.Wait, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, times := slowly(429, slowText(tc.body, 10*time.Millisecond, io.EOF), "Retry-After", "3")
				f := &noted{}
				tr := httpthrottle.NewTransport(base, nil, httpthrottle.WithMaxAttempts(1), httpthrottle.WithFeedback(f),
					httpthrottle.WithClassifier(httpthrottle.OpenAI))
				var calls sync.WaitGroup
				for range 2 {
					calls.Go(func() {
						res, err := tr.RoundTrip(request(t, http.MethodGet, ""))
						require.NoError(t, err)
						_ = read(t, res)
					})
					synctest.Wait()
				}
				calls.Wait()
				require.Len(t, f.refusals, 1)
				require.Equal(t, tc.class, f.refusals[0].Class)
				within(t, tc.others, tc.others+tc.others/10, times()[1])
			})
		})
	}
}

// A call that meets a refusal whose body is still read ends with its own deadline.
func TestDeadlineWhileARefusalIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, times := slowly(429, slowText("", never, nil), "Retry-After", "3")
		tr := httpthrottle.NewTransport(base, nil)
		var calls sync.WaitGroup
		calls.Go(func() {
			res, err := tr.RoundTrip(request(t, http.MethodGet, ""))
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		started := time.Now()
		_, err := tr.RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
		require.ErrorIs(t, err, throttle.ErrThrottled)
		require.Equal(t, 100*time.Millisecond, time.Since(started))
		calls.Wait()
		require.Len(t, times(), 2)
	})
}

// What nobody looks at is read for a second at most, so that its connection can be used again.
func TestDiscardIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		opt    httpthrottle.Option
		after  time.Duration // the second attempt, and half a second later at most
	}{
		"a refusal that is none by its status": {202, httpthrottle.WithClassifier(func(a httpthrottle.Answer) (httpthrottle.Refusal, bool) {
			return httpthrottle.Refusal{Class: httpthrottle.Wait, RetryAfter: 3 * time.Second, NotProcessed: true}, a.Status == 202
		}), 3 * time.Second},
		"a failure": {500, httpthrottle.RetryFailures(), 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := slowText("", never, nil)
				base, times := slowly(tc.status, body)
				res, err := httpthrottle.NewTransport(base, nil, tc.opt).RoundTrip(request(t, http.MethodGet, ""))
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, res.StatusCode)
				<-body.closed
				require.Len(t, times(), 2)
				within(t, tc.after, tc.after+time.Second/2, times()[1])
			})
		})
	}
}

// The same with real connections: the refused call and the others end, over each protocol.
func TestRefusalWhoseBodyNeverEndsOverTheWire(t *testing.T) {
	for _, way := range []string{h1, h2} {
		t.Run(way, func(t *testing.T) {
			var mu sync.Mutex
			var seen []time.Time
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				seen = append(seen, time.Now())
				n := len(seen)
				mu.Unlock()
				if n > 1 {
					return
				}
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusTooManyRequests)
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, " ")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(10 * time.Millisecond)
				}
			}))
			server.EnableHTTP2 = way == h2
			server.StartTLS()
			t.Cleanup(server.Close)
			tr := httpthrottle.NewTransport(server.Client().Transport, nil)
			var calls sync.WaitGroup
			for range 5 {
				calls.Go(func() { require.NoError(t, exchange(tr, wireRequest(t, http.MethodGet, server.URL, ""))) })
				require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) > 0 }, 10*time.Second, time.Millisecond)
				time.Sleep(50 * time.Millisecond)
			}
			calls.Wait()
			require.Len(t, seen, 6)
			require.GreaterOrEqual(t, seen[1].Sub(seen[0]), 2*time.Second)
		})
	}
}

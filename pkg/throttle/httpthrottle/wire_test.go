package httpthrottle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// counting counts the attempts that reach a base, as the metrics of a program do.
type counting struct {
	http.RoundTripper

	attempts atomic.Int64
}

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.attempts.Add(1)
	return c.RoundTripper.RoundTrip(req)
}

// kinds are requests that net/http repeats by itself, and one that it does not.
var kinds = map[string]func(t *testing.T, url string) *http.Request{
	"GET":  func(t *testing.T, url string) *http.Request { return wireRequest(t, http.MethodGet, url, "") },
	"POST": func(t *testing.T, url string) *http.Request { return wireRequest(t, http.MethodPost, url, "hello") },
	"POST with a key": func(t *testing.T, url string) *http.Request {
		req := wireRequest(t, http.MethodPost, url, "hello")
		req.Header.Set("Idempotency-Key", "message-17")
		return req
	},
	"POST without a body, with a key": func(t *testing.T, url string) *http.Request {
		req := wireRequest(t, http.MethodPost, url, "")
		req.Header.Set("Idempotency-Key", "message-17")
		return req
	},
}

func wireRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, reader)
	require.NoError(t, err)
	return req
}

// exchange makes a call, and reads its answer.
func exchange(tr http.RoundTripper, req *http.Request) error {
	res, err := tr.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

// What a server sees is what was drawn, and what was attempted: whatever it does, over each protocol, and
// whatever is sent.
func TestOneRequestForEachPermit(t *testing.T) {
	for _, way := range ways {
		for name, d := range map[string]deed{
			"ends the connection": end, "resets it": reset, "refuses": refuseIt, "refuses after a hint": hintRefuse, "goes away": goAway,
			"is wrong": garbage, "finds it wrong": protocol,
		} {
			for kind, build := range kinds {
				for _, most := range []int{1, 2} {
					t.Run(fmt.Sprintf("%s %s %s %d", way, name, kind, most), func(t *testing.T) {
						t.Parallel()
						s, base := serveHostile(t, way, func(n int) deed {
							if n == 1 { // so that there is a connection that was used before
								return serveIt
							}
							return d
						})
						l, counted := throttletest.New(), &counting{RoundTripper: base}
						tr := httpthrottle.NewTransport(counted, l, httpthrottle.WithMaxAttempts(most))
						require.NoError(t, exchange(tr, wireRequest(t, http.MethodGet, s.url(), "")))
						err := exchange(tr, build(t, s.url()))
						require.Error(t, err)
						require.NotErrorIs(t, err, context.Canceled)
						require.NotContains(t, err.Error(), "canceled")
						seen := s.requests() - 1
						require.Positive(t, seen)
						require.LessOrEqual(t, seen, most)
						require.Len(t, l.Draws(), 1+seen)
						require.EqualValues(t, 1+seen, counted.attempts.Load())
					})
				}
			}
		}
	}
}

// nginx that closes the connection without an answer.
func TestOneRequestForEachPermitAtNginx(t *testing.T) {
	dir, err := os.MkdirTemp("", "wire") //nolint:usetesting // short, for the name of a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	certificate := certify(t, dir)
	log, socket := filepath.Join(dir, "requests.log"), filepath.Join(dir, "tls")
	testenv.Nginx(t, []string{
		"log_format one \"$status\";",
		"server { listen unix:" + socket + " ssl http2; ssl_certificate " + dir + "/cert.pem; ssl_certificate_key " + dir + "/key.pem;",
		"access_log " + log + " one; location / { return 444; } location = /fine { return 200 fine; } }",
	}, nil)
	seen := func() int {
		content, err := os.ReadFile(log)
		require.NoError(t, err)
		return strings.Count(string(content), "\n")
	}
	for _, way := range []string{h1TLS, h2} {
		for kind, build := range kinds {
			t.Run(way+" "+kind, func(t *testing.T) {
				base := &http.Transport{
					TLSClientConfig: certificate, Protocols: &http.Protocols{},
					DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
						return (&net.Dialer{}).DialContext(ctx, "unix", socket)
					},
				}
				base.Protocols.SetHTTP1(way == h1TLS)
				base.Protocols.SetHTTP2(way == h2)
				t.Cleanup(base.CloseIdleConnections)
				before := seen()
				l, counted := throttletest.New(), &counting{RoundTripper: base}
				tr := httpthrottle.NewTransport(counted, l, httpthrottle.WithMaxAttempts(1))
				require.NoError(t, exchange(tr, build(t, "https://127.0.0.1/fine")))
				err := exchange(tr, build(t, "https://127.0.0.1/gone"))
				require.Error(t, err)
				require.NotErrorIs(t, err, context.Canceled)
				require.Eventually(t, func() bool { return seen() == before+2 }, 10*time.Second, time.Millisecond)
				require.Len(t, l.Draws(), 2)
				require.EqualValues(t, 2, counted.attempts.Load())
			})
		}
	}
}

// What net/http was about to repeat is repeated, with a permit of its own, at once and without
// RetryFailures.
func TestRepeatIsAnAttempt(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			s, base := serveHostile(t, way, func(n int) deed {
				if n == 2 {
					return refuseIt
				}
				return serveIt
			})
			l := throttletest.New()
			tr := httpthrottle.NewTransport(base, l)
			for range 2 {
				req := wireRequest(t, http.MethodPost, s.url(), "hello")
				req.Header.Set("Idempotency-Key", "message-17")
				require.NoError(t, exchange(tr, req))
			}
			require.Equal(t, 3, s.requests())
			require.Len(t, l.Draws(), 3)
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Less(t, s.seen[2].Sub(s.seen[1]), 500*time.Millisecond)
		})
	}
}

// The error of a repeat that is not made says what happened, and why there was no other.
func TestWhyItWasNotSentAgain(t *testing.T) {
	s, base := serveHostile(t, h2, func(int) deed { return refuseIt })
	err := exchange(httpthrottle.NewTransport(base, nil, httpthrottle.WithMaxAttempts(1)), wireRequest(t, http.MethodGet, s.url(), ""))
	require.ErrorIs(t, err, httpthrottle.ErrUnanswered)
	require.Contains(t, err.Error(), "its connection ended or its stream was refused before an answer")
	require.Contains(t, err.Error(), "it was not sent again, because the 1 attempts of WithMaxAttempts are used up")

	err = exchange(httpthrottle.NewTransport(base, nil, httpthrottle.WithMaxElapsed(200*time.Millisecond)), wireRequest(t, http.MethodGet, s.url(), ""))
	require.ErrorIs(t, err, httpthrottle.ErrUnanswered)
	require.Contains(t, err.Error(), "no time is left")

	ctx, cancel := context.WithCancel(t.Context())
	slow, base := serveHostile(t, h2, func(int) deed { cancel(); return refuseIt })
	err = exchange(httpthrottle.NewTransport(base, nil), wireRequest(t, http.MethodGet, slow.url(), "").WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled, "the caller went away")
}

// A detached base loses the end of the context on the way down, and keeps its values.
type detached struct{ http.RoundTripper }

func (d detached) RoundTrip(req *http.Request) (*http.Response, error) {
	return d.RoundTripper.RoundTrip(req.Clone(context.WithoutCancel(req.Context())))
}

// A retrying base sends a request again until it is served, with a body that it has read.
type retrying struct{ http.RoundTripper }

func (r retrying) RoundTrip(req *http.Request) (res *http.Response, err error) {
	var body []byte
	if req.Body != nil {
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	for range 20 {
		again := req.Clone(req.Context())
		if body != nil {
			again.Body, again.GetBody = io.NopCloser(strings.NewReader(string(body))), nil
		}
		if res, err = r.RoundTripper.RoundTrip(again); err == nil && res.StatusCode < http.StatusInternalServerError {
			return res, nil
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			err = errors.New("not served")
		}
	}
	return nil, err
}

// A hedging base sends each request three times at once.
type hedging struct{ http.RoundTripper }

func (h hedging) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	type result struct {
		res *http.Response
		err error
	}
	results := make(chan result, 3)
	for range 3 {
		go func() {
			again := req.Clone(req.Context())
			again.Body, again.GetBody, again.ContentLength = nil, nil, 0
			res, err := h.RoundTripper.RoundTrip(again)
			results <- result{res, err}
		}()
	}
	var last result
	for range 3 {
		if last.res != nil {
			_ = last.res.Body.Close()
		}
		last = <-results
	}
	return last.res, last.err
}

// The same holds whatever stands between: transports that lose the end of the context, that try again by themselves, that
// send at once.
func TestOneRequestForEachPermitBelowOtherTransports(t *testing.T) {
	for _, way := range ways {
		for name, between := range map[string]func(http.RoundTripper) http.RoundTripper{
			"detached":          func(r http.RoundTripper) http.RoundTripper { return detached{r} },
			"retrying":          func(r http.RoundTripper) http.RoundTripper { return retrying{r} },
			"detached retrying": func(r http.RoundTripper) http.RoundTripper { return detached{retrying{r}} },
			"retrying detached": func(r http.RoundTripper) http.RoundTripper { return retrying{detached{r}} },
			"hedging":           func(r http.RoundTripper) http.RoundTripper { return hedging{r} },
			"detached hedging":  func(r http.RoundTripper) http.RoundTripper { return detached{hedging{r}} },
			"another of these":  func(r http.RoundTripper) http.RoundTripper { return httpthrottle.NewTransport(r, nil) },
			"traced": func(r http.RoundTripper) http.RoundTripper {
				return baseFunc(func(req *http.Request) (*http.Response, error) {
					trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {}}
					return r.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
				})
			},
		} {
			for doing, d := range map[string]deed{"ends": end, "refuses": refuseIt, "goes away": goAway} {
				t.Run(way+" "+name+" "+doing, func(t *testing.T) {
					t.Parallel()
					s, base := serveHostile(t, way, func(n int) deed {
						if n%3 == 1 {
							return serveIt
						}
						return d
					})
					l := throttletest.New()
					tr := httpthrottle.NewTransport(between(base), l, httpthrottle.WithMaxAttempts(2))
					for range 3 {
						_ = exchange(tr, wireRequest(t, http.MethodGet, s.url(), ""))
						_ = exchange(tr, wireRequest(t, http.MethodPost, s.url(), "hello"))
					}
					if !strings.Contains(name, "hedging") { // of which all may be stopped
						require.Positive(t, s.requests())
					}
					require.LessOrEqual(t, s.requests(), len(l.Draws()))
				})
			}
		}
	}
}

// What a transport between sends after an answer waits for a permit of its own and goes through: it may
// log in that way.
func TestFurtherRequestDraws(t *testing.T) {
	challenge := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "fine")
	}
	for _, way := range []string{h1, h2} {
		t.Run(way, func(t *testing.T) {
			var seen atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen.Add(1)
				challenge(w, r)
			}))
			server.EnableHTTP2 = way == h2
			server.StartTLS()
			t.Cleanup(server.Close)
			login := baseFunc(func(req *http.Request) (*http.Response, error) {
				base := server.Client().Transport
				res, err := base.RoundTrip(req)
				if err != nil || res.StatusCode != http.StatusUnauthorized {
					return res, err
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				again := req.Clone(req.Context())
				again.Header.Set("Authorization", "sesame")
				return base.RoundTrip(again)
			})
			// One slot: the first request gives it back before the second waits for it.
			slots, err := throttle.NewInFlight(1)
			require.NoError(t, err)
			l := throttletest.New()
			tr := httpthrottle.NewTransport(login, throttle.All(slots, l))
			for range 3 {
				require.NoError(t, exchange(tr, wireRequest(t, http.MethodGet, server.URL, "")))
			}
			require.EqualValues(t, 6, seen.Load())
			require.Len(t, l.Draws(), 6)
			p, free := slots.TryAcquire(1)
			require.True(t, free)
			p.Cancel()

			err = exchange(httpthrottle.NewTransport(login, nil, httpthrottle.WithMaxAttempts(1)), wireRequest(t, http.MethodGet, server.URL, ""))
			require.ErrorContains(t, err, "the base transport had one more request to send after an answer; it was not sent, because the 1 attempts")
			require.NotErrorIs(t, err, context.Canceled)
			require.EqualValues(t, 7, seen.Load())

			gone := errors.New("gone")
			l = throttletest.New(throttletest.Grant(), throttletest.Deny(gone))
			err = exchange(httpthrottle.NewTransport(login, l), wireRequest(t, http.MethodGet, server.URL, ""))
			require.ErrorIs(t, err, gone)
			require.EqualValues(t, 8, seen.Load())
		})
	}
}

// The caller's own hooks are called as well.
func TestTraceOfTheCaller(t *testing.T) {
	server, _ := serveHTTP(t, func(int, http.ResponseWriter, *http.Request) {})
	var got, wrote atomic.Int64
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { got.Add(1) }, WroteRequest: func(httptrace.WroteRequestInfo) { wrote.Add(1) },
	})
	require.NoError(t, exchange(httpthrottle.NewTransport(nil, nil), wireRequest(t, http.MethodGet, server.URL, "").WithContext(ctx)))
	require.EqualValues(t, 1, got.Load())
	require.EqualValues(t, 1, wrote.Load())
}

// The context of an attempt lives as long as somebody reads its answer, and no longer.
func TestContextOfAnAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   io.ReadCloser
		lives  bool
	}{
		"an answer":           {200, io.NopCloser(strings.NewReader("fine")), true},
		"a refusal":           {429, io.NopCloser(strings.NewReader("fine")), true},
		"without a body":      {200, http.NoBody, false},
		"refused without one": {429, http.NoBody, false},
	} {
		t.Run(name, func(t *testing.T) {
			var attempt *http.Request
			base := baseFunc(func(req *http.Request) (*http.Response, error) {
				attempt = req
				return &http.Response{StatusCode: tc.status, Header: http.Header{}, Body: tc.body, Request: req}, nil
			})
			res, err := httpthrottle.NewTransport(base, nil, httpthrottle.WithMaxAttempts(1)).RoundTrip(request(t, http.MethodGet, ""))
			require.NoError(t, err)
			require.Equal(t, tc.lives, attempt.Context().Err() == nil)
			_ = read(t, res)
			require.Error(t, attempt.Context().Err())
		})
	}
}

// A service that has answered in full may still read the request.
func TestRequestGoesOnAfterItsAnswer(t *testing.T) {
	s, base := serveHostile(t, h2c, func(int) deed { return serveEmpty })
	ours, theirs := io.Pipe()
	req := wireRequest(t, http.MethodPost, s.url(), "")
	req.Body, req.ContentLength = ours, -1
	require.NoError(t, exchange(httpthrottle.NewTransport(base, nil), req))
	_, err := io.WriteString(theirs, "hello")
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.read == 5 }, 10*time.Second, time.Millisecond)
}

// A granting limiter counts what it has granted.
type granting struct {
	throttle.Limiter

	granted atomic.Int64
}

func (g *granting) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	p, err := g.Limiter.Acquire(ctx, n)
	if err == nil {
		g.granted.Add(1)
	}
	return p, err
}

// Beside a server that does anything, in any window no more requests come than the limit allows, and at no time have more come
// than were granted.
func TestBoundHoldsAtAHostileServer(t *testing.T) {
	const (
		rate, burst, window = 100, 5, time.Second
		// late is how much later than another a request may come that left with it, on a busy machine.
		late           = 250 * time.Millisecond
		callers, lasts = 8, 2 * time.Second
		least          = 20 // requests: a busy machine takes longer for them
	)
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			pool, err := throttle.New(throttle.Limit{Max: rate, Per: time.Second, Burst: burst})
			require.NoError(t, err)
			t.Cleanup(func() { _ = pool.Close() })
			limiter := &granting{Limiter: pool}
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 0))
			var above atomic.Int64
			s, base := serveHostile(t, way, func(n int) deed {
				if int64(n) > limiter.granted.Load() {
					above.Add(1)
				}
				mu.Lock()
				defer mu.Unlock()
				if random.IntN(2) == 0 {
					return serveIt
				}
				return deed(random.IntN(int(deeds)))
			})
			counted := &counting{RoundTripper: base}
			tr := httpthrottle.NewTransport(counted, limiter, httpthrottle.RetryFailures())
			ctx, cancel := context.WithTimeout(t.Context(), 30*lasts)
			defer cancel()
			enough := time.Now().Add(lasts)
			var calls sync.WaitGroup
			for range callers {
				calls.Go(func() {
					for ctx.Err() == nil {
						if time.Now().After(enough) && s.requests() > least {
							cancel()
						}
						for _, build := range kinds {
							_ = exchange(tr, build(t, s.url()).WithContext(ctx))
						}
					}
				})
			}
			calls.Wait()
			require.Zero(t, above.Load(), "came before they were granted")
			require.LessOrEqual(t, int64(s.requests()), counted.attempts.Load())
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Greater(t, len(s.seen), least, "nothing was tried")
			most := burst + 1 + int(rate*(window+late).Seconds())
			first := 0
			for last, at := range s.seen {
				for at.Sub(s.seen[first]) > window {
					first++
				}
				require.LessOrEqual(t, last-first+1, most, "in a window that ends %v after the start", at.Sub(s.seen[0]))
			}
		})
	}
}

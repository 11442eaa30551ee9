package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// impatience lets messages wait for 900 ms.
func impatience(s *settings) { s.MaxWait, s.OnDenied = 900*time.Millisecond, nackOnDenied }

func TestALongWaitIsANack(t *testing.T) {
	for name, c := range map[string]struct {
		script   []throttletest.Step
		endpoint *endpoint
		calls    int
		delay    time.Duration // at least, and at most a quarter more
		takes    time.Duration // at most
	}{
		"the limit knows when": {
			[]throttletest.Step{throttletest.Deny(&throttle.Error{Reason: throttle.ReasonLimit, RetryAfter: 8 * time.Second})},
			answers(says("hi", 1, 1)), 0, 8 * time.Second, 0,
		},
		"the limit does not know":   {[]throttletest.Step{throttletest.Block()}, answers(says("hi", 1, 1)), 0, 100 * time.Millisecond, 900 * time.Millisecond},
		"the provider says":         {nil, answers(refuses(429, "Retry-After: 20", "")), 1, 20 * time.Second, 0},
		"the provider has too much": {nil, answers(refuses(503, "Retry-After: 20", "")), 1, 20 * time.Second, 0},
		"it does not say for how long": { // half a second is waited for, a second is not
			nil, answers(refuses(503, "", "")), 2, time.Second, 900 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := mustHandler(t, testSettings(impatience), throttletest.New(c.script...), c.endpoint, nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of virtual time
				defer cancel()
				began := time.Now()
				out := h.Map(ctx, []string{"k"}, datum{value: "x"}).Items()
				require.LessOrEqual(t, time.Since(began), c.takes)
				require.Len(t, out, 1)
				require.Equal(t, []string{mapsdk.NACK}, out[0].Tags())
				require.NotEmpty(t, *out[0].NackOptions().Reason)
				delay := time.Duration(*out[0].NackOptions().Delay) * time.Millisecond
				require.GreaterOrEqual(t, delay, c.delay)
				require.LessOrEqual(t, delay, c.delay*2, "a quarter on top of the wait, which is up to half as long again after an overload")
				require.Equal(t, c.calls, c.endpoint.count())
			})
		})
	}
}

// What is no wait for a limit is none of maxWait: a call that lasts, a pool that is frozen, failures.
func TestWhatMaxWaitDoesNotBound(t *testing.T) {
	frozen := throttletest.Deny(&throttle.Error{Reason: throttle.ReasonFrozen, RetryAfter: 15 * time.Second})
	tooLarge := throttletest.Deny(&throttle.Error{Reason: throttle.ReasonTooLarge})
	long := func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Minute); says("hi", 1, 1)(w, r) }
	for name, c := range map[string]struct {
		script   []throttletest.Step
		endpoint *endpoint
		want     string // the code of an error; empty: an answer
		takes    time.Duration
	}{
		"a long call":    {nil, answers(long), "", time.Minute},
		"a frozen pool":  {[]throttletest.Step{frozen, throttletest.Grant()}, answers(says("hi", 1, 1)), "", 15 * time.Second},
		"failures":       {nil, answers(refuses(500, "", "")), "500", 1500 * time.Millisecond},
		"a large prompt": {[]throttletest.Step{tooLarge}, answers(says("hi", 1, 1)), codeTooLarge, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := testSettings(func(s *settings) { impatience(s); s.MaxAttempts = 3 })
				began := time.Now()
				r := ask(t.Context(), t, mustHandler(t, s, throttletest.New(c.script...), c.endpoint, nil), "x")
				require.GreaterOrEqual(t, time.Since(began), c.takes)
				if c.want == "" {
					require.Equal(t, "hi", r.Text)
				} else {
					require.Equal(t, c.want, r.Error.Code)
				}
			})
		})
	}
}

// A call that was sent goes on beyond maxWait, until the message's end or that of the attempt, with all that its request carries.
func TestASentCallEndsWithItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		h := mustHandler(t, testSettings(impatience), nil, answers(says("hi", 1, 1)), nil)
		s := h.settings
		for by := range 2 {
			message, endMessage := context.WithCancel(t.Context())
			_, waiting, done := h.wait(message)
			ctx, endAttempt := context.WithCancel(context.WithValue(waiting, name{}, "x"))
			a := &attempt{base: trip(func(r *http.Request) (*http.Response, error) {
				require.Equal(t, "x", r.Context().Value(name{}))
				<-r.Context().Done()
				return nil, r.Context().Err()
			}), timeout: time.Hour, login: s.login(), key: s.APIKey}
			if by == 0 { // before maxWait: later the transport's context has ended already
				time.AfterFunc(s.MaxWait/2, endAttempt)
			} else {
				time.AfterFunc(time.Minute, endMessage)
			}
			began := time.Now()
			_, err := a.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, []time.Duration{s.MaxWait / 2, time.Minute}[by], time.Since(began))
			endAttempt()
			endMessage()
			done()
		}
	})
}

// trip is a transport.
type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Over the real socket: while the only slot is taken, a message is given back; delivered again, it is answered. The call
// under way lasts for longer than maxWait, and is not cut short.
func TestAProcessGivesBackWhatWouldWaitLong(t *testing.T) {
	var calls atomic.Int32
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			<-release
		}
		says("hi", 1, 1)(w, r)
	}))
	t.Cleanup(server.Close)
	c := startChild(t, dataplane.Dir(t), "p", "LLM_MAP_BASE_URL="+server.URL, "LLM_MAP_IN_FLIGHT=1", "NUMATHROTTLE_STORE=static://?replicas=1",
		"LLM_MAP_MAX_WAIT=50ms", "LLM_MAP_ON_DENIED=nack")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	first := make(chan []dataplane.Result, 1)
	go func() {
		out, _ := c.feed.Do(ctx, dataplane.Message{Value: []byte("first")})
		first <- out
	}()
	require.Eventually(t, func() bool { return calls.Load() == 1 }, 20*time.Second, time.Millisecond)
	out, err := c.feed.Do(ctx, dataplane.Message{Value: []byte("second")})
	early := len(first)
	close(release)
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.True(t, out[0].Nack)
	require.GreaterOrEqual(t, out[0].NackOptions.Delay, 100*time.Millisecond)
	require.Contains(t, out[0].NackOptions.Reason, "in-flight")
	require.Zero(t, early)
	for _, answered := range [][]dataplane.Result{<-first, deliver(ctx, t, c)} {
		require.Len(t, answered, 1)
		var r result
		require.NoError(t, json.Unmarshal(answered[0].Value, &r))
		require.Equal(t, "hi", r.Text)
	}
	requireEnds(t, c)
}

// deliver sends a message until it is not given back.
func deliver(ctx context.Context, t *testing.T, c *child) []dataplane.Result {
	t.Helper()
	for {
		out, err := c.feed.Do(ctx, dataplane.Message{Value: []byte("second")})
		require.NoError(t, err)
		if len(out) != 1 || !out[0].Nack {
			return out
		}
		time.Sleep(out[0].NackOptions.Delay) // as the platform does
	}
}

// Messages that one limit has denied come again one after the other, at its pace.
func TestNacksOfALimitHaveATurnEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, err := throttle.New(throttle.Limit{Max: 60, Per: time.Minute, Burst: 1}, throttle.WithName("p/requests"))
		require.NoError(t, err)
		tokens, err := throttle.New(throttle.Limit{Max: 1_000_000, Per: time.Minute}, throttle.WithName("p/tokens"))
		require.NoError(t, err)
		s := testSettings(impatience)
		h := mustHandler(t, s, throttle.All(tokens, throttle.PerCall(requests)), answers(says("hi", 1, 1)), nil)
		for i := range 20 {
			out := h.Map(t.Context(), []string{"k"}, datum{value: "x"}).Items()
			require.Equal(t, []string{mapsdk.NACK}, out[0].Tags())
			delay, turn := *out[0].NackOptions().Delay, uint64(1000*(i+1))
			require.GreaterOrEqual(t, delay, turn-450, "message %d, half of the longest wait before its turn", i)
			require.LessOrEqual(t, delay, turn+1001, "message %d, with less than a turn of jitter", i)
		}
		require.NoError(t, requests.Close())
		require.NoError(t, tokens.Close())
	})
}

// A wait that is longer than maxPause is a stop: the next call tries at its end, and that is in the program's log.
func TestMaxPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book bytes.Buffer
		e := answers(refuses(429, "Retry-After: 3600", ""), says("hi", 1, 1))
		s := testSettings(func(s *settings) { s.MaxPause = 2 * time.Second })
		began := time.Now()
		r := ask(t.Context(), t, mustHandler(t, s, nil, e, slog.New(slog.NewTextHandler(&book, nil))), "x")
		require.Equal(t, "hi", r.Text)
		require.GreaterOrEqual(t, time.Since(began), time.Hour)
		require.Less(t, time.Since(began), time.Hour+5*time.Second)
		require.Contains(t, book.String(), "until somebody mends it")
	})
	clearEnv(t)
	t.Setenv("LLM_MAP_MAX_PAUSE", "6m")
	_, err := loadSettings()
	require.ErrorContains(t, err, "maxPause")
	require.ErrorContains(t, err, "`10ms` to `5m`")
}

func TestLimitsThatAreNotSetAreNoReasonToWarn(t *testing.T) {
	clearEnv(t)
	for _, limit := range []int{0, 5} {
		var book bytes.Buffer
		s := testSettings(func(s *settings) { s.RequestsPerMinute, s.Pool.Store, s.Pool.ID = limit, "static://?replicas=1", "p" })
		l, err := openLimits(t.Context(), s, nil, slog.New(slog.NewTextHandler(&book, nil)))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.NotContains(t, book.String(), "WARN")
	}
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The main promise, in virtual time: four processors share the limits of a provider that
// enforces them on its own clock, with each provider's way of counting. No call is refused,
// and of the tighter limit at least 0.97 is used.
func TestPoolStaysWithinTheLimitsAndUsesThem(t *testing.T) {
	for _, c := range []struct {
		name     string
		provider profile.Name
		prompts  int
		limits   fakellm.Config
	}{
		{"openai, tokens", openAI, 600, fakellm.Config{RequestsPerMinute: 3000, TokensPerMinute: 400_000}},
		{"azure, tokens", azure, 600, fakellm.Config{RequestsPerMinute: 3000, TokensPerMinute: 500_000}},
		{"anthropic, tokens", anthropic, 1000, fakellm.Config{RequestsPerMinute: 3000, TokensPerMinute: 400_000}},
		{"anthropic, requests", anthropic, 600, fakellm.Config{RequestsPerMinute: 2000, TokensPerMinute: 900_000}},
		{"self-hosted, tokens alone", selfHosted, 600, fakellm.Config{TokensPerMinute: 400_000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.limits.Provider, c.limits.Slice, c.limits.Latency = fakellm.Provider(c.provider), 5*time.Second, 300*time.Millisecond
				c.limits.Spread = 0.12
				const inFlight = 64
				c.limits.InFlight = inFlight // the provider refuses what is above it
				server, err := fakellm.New(c.limits)
				require.NoError(t, err)
				answered := runPool(t, server, c.prompts, func(s *settings) {
					s.Provider, s.MaxTokens, s.InFlight = c.provider, 200, inFlight
					s.RequestsPerMinute, s.TokensPerMinute = c.limits.RequestsPerMinute, c.limits.TokensPerMinute
				})
				require.Equal(t, c.prompts, answered)
				st, charges := server.Stats(), server.Charges()
				require.Zero(t, st.Refused(), "%+v", st)
				require.Equal(t, c.prompts, st.Served)
				requests, tokens := use(charges, c.limits)
				t.Logf("used %.3f of the requests and %.3f of the tokens, %d in flight at most", requests, tokens, st.MostInFlight)
				require.GreaterOrEqual(t, max(requests, tokens), 0.97)
				require.LessOrEqual(t, max(requests, tokens), 1.1, "with what was saved up at the beginning")
			})
		})
	}
}

// A pool whose limits are above the provider's is refused: the judge can tell.
func TestPoolAboveTheLimitsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := fakellm.New(fakellm.Config{Provider: fakellm.SelfHosted, TokensPerMinute: 100_000, Slice: 5 * time.Second})
		require.NoError(t, err)
		answered := runPool(t, server, 500, func(s *settings) { s.MaxTokens, s.TokensPerMinute = 200, 130_000 })
		require.Equal(t, 500, answered, "in the end")
		require.NotZero(t, server.Stats().RefusedTokens)
	})
}

// Never more calls at once than the limit, which is what binds here, and all of it is used. The
// division is even, because a share that moves leaves calls under way behind it.
func TestPoolStaysWithinTheCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := fakellm.New(fakellm.Config{Provider: fakellm.SelfHosted, InFlight: 16, Latency: time.Second})
		require.NoError(t, err)
		answered := runPool(t, server, 300, func(s *settings) { s.InFlight, s.Pool.Policy = 16, numathrottle.PolicyEven })
		require.Equal(t, 300, answered)
		st := server.Stats()
		require.Zero(t, st.Refused(), "%+v", st)
		require.Equal(t, 16, st.MostInFlight)
	})
}

// Each limit has a pool of its own, named after the vertex's, and those that are not set
// hold nothing back.
func TestPoolsOfTheLimits(t *testing.T) {
	s := testSettings(func(s *settings) {
		s.Pool = numathrottle.Config{Pool: "ns/pipeline/vertex", ID: "p"}
		s.RequestsPerMinute, s.TokensPerMinute, s.InFlight, s.BurstTime = 600, 90_000, 32, 2*time.Second
	})
	c := s.shaped()
	require.Equal(t, map[string]throttle.Limit{
		"requestsPerMinute": {Max: 600, Per: time.Minute, Burst: 20}, "tokensPerMinute": {Max: 90_000, Per: time.Minute, Burst: 3000},
	}, c.Limits())
	at := testenv.ClosedPort(t)
	s.Pool.HealthAddr = at
	opened(t, s)
	res, err := http.Get("http://" + at + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	for _, pool := range []string{"requests", "tokens", "in-flight"} {
		require.Contains(t, string(text), `limit="ns/pipeline/vertex/`+pool+`"`)
	}

	s = testSettings(nil)
	require.True(t, throttle.Unlimited(opened(t, s).limits.Limiter()))

	s.RequestsPerMinute, s.Pool.Store = 1, "http://h"
	_, err = openLimits(t.Context(), s, nil, discard())
	require.ErrorContains(t, err, `store has the scheme "http"`)
}

// runPool lets four processors answer so many prompts, and returns how many got an answer.
func runPool(t *testing.T, endpoint http.Handler, prompts int, change func(*settings)) int {
	t.Helper()
	store := "memory://" + strings.NewReplacer("/", "-", ",", "", "_", "-").Replace(t.Name())
	return answerPrompts(t, 4, prompts, func(i int) *handler {
		s := testSettings(func(s *settings) {
			s.BaseURL = "http://endpoint.invalid"
			s.Pool = numathrottle.Config{Store: store, Pool: "pool", ID: fmt.Sprint("p", i)}
			change(s)
		})
		return handlerOf(t, opened(t, s), endpoint, nil)
	})[""]
}

// answerPrompts lets processors answer so many prompts, of which they are offered 64 each at a time, and returns how many each
// deployment has answered.
func answerPrompts(t *testing.T, processors, prompts int, newProcessor func(i int) *handler) map[string]int {
	t.Helper()
	todo := make(chan int)
	var sending sync.WaitGroup
	var mu sync.Mutex
	answered := map[string]int{}
	for i := range processors {
		h := newProcessor(i)
		for range 64 {
			sending.Go(func() {
				for n := range todo {
					r := ask(t.Context(), t, h, fmt.Sprint("prompt ", n, strings.Repeat(" word", 20+n%150)))
					mu.Lock()
					if r.Error == nil {
						answered[r.Deployment]++
					}
					mu.Unlock()
				}
			})
		}
	}
	time.Sleep(5 * time.Second) // all have joined
	for n := range prompts {
		todo <- n
	}
	close(todo)
	sending.Wait()
	return answered
}

// use is how much of each limit was used between the first call and the last.
func use(charges []fakellm.Charge, limits fakellm.Config) (requests, tokens float64) {
	var from, to time.Time
	for _, c := range charges {
		if c.Requests > 0 {
			if from.IsZero() {
				from = c.At
			}
			to = c.At
		}
	}
	n, sum := fakellm.Sum(charges, from, to)
	minutes := to.Sub(from).Minutes()
	if limits.RequestsPerMinute > 0 {
		requests = float64(n) / (float64(limits.RequestsPerMinute) * minutes)
	}
	return requests, float64(sum) / (float64(limits.TokensPerMinute) * minutes)
}

// Who limits nothing is told what to set, of each deployment.
func TestNoLimitIsSaid(t *testing.T) {
	require.Contains(t, noLimit(&settings{}), "every call is sent at once; set LLM_MAP_REQUESTS_PER_MINUTE")
	for _, c := range []account.Config{
		{RequestsPerMinute: 1}, {TokensPerMinute: 1}, {InputTokensPerMinute: 1}, {InFlight: 1}, {RequestsPerDay: account.Day{Amount: 1}},
	} {
		s := settings{Config: c}
		require.Empty(t, noLimit(&s))
		two := settings{Config: account.Config{InFlight: 1}, targets: []settings{s, {Deployment: "spare"}}}
		require.Contains(t, noLimit(&two), "every call to the deployment spare is sent at once")
	}
}

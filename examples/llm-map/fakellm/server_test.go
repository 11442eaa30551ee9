package fakellm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func mustNew(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	return s
}

// ask sends a prompt of so many characters, without a network.
func ask(s *Server, characters, maxTokens int) *httptest.ResponseRecorder {
	body := fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, maxTokens, strings.Repeat("a", characters))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	return w
}

// The charge of each provider: 400 characters are 100 tokens.
func TestCharges(t *testing.T) {
	for _, c := range []struct {
		provider  Provider
		maxTokens int
		atArrival int
		corrected bool
	}{
		{OpenAI, 50, 100, false},
		{OpenAI, 300, 300, false},
		{OpenAI, 0, 1024, false},
		{Azure, 300, 400, false},
		{Anthropic, 300, 400, true},
		{SelfHosted, 300, 400, true},
	} {
		t.Run(fmt.Sprint(c.provider, c.maxTokens), func(t *testing.T) {
			s := mustNew(t, Config{Provider: c.provider, TokensPerMinute: 10_000})
			require.Equal(t, http.StatusOK, ask(s, 400, c.maxTokens).Code)
			charges := s.Charges()
			require.Equal(t, c.atArrival, charges[0].Tokens)
			require.Equal(t, c.corrected, len(charges) == 2)
			_, sum := Sum(charges, time.Time{}, time.Now().Add(time.Hour))
			if c.corrected {
				require.Equal(t, s.Stats().Used, sum)
			}
		})
	}
}

func TestLimitsOnItsOwnClock(t *testing.T) {
	for name, c := range map[string]Config{
		"requests": {RequestsPerMinute: 60, Slice: 10 * time.Second},
		"tokens":   {TokensPerMinute: 6000, Slice: 10 * time.Second, Provider: Azure}, // 100 a call
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mustNew(t, c)
				served := func() (n int) {
					for ask(s, 40, 90).Code == http.StatusOK {
						n++
					}
					return n
				}
				require.Equal(t, 10, served(), "what the slice holds")
				time.Sleep(3 * time.Second)
				require.InDelta(t, 3, served(), 1)
				time.Sleep(time.Hour)
				require.Equal(t, 10, served())
			})
		})
	}
}

// Calls that OpenAI refuses count, so whoever keeps calling stays refused.
func TestRefusedCallsCountAtOpenAI(t *testing.T) {
	for provider, want := range map[Provider]bool{OpenAI: false, Azure: true} {
		synctest.Test(t, func(t *testing.T) {
			s := mustNew(t, Config{Provider: provider, RequestsPerMinute: 60, Slice: time.Second})
			require.Equal(t, http.StatusOK, ask(s, 4, 1).Code)
			served := false
			for range 10 {
				time.Sleep(500 * time.Millisecond)
				served = served || ask(s, 4, 1).Code == http.StatusOK
			}
			require.Equal(t, want, served)
		})
	}
}

func TestRefusals(t *testing.T) {
	tooMany := func(c Config) *httptest.ResponseRecorder {
		s, _ := New(c)
		_ = ask(s, 4, 1)
		return ask(s, 4, 1)
	}
	limits := func(p Provider) Config { return Config{Provider: p, RequestsPerMinute: 6, Slice: 10 * time.Second} }
	spent := func(p Provider) Config { return Config{Provider: p, Quota: 1} }
	for _, c := range []struct {
		name   string
		config Config
		status int
		header string // that must be there; with - that must not
		body   string
	}{
		{"openai", limits(OpenAI), 429, "Retry-After-Ms", `"code":"rate_limit_exceeded"`},
		{"azure", limits(Azure), 429, "Retry-After-Ms", `"code":"429"`},
		{"anthropic", limits(Anthropic), 429, "Retry-After", `"type":"rate_limit_error"`},
		{"self-hosted", limits(SelfHosted), 429, "-Retry-After", "too many requests"},
		{"openai quota", spent(OpenAI), 429, "-Retry-After", `"code":"insufficient_quota"`},
		{"anthropic quota", spent(Anthropic), 429, "-Retry-After", "API usage limits"},
		{"too large for ever", Config{TokensPerMinute: 60, Slice: time.Second, DefaultMaxTokens: 5}, 429, "-Retry-After", `"type":"tokens"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tooMany(c.config)
			if c.name == "too large for ever" {
				s := mustNew(t, c.config)
				w = ask(s, 4, 5)
			}
			require.Equal(t, c.status, w.Code)
			require.Contains(t, w.Body.String(), c.body)
			name, absent := strings.CutPrefix(c.header, "-")
			require.Equal(t, !absent, w.Header().Get(name) != "", w.Header())
		})
	}
}

func TestHeadersTellHowTheLimitsStand(t *testing.T) {
	for provider, check := range map[Provider]func(h http.Header){
		OpenAI: func(h http.Header) {
			require.Equal(t, "59", h.Get("X-Ratelimit-Remaining-Requests"))
			d, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-Requests"))
			require.NoError(t, err)
			require.Equal(t, time.Second, d)
			require.Equal(t, "5990", h.Get("X-Ratelimit-Remaining-Tokens"))
		},
		Azure: func(h http.Header) {
			_, err := strconv.Atoi(h.Get("X-Ratelimit-Reset-Tokens"))
			require.NoError(t, err)
		},
		Anthropic: func(h http.Header) {
			require.Equal(t, "60", h.Get("Anthropic-Ratelimit-Requests-Limit"))
			_, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-Requests-Reset"))
			require.NoError(t, err)
		},
		SelfHosted: func(h http.Header) { require.Len(t, h, 1, "no more than the type of the content") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := mustNew(t, Config{Provider: provider, RequestsPerMinute: 60, TokensPerMinute: 6000})
			check(ask(s, 4, 10).Header())
		})
	}
}

func TestOverloadAboveTheCallsInFlight(t *testing.T) {
	for provider, status := range map[Provider]int{OpenAI: 503, Anthropic: 529} {
		synctest.Test(t, func(t *testing.T) {
			s := mustNew(t, Config{Provider: provider, InFlight: 2, Latency: time.Second})
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { _ = ask(s, 4, 1) })
			}
			synctest.Wait()
			require.Equal(t, status, ask(s, 4, 1).Code)
			calls.Wait()
			require.Equal(t, http.StatusOK, ask(s, 4, 1).Code)
			require.Equal(t, 2, s.Stats().MostInFlight)
		})
	}
}

func TestCallersFaults(t *testing.T) {
	s := mustNew(t, Config{APIKey: "secret", ContextTokens: 10})
	send := func(method, path, key, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.NotContains(t, w.Body.String(), "secret")
		return w
	}
	const path, fine = "/v1/chat/completions", `{"messages":[{"content":"hi"}]}`
	require.Equal(t, http.StatusOK, send(http.MethodPost, path, "secret", fine).Code)
	require.Equal(t, http.StatusUnauthorized, send(http.MethodPost, path, "other", fine).Code)
	require.Equal(t, http.StatusNotFound, send(http.MethodGet, path, "secret", fine).Code)
	require.Equal(t, http.StatusNotFound, send(http.MethodPost, "/v1/images", "secret", fine).Code)
	require.Equal(t, http.StatusBadRequest, send(http.MethodPost, path, "secret", "{").Code)
	require.Equal(t, http.StatusBadRequest, send(http.MethodPost, path, "secret", `{"messages":[]}`).Code)
	long := send(http.MethodPost, path, "secret", `{"messages":[{"content":"`+strings.Repeat("x", 41)+`"}]}`)
	require.Contains(t, long.Body.String(), "context_length_exceeded")
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := New(Config{Provider: "x", RequestsPerMinute: -1, Slice: time.Hour, Latency: -1})
	require.EqualError(t, err, "fakellm: provider is x, allowed: openai, azure, anthropic, gemini, bedrock, bedrock-mantle, groq, self-hosted\n"+
		"fakellm: requests per minute is -1, allowed: 0 (none) to 1000000000\n"+
		"fakellm: slice is 1h0m0s, allowed: 100ms to 1m\n"+
		"fakellm: latency is -1ns and 0s per token, allowed: 0 or more")
}

// Each form comes in its turn, and all cost the same.
func TestForms(t *testing.T) {
	forms, err := ParseForms("plain, parts,no-body,events")
	require.NoError(t, err)
	s := mustNew(t, Config{Forms: forms})
	for _, want := range []string{`"content":"a`, `"content":[{"type":"text"`, "", "data: {", `"content":"a`} {
		body := ask(s, 40, 10).Body.String()
		require.Contains(t, body, want)
		require.Equal(t, want == "", body == "")
	}
	require.Equal(t, 5, s.Stats().Served)
	for _, c := range s.Charges() {
		require.Equal(t, 10, c.Tokens)
	}
	_, err = ParseForms("plain,round")
	require.ErrorContains(t, err, `the form of an answer is "round"`)
	_, err = New(Config{Forms: []Form{"round"}})
	require.ErrorContains(t, err, "form is round")
}

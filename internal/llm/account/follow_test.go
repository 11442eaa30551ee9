package account_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// announcer is a service whose limit on requests per minute can change, and which announces it. It refuses calls beyond it, with a second's worth
// saved up.
type announcer struct {
	limit, refused, served atomic.Int64

	mu    sync.Mutex
	room  float64
	since time.Time
}

// RoundTrip implements http.RoundTripper.
func (s *announcer) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rate := float64(s.limit.Load()) / 60
	s.room = min(s.room+time.Since(s.since).Seconds()*rate, max(rate, 4))
	s.since = time.Now()
	status := http.StatusTooManyRequests
	if s.room >= 1 {
		s.room--
		status = http.StatusOK
		s.served.Add(1)
	} else {
		s.refused.Add(1)
	}
	res := answers(status, `{"usage":{"input_tokens":10,"output_tokens":1}}`)
	res.Header.Set("Retry-After", "1")
	res.Header.Set("Anthropic-Ratelimit-Requests-Limit", strconv.FormatInt(s.limit.Load(), 10))
	res.Header.Set("Anthropic-Ratelimit-Input-Tokens-Limit", "60000")
	res.Header.Set("Anthropic-Ratelimit-Output-Tokens-Limit", "60000")
	return res, nil
}

// Four processes follow what the service announces, down and up again, with a number as the most and without. A lower limit is followed within
// two syncs, and hardly costs refusals.
func TestAnnouncedLimitsAreFollowed(t *testing.T) {
	for _, most := range []int{0, 900} {
		virtually(t, fmt.Sprint("at most ", most), func(t *testing.T) {
			s := &announcer{since: time.Now()}
			s.limit.Store(600)
			var all sync.WaitGroup
			var done atomic.Bool
			var log bytes.Buffer
			for i := range 4 {
				c := account.Config{Provider: profile.Anthropic, Announced: true, RequestsPerMinute: most}
				c.Pool.Store, c.Pool.Pool, c.Pool.ID = fmt.Sprint("memory://follow", most), "acct", strconv.Itoa(i)
				out := slog.New(slog.DiscardHandler)
				if i == 0 {
					out = slog.New(slog.NewTextHandler(&log, nil))
				}
				l, err := account.Open(t.Context(), c, out)
				require.NoError(t, err)
				defer func() { require.NoError(t, l.Close()) }()
				for range 10 {
					all.Go(func() {
						for tr := l.Transport(s); !done.Load(); {
							call(t, tr, `{"max_tokens":1}`)
						}
					})
				}
			}
			per := func(d time.Duration) (served, refused float64) {
				before, wrong := s.served.Load(), s.refused.Load()
				time.Sleep(d)
				return float64(s.served.Load()-before) / d.Minutes(), float64(s.refused.Load() - wrong)
			}
			time.Sleep(30 * time.Second)
			served, _ := per(time.Minute)
			require.InDelta(t, 600, served, 12)
			s.limit.Store(300)
			_, refused := per(10 * time.Second)
			require.LessOrEqual(t, refused, 8.0)
			served, refused = per(time.Minute)
			require.InDelta(t, 300, served, 6)
			require.Zero(t, refused)
			s.limit.Store(600)
			time.Sleep(10 * time.Second)
			served, refused = per(time.Minute)
			require.InDelta(t, 600, served, 12)
			require.Zero(t, refused)
			done.Store(true)
			all.Wait()
			require.Equal(t, 3, bytes.Count(log.Bytes(), []byte("the service announces a limit, which the pool follows\" limit=acct/requests")), log.String())
		})
	}
}

// A service may announce the limits of several models in turn: the lowest of them is kept, and that is not logged with each answer.
func TestAlternatingAnnouncements(t *testing.T) {
	virtually(t, "", func(t *testing.T) {
		var sent atomic.Int64
		var alike atomic.Bool
		s := service(func(*http.Request, string) (*http.Response, error) {
			limit := "6000"
			if sent.Add(1)%2 == 0 && !alike.Load() {
				limit = "600"
			}
			res := answers(http.StatusOK, `{}`)
			res.Header.Set("X-Ratelimit-Limit-Req-Minute", limit)
			return res, nil
		})
		var log bytes.Buffer
		c := account.Config{Provider: profile.Mistral, Announced: true}
		c.Pool.Store, c.Pool.Pool = "memory://alternating", "acct"
		l, err := account.Open(t.Context(), c, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		tr := l.Transport(s)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for began := time.Now(); time.Since(began) < 3*time.Minute; {
					call(t, tr, `{"max_tokens":1}`)
				}
			})
		}
		time.Sleep(time.Minute)
		before := sent.Load()
		time.Sleep(time.Minute)
		require.InDelta(t, 600, sent.Load()-before, 12)
		alike.Store(true)
		time.Sleep(10 * time.Second)
		before = sent.Load()
		time.Sleep(20 * time.Second)
		require.InDelta(t, 2000, sent.Load()-before, 40)
		all.Wait()
		lines := bytes.Count(log.Bytes(), []byte("the pool follows\" limit=acct/requests"))
		require.Positive(t, lines)
		require.LessOrEqual(t, lines, 4, log.String())
	})
}

// Requests of a day are spread over its minutes, unless a limit of a day counts them.
func TestAnnouncedRequestsOfADay(t *testing.T) {
	for name, tc := range map[string]struct{ perMinute, perDay, want int }{
		"no number": {0, 0, 100}, "a number of a day": {0, 5_000_000, 60}, "a number of a minute": {300, 0, 300},
	} {
		virtually(t, name, func(t *testing.T) {
			var sent atomic.Int64
			s := service(func(*http.Request, string) (*http.Response, error) {
				sent.Add(1)
				res := answers(http.StatusOK, `{}`)
				res.Header.Set("X-Ratelimit-Limit-Requests", "144000")
				res.Header.Set("X-Ratelimit-Remaining-Requests", "143999")
				res.Header.Set("X-Ratelimit-Reset-Requests", "600ms")
				return res, nil
			})
			c := account.Config{Provider: profile.OpenAI, Announced: true, RequestsPerMinute: tc.perMinute}
			c.RequestsPerDay.Amount = tc.perDay
			c.Pool.Store, c.Pool.Pool = fmt.Sprint("memory://aday", tc.want), "acct"
			l, err := account.Open(t.Context(), c, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			tr := l.Transport(s)
			time.Sleep(5 * time.Second)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for began := time.Now(); time.Since(began) < 2*time.Minute; {
						call(t, tr, `{"max_tokens":1}`)
					}
				})
			}
			time.Sleep(time.Minute)
			before := sent.Load()
			time.Sleep(time.Minute)
			require.InDelta(t, tc.want, sent.Load()-before, 6)
			all.Wait()
		})
	}
}

// Limits of a rolling day follow; those with a reset at midnight, and a limiter of one's own, are told nothing. What is not followed is not
// logged as such.
func TestWhichLimitsAreTold(t *testing.T) {
	s := service(func(*http.Request, string) (*http.Response, error) {
		res := answers(http.StatusOK, `{}`)
		res.Header.Set("X-Ratelimit-Limit-Requests", "14400")
		res.Header.Set("X-Ratelimit-Limit-Tokens", "18000")
		return res, nil
	})
	own, err := throttle.New(throttle.Limit{Max: 600, Per: time.Minute})
	require.NoError(t, err)
	defer own.Close()
	announce, follow := hook.Announce, hook.Follow
	defer func() { hook.Announce, hook.Follow = announce, follow }()
	for name, tc := range map[string]struct {
		config   account.Config
		told     map[int]int64 // by the number of the limit
		follow   []int
		isLogged bool
	}{
		"rolling": {
			account.Config{Announced: true, RequestsPerDay: account.Day{Amount: 20_000}, TokensPerMinute: 30_000},
			map[int]int64{20_000: 14_400, 30_000: 18_000},
			[]int{30_000, 20_000},
			true,
		},
		"midnight": {
			account.Config{Announced: true, RequestsPerDay: account.Day{Amount: 20_000, Reset: account.Midnight}, TokensPerMinute: 30_000},
			map[int]int64{30_000: 18_000},
			[]int{30_000},
			true,
		},
		"not followed": {account.Config{TokensPerMinute: 30_000}, map[int]int64{30_000: 18_000}, nil, false},
		"another pool": {account.Config{Limiter: own}, map[int]int64{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			told, followed := map[int]int64{}, []int(nil)
			hook.Announce = func(l any, n int64) {
				of, ok := l.(*throttle.Throttle)
				require.True(t, ok)
				told[of.Status().Limit.Max] = n
			}
			hook.Follow = func(l any, first int64) any {
				of, ok := l.(throttle.Limit)
				require.True(t, ok)
				followed = append(followed, of.Max)
				return l
			}
			var log bytes.Buffer
			c := tc.config
			c.Provider, c.Pool.Store = profile.Groq, "memory://told"
			c.Pool.Pool = strings.ReplaceAll(name, " ", "-")
			l, err := account.Open(t.Context(), c, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			call(t, l.Transport(s), `{"max_tokens":1}`)
			require.Equal(t, tc.told, told)
			require.Equal(t, tc.follow, followed)
			require.Equal(t, tc.isLogged, strings.Contains(log.String(), "which the pool follows"))
		})
	}
}

// What is a part of a limit without a number is one of the limit that it begins with, also where a user shapes the limit.
func TestPartsOfAnnouncedLimits(t *testing.T) {
	c := account.Config{Provider: profile.OpenAI, Announced: true, Shape: func(_ profile.Kind, isMain bool, l throttle.Limit) throttle.Limit {
		l.Burst *= 2
		if isMain {
			l.Adaptive = true
		} else {
			l.Strict, l.Burst = true, 0
		}
		return l
	}}
	tokens, requests := c.Limits()["tokensPerMinute"], c.Limits()["requestsPerMinute"]
	require.Equal(t, 2000, tokens.Burst)
	require.Equal(t, 600, tokens.AdaptiveMin)
	require.Equal(t, 1, requests.Burst)
	require.Zero(t, requests.AdaptiveMin)
	require.NoError(t, tokens.Validate())
	require.NoError(t, requests.Validate())
	shape := c.Shape
	c.Shape = func(k profile.Kind, isMain bool, l throttle.Limit) throttle.Limit {
		if l = shape(k, isMain, l); isMain {
			l.AdaptiveMin = 5000
		}
		return l
	}
	require.Equal(t, 5000, c.Limits()["tokensPerMinute"].AdaptiveMin, "as it is configured")
	c.Shape, c.TokensPerMinute = shape, 900_000
	tokens = c.Limits()["tokensPerMinute"]
	require.Equal(t, 30_000, tokens.Burst)
	require.Zero(t, tokens.AdaptiveMin, "its default is a part of the number")
}

// The limits that a provider announces are there without numbers; for one that announces none that is a fault.
func TestAnnouncedWithoutNumbers(t *testing.T) {
	for provider, keys := range map[profile.Name][]string{
		profile.OpenAI: {"tokensPerMinute", "requestsPerMinute"}, profile.Azure: {"tokensPerMinute"}, profile.Groq: {"tokensPerMinute"},
		profile.Mistral:   {"tokensPerMinute", "requestsPerMinute"},
		profile.Anthropic: {"inputTokensPerMinute", "outputTokensPerMinute", "requestsPerMinute"},
	} {
		c := account.Config{Provider: provider, Announced: true}
		require.True(t, c.Any(), "no other limit is needed")
		var got []string
		for key, limit := range c.Limits() {
			got = append(got, key)
			require.NoError(t, limit.Validate())
		}
		require.ElementsMatch(t, keys, got, provider)
		require.Empty(t, c.CheckPools(account.Budget{}))
	}
	for _, provider := range []profile.Name{
		"", profile.Generic, profile.SelfHosted, profile.Gemini, profile.Bedrock, profile.BedrockMantle, profile.OpenRouter, profile.Cohere, profile.DeepSeek,
	} {
		c := account.Config{Provider: provider, Announced: true, RequestsPerMinute: 60}
		faults := c.CheckPools(account.Budget{})
		require.Len(t, faults, 1, provider)
		require.Regexp(t, "max is announced, but [a-z-]+ announces no limits, allowed: with `openai`", faults[0].Error())
	}
	c := account.Config{Provider: profile.OpenAI, Announced: true}
	c.Pool.Store = "static://?replicas=3"
	require.Contains(t, c.CheckPools(account.Budget{})[0].Error(), "max is announced, but the store is static")
}

package account_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
)

// Forty calls at once whose requests allow much longer answers than come. An output limit draws what is likely.
func TestLongestAnswersDoNotHoldCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, account.Config{Provider: profile.Anthropic, OutputTokensPerMinute: 90_000})
		const answer = `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":50,"output_tokens":300}}`
		tr := l.Transport(always(200, answer))
		for range 20 {
			call(t, tr, chat(100, 64_000))
		}
		time.Sleep(time.Minute)
		began, before := time.Now(), l.settled(t)["/output"]
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { call(t, tr, chat(100, 64_000)) })
		}
		all.Wait()
		require.LessOrEqual(t, time.Since(began), 10*time.Second)
		require.Equal(t, 40*300, l.settled(t)["/output"]-before)
	})
}

// All limits together: a draw beyond the burst of a minute's limit gets its tokens and those of the budgets, also when that takes more than
// half a minute, and what each limit is charged is exact.
func TestAllLimitsAtOnce(t *testing.T) {
	for name, input := range map[string]int{"20 s a call": 3000, "a minute a call": 1000} {
		virtually(t, name, func(t *testing.T) {
			p, c := purse(t, t.Name(), map[string]account.Price{"m": {Input: "1", Output: "2"}})
			c.Provider, c.Purse = profile.SelfHosted, p
			c.RequestsPerMinute, c.InputTokensPerMinute, c.OutputTokensPerMinute, c.TokensPerMinute, c.InFlight = 60, input, 1000, 4000, 2
			c.RequestsPerDay, c.TokensPerDay = account.Day{Amount: 1_000_000}, account.Day{Amount: 1_000_000, Reset: account.Midnight}
			l := open(t, c)
			tr := l.Transport(always(200, `{"usage":{"prompt_tokens":1000,"completion_tokens":100}}`))
			began := time.Now()
			for range 5 {
				call(t, tr, chat(4000, 100))
			}
			require.InDelta(t, 5*1000/float64(input), time.Since(began).Minutes(), 0.5)
			require.Equal(t, map[string]int{
				"/requests": 5, "/input": 5000, "/output": 500, "/tokens": 5500, "/in-flight": 5, "/requests-day": 5, "/tokens-day": 5500, "/money": 6000,
			}, l.settled(t))
		})
	}
}

// Callers that give up while they wait hold nothing.
func TestCallersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := every(profile.Anthropic)
		c.InFlight = 1
		l := open(t, c)
		release := make(chan struct{})
		tr := l.Transport(service(func(*http.Request, string) (*http.Response, error) {
			<-release
			return answers(200, anthropicAnswer), nil
		}))
		time.Sleep(time.Minute)
		var first sync.WaitGroup
		first.Go(func() { call(t, tr, chat(10, 10)) })
		synctest.Wait()
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://llm/v1/messages", strings.NewReader(chat(10, 10)))
			require.NoError(t, err)
			_, err = tr.RoundTrip(req)
			require.ErrorIs(t, err, context.Canceled)
		}
		close(release)
		first.Wait()
		call(t, tr, chat(10, 10))
		require.Equal(t, 2, l.settled(t)["/requests"])
	})
}

// Each attempt draws and counts, and holds its slot only while it is made.
func TestEachAttemptCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := every(profile.SelfHosted)
		c.InFlight = 1
		l := open(t, c)
		n := 0
		tr := l.Transport(service(func(*http.Request, string) (*http.Response, error) {
			if n++; n < 3 {
				res := answers(429, `{"error":{"code":"rate_limit_exceeded"}}`)
				res.Header.Set("Retry-After", "2")
				return res, nil
			}
			return answers(200, `{"usage":{"prompt_tokens":30,"completion_tokens":4}}`), nil
		}))
		require.Equal(t, 200, call(t, tr, chat(200, 10)))
		require.Equal(t, map[string]int{"/requests": 3, "/input": 130, "/output": 24, "/tokens": 154, "/in-flight": 3}, l.settled(t))
	})
}

// Through an http.Client each request of a redirect counts.
func TestRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, every(profile.SelfHosted))
		client := &http.Client{Transport: l.Transport(service(func(req *http.Request, body string) (*http.Response, error) {
			require.Len(t, body, len(chat(200, 10)))
			if req.URL.Path == "/v1/messages" {
				res := answers(307, "")
				res.Header.Set("Location", "/v2/messages")
				return res, nil
			}
			return answers(200, `{"usage":{"prompt_tokens":30,"completion_tokens":4}}`), nil
		}))}
		res, err := client.Post("http://llm/v1/messages", "application/json", strings.NewReader(chat(200, 10)))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 200, res.StatusCode)
		require.Equal(t, map[string]int{"/requests": 2, "/input": 80, "/output": 14, "/tokens": 94, "/in-flight": 2}, l.settled(t))
	})
}

// A call whose answer has no end in its request never draws more than a limit can grant.
func TestSmallLimits(t *testing.T) {
	for name, c := range map[string]account.Config{
		"a minute":                 {TokensPerMinute: 500},
		"a rolling day":            {TokensPerDay: account.Day{Amount: 500, Burst: 500}},
		"a day":                    {TokensPerDay: account.Day{Amount: 500, Reset: account.Midnight}},
		"a day with a small burst": {TokensPerDay: account.Day{Amount: 100_000, Burst: 10}},
	} {
		virtually(t, name, func(t *testing.T) {
			time.Sleep(23 * time.Hour)
			l := open(t, c)
			tr := l.Transport(always(200, `{"usage":{"prompt_tokens":20,"completion_tokens":4}}`))
			for range 2 { // the second one of a day waits until midnight
				call(t, tr, chat(100, 0))
			}
			for _, n := range l.settled(t) {
				require.Equal(t, 48, n)
			}
		})
	}
}

// A prompt that is longer than a limit is not sent, whether its request bounds the answer or not.
func TestPromptsLongerThanALimit(t *testing.T) {
	for _, most := range []int{0, 10} {
		virtually(t, fmt.Sprint(most), func(t *testing.T) {
			l := open(t, account.Config{InputTokensPerMinute: 1000})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://llm/", strings.NewReader(chat(100_000, most)))
			require.NoError(t, err)
			_, err = l.Transport(always(200, `{}`)).RoundTrip(req)
			require.ErrorContains(t, err, "can never be granted")
		})
	}
}

// A limit that is refilled all day begins with an hour's worth, and then earns its tokens.
func TestARollingDayBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, account.Config{Provider: profile.SelfHosted, RequestsPerDay: account.Day{Amount: 2400}})
		tr := l.Transport(always(200, `{}`))
		began := time.Now()
		for range 100 {
			call(t, tr, chat(1, 1))
		}
		require.Less(t, time.Since(began), time.Minute)
		for range 100 {
			call(t, tr, chat(1, 1))
		}
		require.InDelta(t, 60, time.Since(began).Minutes(), 2)
	})
}

// A second pod begins a day with its part of an hour's worth, also where its first call comes before it has a share.
func TestARollingDayBeginsInTwoPods(t *testing.T) {
	// Its part is half, and more while it alone asks.
	for after, most := range map[time.Duration]int{0: 103, 30 * time.Second: 53} {
		virtually(t, fmt.Sprint("calls after ", after), func(t *testing.T) {
			pod := func(id string) *account.Limits {
				c := account.Config{Provider: profile.SelfHosted, RequestsPerDay: account.Day{Amount: 2400}}
				c.Pool.Store, c.Pool.Pool, c.Pool.ID = fmt.Sprint("memory://two-pods-", after), "acct", id
				l, err := account.Open(t.Context(), c, slog.New(slog.DiscardHandler))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, l.Close()) })
				return l
			}
			pod("first")
			time.Sleep(30 * time.Second)
			tr := pod("second").Transport(always(200, `{}`))
			time.Sleep(after)
			began, sent := time.Now(), 0
			for ; time.Since(began) < 30*time.Second; sent++ {
				call(t, tr, chat(1, 1))
			}
			require.GreaterOrEqual(t, sent, 47)
			require.LessOrEqual(t, sent, most)
		})
	}
}

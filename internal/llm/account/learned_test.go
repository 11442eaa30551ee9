package account_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// OpenAI counts characters, whatever the language, and others the bytes that their answers have taught.
func TestCharactersAndBytes(t *testing.T) {
	s := prompt.Size{Bytes: 3000, Chars: 1000, Inputs: 1, Answer: 10} // such as Chinese
	for name, want := range map[profile.Name]int{profile.OpenAI: 250, profile.Azure: 250, profile.Groq: 750, profile.SelfHosted: 750} {
		l := open(t, account.Config{Provider: name, TokensPerMinute: 1_000_000})
		require.Equal(t, want, l.Prompt(&account.Call{Size: s}), name)
	}
}

// A limit learns what it is charged for a byte: a cached share that is free costs it nothing in advance, and one that counts does. An answer that
// broke off teaches nothing.
func TestWhatLimitsLearn(t *testing.T) {
	const usage = `"usage":{"input_tokens":50,"cache_read_input_tokens":950,"output_tokens":100}`
	whole := `{"type":"message","stop_reason":"end_turn",` + usage + `}`
	for name, tc := range map[string]struct {
		config account.Config
		answer string
		input  int
	}{
		"free":       {account.Config{CachedInput: profile.CachedFree}, whole, 200}, // 0.05 a byte at least
		"counted":    {account.Config{CachedInput: profile.CachedCounted}, whole, 1000},
		"broken off": {account.Config{CachedInput: profile.CachedFree}, "event: message_start\ndata: {\"message\":{" + usage + "}}\n\n", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Provider, tc.config.InputTokensPerMinute = profile.Anthropic, 100_000_000
			l := open(t, tc.config)
			tr := l.Transport(scripted(func(*http.Request) (int, string, string) { return 200, "", tc.answer }))
			for range 120 {
				post(t, tr, "http://service.test/v1/messages", chat(4000, 500))
			}
			before := l.settled(t)["/input"]
			silent := l.Transport(scripted(func(*http.Request) (int, string, string) { return 200, "", `{}` })) // it costs what it draws
			post(t, silent, "http://service.test/v1/messages", chat(4000, 500))
			require.InEpsilon(t, tc.input, l.settled(t)["/input"]-before, 0.05)
		})
	}
}

// Through a transport each tenant has its quota.
func TestQuotasOfTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, account.Config{
			Provider: profile.SelfHosted, TokensPerMinute: 600_000, Tag: func(r *http.Request) string { return r.Header.Get("X-Team") },
			Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"small": {Total: 600}}},
		})
		time.Sleep(time.Minute)
		tr := l.Transport(scripted(func(*http.Request) (int, string, string) {
			return 200, "", `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":100}}`
		}))
		for team, least := range map[string]time.Duration{"small": 90 * time.Second, "large": 0} {
			began := time.Now()
			for range 10 { // of 200 tokens
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://service.test/v1/x", strings.NewReader(chat(400, 100)))
				require.NoError(t, err)
				req.Header.Set("X-Team", team)
				res, err := (&http.Client{Transport: tr}).Do(req)
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
			}
			require.GreaterOrEqual(t, time.Since(began), least, team)
			require.Less(t, time.Since(began), least+5*time.Minute, team)
		}
	})
}

// What a call draws and does not use goes back, whether it is given up by its caller or because a budget was spent in the meantime.
func TestNothingIsHeldInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(23 * time.Hour)
		l := open(t, account.Config{
			Provider: profile.SelfHosted, RequestsPerMinute: 6, InFlight: 2, RequestsPerDay: account.Day{Amount: 1, Reset: account.Midnight},
		})
		acquire := func(within time.Duration) (throttle.Permit, error) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			return l.Limiter().Acquire(account.WithCall(ctx, &account.Call{Size: prompt.Size{Bytes: 4}}), 1)
		}
		given, err := acquire(time.Minute)
		require.NoError(t, err)
		given.Cancel() // it was not made: neither the day nor the slot has it

		type end struct {
			permit throttle.Permit
			err    error
		}
		ends := make(chan end, 2)
		for range 2 { // both see that the day has a call left, and wait for the minute's
			go func() {
				p, err := acquire(time.Minute)
				ends <- end{p, err}
			}()
		}
		var kept []throttle.Permit
		for range 2 {
			if e := <-ends; e.err == nil {
				kept = append(kept, e.permit)
			} else {
				require.ErrorContains(t, e.err, "requests-day")
			}
		}
		require.Len(t, kept, 1, "one call a day")
		time.Sleep(2 * time.Hour) // past midnight
		p, err := acquire(time.Minute)
		require.NoError(t, err, "the slot of the call that the day refused is free")
		p.Settle(1)
		kept[0].Settle(1)
		fmt.Fprint(t.Output(), l.settled(t))
	})
}

// A side that a usage lacks counts as it was drawn, whatever other answers have taught meanwhile.
func TestAMissingSideCountsAsDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, account.Config{Provider: profile.SelfHosted, InputTokensPerMinute: 60_000_000})
		time.Sleep(time.Minute)
		hold := make(chan struct{})
		slow := l.Transport(scripted(func(*http.Request) (int, string, string) {
			<-hold
			return 200, "", `{"choices":[{"finish_reason":"stop"}],"usage":{"completion_tokens":7}}`
		}))
		var first sync.WaitGroup
		first.Go(func() { post(t, slow, "http://service.test/v1/x", chat(4000, 10)) })
		synctest.Wait()
		quick := l.Transport(scripted(func(*http.Request) (int, string, string) {
			return 200, "", `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":3600,"completion_tokens":7}}`
		}))
		for range 100 {
			post(t, quick, "http://service.test/v1/x", chat(4000, 10))
		}
		before := l.settled(t)["/input"]
		close(hold)
		first.Wait()
		require.Equal(t, 1000, l.settled(t)["/input"]-before)
	})
}

// Without AnyType only answers that can be those of an LLM have a usage.
func TestTypesOfAnswers(t *testing.T) {
	for _, anyType := range []bool{false, true} {
		for kind, isOne := range map[string]bool{"application/json": true, "text/plain": false, "": false} {
			l := openAs(t, account.Config{Provider: profile.SelfHosted, InputTokensPerMinute: 60_000_000, AnyType: anyType}, fmt.Sprint(anyType, kind))
			s := answering(t, kind, openAIAnswer)
			post(t, l.Transport(nil), s.URL+"/v1/x", chat(4000, 10))
			want := 1000
			if isOne || anyType {
				want = 2000
			}
			require.Equal(t, want, l.settled(t)["/input"], "%q %t", kind, anyType)
		}
	}
}

// A call that could not be sent costs no money.
func TestCallsThatAreNotSentCostNothing(t *testing.T) {
	p, c := purse(t, t.Name(), map[string]account.Price{"m": {Input: "1", Output: "15"}})
	c.Purse, c.Provider = p, profile.SelfHosted
	l := open(t, c)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+testenv.ClosedPort(t)+"/v1/x", strings.NewReader(chat(10, 64_000)))
	require.NoError(t, err)
	_, err = l.Transport(nil).RoundTrip(req)
	require.Error(t, err)
	require.Zero(t, l.settled(t)["/money"])
}

// The model of a request, for its price.
func TestTheModelOfARequest(t *testing.T) {
	for path, want := range map[string]string{
		"/v1beta/models/gemini-pro:generateContent": "gemini-pro", "/v1beta/models/gemini-pro:streamGenerateContent": "gemini-pro",
		"/v1beta/models/e:batchEmbedContents": "e", "/model/amazon.nova:0/converse": "amazon.nova:0", "/openai/deployments/mini/chat/completions": "mini",
		"/v1/chat/completions": "", "/": "", "": "", "/models": "",
	} {
		require.Equal(t, want, account.ModelOf(&url.URL{Path: path}, prompt.Size{}), path)
		require.Equal(t, "gemini-embedding-001", account.ModelOf(&url.URL{Path: path}, prompt.Size{Model: "models/gemini-embedding-001"}))
	}
}

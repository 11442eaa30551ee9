package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// aboveLimit is what OpenAI says of a request above the limit of a minute, with 429.
const aboveLimit = `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. ` +
	`The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}`

// Every kind of answer, through the real client and a real connection.
func TestJudge(t *testing.T) {
	const rate = `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`
	for _, c := range []struct {
		name     string
		provider profile.Name
		answer   answer
		verdict  verdict
		code     string
	}{
		{"good", openAI, says("hi", 1, 1), answered, ""},
		{"openai, a limit", openAI, refuses(429, "Retry-After: 3", rate), wait, "rate_limit_exceeded"},
		{"openai, a limit, for how long is not told", openAI, refuses(429, "", rate), wait, "rate_limit_exceeded"},
		{"openai, quota spent", openAI, refuses(429, "", `{"error":{"message":"x","code":"insufficient_quota"}}`), stop, "insufficient_quota"},
		{"openai, overloaded", openAI, refuses(503, "", `{"error":{"message":"overloaded","type":"server_error"}}`), overload, "server_error"},
		{"azure, a limit", azure, refuses(429, "Retry-After-Ms: 900", `{"error":{"code":"429","message":"exceeded token rate limit"}}`), wait, "429"},
		{"anthropic, a limit", anthropic, refuses(429, "Retry-After: 3", `{"error":{"type":"rate_limit_error","message":"x"}}`), wait, "rate_limit_error"},
		{"anthropic, a limit without a time", anthropic, refuses(429, "", `{"error":{"type":"rate_limit_error","message":"x"}}`), wait, "rate_limit_error"},
		{
			"anthropic, spend limit", anthropic,
			refuses(429, "", `{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`),
			stop, "enforced_spend_limit_reached",
		},
		{"azure, a day", azure, refuses(429, "Retry-After: 86400", `{"error":{"code":"429","message":"x"}}`), stop, "429"},
		{"420", selfHosted, refuses(420, "", ""), wait, "rate_limited"},
		{"424", selfHosted, refuses(424, "", "x"), failed, "424"},
		{"498", selfHosted, refuses(498, "", `{"error":{"type":"capacity_exceeded"}}`), overload, "capacity_exceeded"},
		{"499", selfHosted, refuses(499, "", ""), failed, "499"},
		{"throttled by 400", selfHosted, refuses(400, "", `{"__type":"a.b#ThrottlingException","message":"Rate exceeded"}`), wait, "ThrottlingException"},
		{"a limit told by 400", openAI, refuses(400, "", `{"error":{"code":"rate_limit_exceeded"}}`), wait, "rate_limit_exceeded"},
		{"a limit told by 403", openAI, refuses(403, "", `{"error":{"status":"RESOURCE_EXHAUSTED","code":403}}`), wait, "RESOURCE_EXHAUSTED"},
		{"a limit told by 403 and a time", selfHosted, refuses(403, "Retry-After: 3", ""), wait, "rate_limited"},
		{"overload told by 500", openAI, refuses(500, "", `{"error":{"code":"server_is_overloaded"}}`), overload, "server_is_overloaded"},
		{
			"money in flight", selfHosted,
			refuses(402, "Retry-After: 3", `{"error":{"metadata":{"limit_source":"openrouter_in_flight_budget"}}}`), wait, "rate_limited",
		},
		{
			"a call above the budget", selfHosted,
			refuses(402, "", `{"error":{"code":"too_expensive","metadata":{"reason":"weight_exceeds_budget"}}}`), invalid, "too_expensive",
		},
		{"a limit in an answer, by code", selfHosted, refuses(200, "", `{"error":{"code":"RequestLimitExceeded"}}`), overload, "RequestLimitExceeded"},
		{"an overload in an answer", selfHosted, refuses(200, "", `{"error":{"type":"overloaded_error"}}`), overload, "overloaded_error"},
		{
			"above the limit of a minute", selfHosted,
			refuses(413, "", `{"error":{"message":"Request too large: Limit 6000, Requested 9163","type":"tokens","code":"rate_limit_exceeded"}}`),
			invalid, "rate_limit_exceeded",
		},
		{"above the limit of a minute, with 429", openAI, refuses(429, "", aboveLimit), invalid, "rate_limit_exceeded"},
		{"above the limit of a minute, in an answer", openAI, refuses(200, "", aboveLimit), invalid, "rate_limit_exceeded"},
		{
			"a call above the budget, with a sentence", selfHosted,
			refuses(402, "", `{"error":{"message":"Insufficient credits","code":"too_expensive","metadata":{"reason":"weight_exceeds_budget"}}}`),
			invalid, "too_expensive",
		},
		{"anthropic, overloaded", anthropic, refuses(529, "", `{"error":{"type":"overloaded_error","message":"Overloaded"}}`), overload, "overloaded_error"},
		{"self-hosted, a limit", selfHosted, refuses(429, "", "too many requests"), wait, "rate_limited"},
		{"wrong key", openAI, refuses(401, "", `{"error":{"message":"Incorrect key: `+canary+`","code":"invalid_api_key"}}`), stop, "invalid_api_key"},
		{"wrong key told by 400", openAI, refuses(400, "", `{"error":{"message":"x","code":"invalid_api_key"}}`), stop, "invalid_api_key"},
		{"no such model told by 400", selfHosted, refuses(400, "", `{"error":{"message":"x","type":"not_found_error"}}`), stop, "not_found_error"},
		{"a filter told by 403", openAI, refuses(403, "", `{"error":{"message":"x","code":"content_filter"}}`), invalid, "content_filter"},
		{"a prompt too long told by 404", openAI, refuses(404, "", `{"error":{"code":"context_length_exceeded"}}`), invalid, "context_length_exceeded"},
		{"a code told by 422", openAI, refuses(422, "", `{"error":{"code":"invalid_api_key"}}`), invalid, "invalid_api_key"},
		{"a code and a number", openAI, refuses(403, "", `{"error":{"code":403,"type":"invalid_request_error"}}`), stop, "invalid_request_error"},
		{"a code and its type", openAI, refuses(401, "", `{"error":{"code":"invalid_api_key","type":"invalid_request_error"}}`), stop, "invalid_api_key"},
		{"a key told by a general type", openAI, refuses(401, "", `{"error":{"message":"x","type":"invalid_request_error"}}`), stop, "invalid_request_error"},
		{"a model told by a general type", openAI, refuses(404, "", `{"error":{"message":"x","type":"invalid_request_error"}}`), stop, "invalid_request_error"},
		{
			"a country told by 403", openAI, refuses(403, "", `{"error":{"code":"unsupported_country_region_territory"}}`),
			stop, "unsupported_country_region_territory",
		},
		{"words told by 400", openAI, refuses(400, "", `{"error":{"message":"invalid api key"}}`), invalid, "400"},
		{"a timeout told by 400", openAI, refuses(400, "", `{"error":{"message":"x","code":"timeout"}}`), invalid, "timeout"},
		{"forbidden", azure, refuses(403, "", "Traffic is not from an approved private endpoint."), stop, "403"},
		{"no such model", openAI, refuses(404, "", `{"error":{"message":"no such model","code":"model_not_found"}}`), stop, "model_not_found"},
		{"spent credit", selfHosted, refuses(402, "", `{"error":{"message":"x","code":"payment_required"}}`), stop, "payment_required"},
		{
			"prompt too long", openAI,
			refuses(400, "", `{"error":{"message":"context","type":"invalid_request_error","code":"context_length_exceeded"}}`),
			invalid, "context_length_exceeded",
		},
		{
			"credit told by 400", anthropic,
			refuses(400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`),
			stop, "insufficient_credits",
		},
		{
			"spent, told by 412", selfHosted,
			refuses(412, "", `{"error":{"message":"Account x is suspended, possibly due to reaching the monthly spending limit","code":"FAILED"}}`),
			stop, "spend_limit_reached",
		},
		{"a code told by 400", openAI, refuses(400, "", `{"error":{"message":"x","code":"billing_hard_limit_reached"}}`), stop, "billing_hard_limit_reached"},
		{
			"a prompt that speaks of credit", openAI,
			refuses(400, "", `{"error":{"message":"Invalid value: 'insufficient_quota, credit balance is too low'","type":"invalid_request_error"}}`),
			invalid, "invalid_request_error",
		},
		{"content filter", azure, refuses(400, "", `{"error":{"message":"filtered","code":"content_filter"}}`), invalid, "content_filter"},
		{"request too long", selfHosted, refuses(413, "", "<html>413</html>"), invalid, "413"},
		{"a number as code", selfHosted, refuses(422, "", `{"error":{"message":"x","code":7}}`), invalid, "422"},
		{"server error", openAI, refuses(500, "", `{"error":{"message":"x","type":"server_error"}}`), failed, "server_error"},
		{"bad gateway", selfHosted, refuses(502, "", "<html>bad gateway</html>"), failed, "502"},
		{"request timeout", selfHosted, refuses(408, "", ""), failed, "408"},
		{"no JSON", selfHosted, refuses(200, "", "it works!"), failed, "not_json"},
		{"redirect", selfHosted, refuses(307, "Location: http://elsewhere.invalid/", ""), stop, "redirected"},
		{"broken off", selfHosted, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, failed, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(c.answer))
			defer server.Close()
			s := testSettings(func(s *settings) { s.Provider, s.BaseURL = c.provider, server.URL })
			o := judge(t.Context(), complete(t.Context(), t, &s, throttletest.New()))
			require.Equal(t, c.verdict, o.verdict, o.err)
			require.Equal(t, c.code, o.code)
			require.NotContains(t, o.text, canary)
			require.Equal(t, c.verdict == answered, o.text == "")
		})
	}
}

// A limit that follows the service holds nobody else back for a short time, or an unknown one. The refused message itself waits.
func TestARefusedMessageWaitsWithAnAdaptiveLimit(t *testing.T) {
	for name, c := range map[string]struct {
		after string
		waits []time.Duration // at least; at most half as long again
	}{
		"told":     {"Retry-After: 2", []time.Duration{2 * time.Second, 2 * time.Second}},
		"not told": {"", []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}},
	} {
		for n := 1; n <= 2; n++ { // deployments
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var script []answer
					for range c.waits {
						script = append(script, refuses(429, c.after, ""))
					}
					hosts := byHost{}
					var targets []target
					for i := range n {
						host := fmt.Sprint(i)
						hosts[host] = answers(append(script, says("hi", 1, 1))...)
						l, err := throttle.New(throttle.Limit{Max: 1_000_000, Per: time.Minute, Adaptive: true})
						require.NoError(t, err)
						defer func() { require.NoError(t, l.Close()) }()
						s := testSettings(func(s *settings) { s.Deployment, s.BaseURL = host, "http://"+host })
						targets = append(targets, drawing(t, s, l, nil))
					}
					time.Sleep(time.Minute) // the limits start slowly
					h, err := newHandler(targets[0].settings, targets, inMemory{hosts}, discard())
					require.NoError(t, err)
					require.Equal(t, "hi", ask(t.Context(), t, h, "x").Text)
					e, ok := hosts["0"].(*endpoint)
					require.True(t, ok)
					require.GreaterOrEqual(t, e.count(), len(c.waits), "of several deployments another may answer first")
					for i, wait := range c.waits[:e.count()-1] {
						waited := e.at[i+1].Sub(e.at[i])
						require.GreaterOrEqual(t, waited, wait)
						require.LessOrEqual(t, waited, wait*3/2+100*time.Millisecond)
					}
				})
			})
		}
	}
}

// complete makes one call.
func complete(ctx context.Context, t *testing.T, s *settings, l throttle.Limiter) error {
	t.Helper()
	of := drawing(t, *s, l, nil)
	c, err := newClient(s, of.limits, of.limits.Limiter(), nil, discard())
	if err != nil {
		return err
	}
	_, err = c.complete(ctx, &account.Call{}, question{messages: []chat.Message{{Role: chat.User, Content: "hi"}}})
	return err
}

func TestJudgeErrorsOfOurOwn(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the end of the connection is noticed
		<-r.Context().Done()
	}))
	defer slow.Close()
	impatient := testSettings(func(s *settings) { s.BaseURL = slow.URL })
	impatient.Timeout = time.Millisecond // less than can be set
	for _, c := range []struct {
		name    string
		ctx     context.Context //nolint:containedctx // a case
		err     error
		verdict verdict
		code    string
	}{
		{"context ended", over, errors.New("x"), ended, ""},
		{"limiter closed", t.Context(), fmt.Errorf("x: %w", &throttle.Error{Reason: throttle.ReasonClosed}), ended, ""},
		{"too large", t.Context(), &throttle.Error{Reason: throttle.ReasonTooLarge}, invalid, codeTooLarge},
		{"a long pause", t.Context(), &throttle.Error{Reason: throttle.ReasonPause, RetryAfter: time.Hour}, wait, "throttled"},
		{"timeout", t.Context(), complete(t.Context(), t, &impatient, nil), failed, "timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := judge(c.ctx, c.err)
			require.Equal(t, c.verdict, o.verdict, c.err)
			require.Equal(t, c.code, o.code)
		})
	}
	require.Equal(t, time.Hour, judge(t.Context(), &throttle.Error{Reason: throttle.ReasonPause, RetryAfter: time.Hour}).after)
}

// The log says what kept a call from the endpoint; the result, which goes on through the
// pipeline, does not.
func TestWhyTheEndpointCannotBeReached(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s := testSettings(func(s *settings) { s.BaseURL = server.URL })
	o := judge(t.Context(), complete(t.Context(), t, &s, nil))
	require.Equal(t, failed, o.verdict)
	require.Contains(t, o.detail, "connect")
	require.NotContains(t, o.text, "127.0.0.1")

	s.APIKey = program.Credential{File: "/nowhere/key"}
	o = judge(t.Context(), complete(t.Context(), t, &s, nil))
	require.Equal(t, failed, o.verdict)
	require.Contains(t, o.detail, "apiKey: a secret cannot be read: open /nowhere/key")
}

// What each provider is sent: the path, the key where it belongs, and the answer's bound.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		provider profile.Name
		model    string
		path     string
		header   string
		key      string
		field    string
	}{
		{openAI, "gpt-4o", "/chat/completions", "Authorization", "Bearer " + canary, "max_completion_tokens"},
		{azure, "my-gpt-4.1", "/openai/deployments/my-gpt-4.1/chat/completions?api-version=2024-10-21", "Api-Key", canary, "max_tokens"},
		{anthropic, "claude", "/chat/completions", "Authorization", "Bearer " + canary, "max_tokens"},
		{selfHosted, "llama", "/chat/completions", "Authorization", "Bearer " + canary, "max_tokens"},
		{selfHosted, "gpt-5-mini", "/chat/completions", "Authorization", "Bearer " + canary, "max_completion_tokens"},
	} {
		t.Run(string(c.provider)+" "+c.model, func(t *testing.T) {
			var path string
			var header http.Header
			e := answers(func(w http.ResponseWriter, r *http.Request) {
				path, header = r.URL.RequestURI(), r.Header
				says("hi", 1, 1)(w, r)
			})
			s := testSettings(func(s *settings) { s.Provider, s.Model, s.BaseURL = c.provider, c.model, "http://endpoint.invalid" })
			require.Equal(t, "hi", ask(t.Context(), t, mustHandler(t, s, nil, e, nil), "x").Text)
			require.Equal(t, c.path, path)
			require.Equal(t, c.key, header.Get(c.header))
			require.Contains(t, e.calls[0], `"`+c.field+`":100`)
			if c.header != "Authorization" {
				require.Empty(t, header.Get("Authorization"))
			}
		})
	}
}

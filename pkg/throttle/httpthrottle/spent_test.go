package httpthrottle_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// spentBodies are bodies of refusals that no wait cures, with the code of the refusal.
var spentBodies = []struct{ name, body, code string }{
	{
		"OpenAI",
		`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, "insufficient_quota",
	},
	{"a list", `[{"error":{"code":"insufficient_quota"}}]`, "insufficient_quota"},
	{"unwrapped", `{"code":"insufficient_quota","message":"quota"}`, "insufficient_quota"},
	{"detail", `{"detail":{"error":{"type":"insufficient_quota"}}}`, "insufficient_quota"},
	{"detail as text", `{"detail":"insufficient_quota"}`, "insufficient_quota"},
	{"details as a list", `{"detail":["too many requests","insufficient_quota"]}`, "insufficient_quota"},
	{"errors", `{"errors":[{"extensions":{"code":"INSUFFICIENT_QUOTA"}}]}`, "INSUFFICIENT_QUOTA"},
	{"error as text", `{"error":"insufficient_quota"}`, "insufficient_quota"},
	{"another spelling", `{"error":{"code":"InsufficientQuota"}}`, "InsufficientQuota"},
	{"JSON in JSON", `{"error":{"message":"{\"error\":{\"code\":\"insufficient_quota\"}}","code":"429"}}`, "insufficient_quota"},
	{"JSON in JSON in JSON", quoted(quoted(`{"error":{"code":"insufficient_quota"}}`)), "insufficient_quota"},
	{"a text of Python", `{"error":{"message":"Error code: 429 - {'error': {'code': 'insufficient_quota'}}","code":"429"}}`, "insufficient_quota"},
	{"a dictionary of Python", `{'error': {'code': 'insufficient_quota'}}`, "insufficient_quota"},
	{"an event", "event: error\r\ndata: {\"error\":{\"code\":\"insufficient_quota\"}}\r\n\r\n", "insufficient_quota"},
	{"a byte-order mark", "\ufeff" + `{"error":{"code":"insufficient_quota"}}`, "insufficient_quota"},
	{"UTF-16", wide(`{"error":{"code":"insufficient_quota"}}`), "insufficient_quota"},
	{"a body that is cut off", `{"error":{"code":"insufficient_quota","message":"` + strings.Repeat("x", 100), "insufficient_quota"},
	{"a long body", `{"error":{"message":"` + strings.Repeat("x", 300<<10) + `","code":"insufficient_quota"}}`, "insufficient_quota"},
	{
		"Moonshot",
		`{"error":{"message":"Your account is suspended, please check your plan","type":"exceeded_current_quota_error"}}`, "exceeded_current_quota_error",
	},
	{
		"LiteLLM",
		`{"error":{"message":"Budget has been exceeded! Current cost: 10.1, Max budget: 10","type":"budget_exceeded","param":null,"code":"429"}}`,
		"budget_exceeded",
	},
	{"LiteLLM's text alone", `{"detail":"Budget has been exceeded! Current cost: 10.1, Max budget: 10"}`, "budget_exceeded"},
	{"Zhipu", `{"error":{"code":"1113","message":"the account is in arrears"}}`, "1113"},
	{"Zhipu, a number", `{"error":{"code":1113,"message":"x"}}`, "1113"},
	{"One API", `{"error":{"code":"insufficient_user_quota","type":"new_api_error"}}`, "insufficient_user_quota"},
	{
		"xAI",
		`{"code":"Some resource has been exhausted","error":"Your team x has either used all available credits or reached its monthly spending limit."}`,
		"insufficient_credits",
	},
	{"Gemini's prepayment", `{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`, "insufficient_credits"},
	{
		"Anthropic", `{"type":"error","error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`,
		"enforced_spend_limit_reached",
	},
	{"Bedrock, a day", `{"message":"Too many tokens per day, please wait before trying again."}`, "tokens_per_day"},
	{
		"OpenAI's billing",
		`{"error":{"message":"Your account is not active, please check your billing details on our website.","code":"billing_not_active"}}`,
		"billing_not_active",
	},
	{"OpenAI's hard limit", `{"error":{"message":"Billing hard limit has been reached","code":"billing_hard_limit_reached"}}`, "billing_hard_limit_reached"},
}

// waitBodies are bodies of refusals that sound alike, and that a wait does cure.
var waitBodies = []struct{ name, body string }{
	{"a quota per minute", `{"error":{"message":"rate limit exceeded, quota per minute","code":"rate_limit_exceeded"}}`},
	{"Gemini's quota of a minute", `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. ` +
		`* Quota exceeded for metric: generate_content_free_tier_requests, limit: 15\nPlease retry in 20s.","status":"RESOURCE_EXHAUSTED"}}`},
	{"a quota that comes back", `{"error":{"message":"quota exceeded, retry in 20s"}}`},
	{
		"OpenAI's requests per day",
		`{"error":{"message":"Rate limit reached on requests per day (RPD): Limit 200. Please try again in 7m12s.","code":"rate_limit_exceeded"}}`,
	},
	{"a budget per minute", `{"error":{"message":"Budget has been exceeded: 10 per minute"}}`},
	{"a budget that comes back", `{"error":{"message":"Insufficient credits, try again in 20 seconds"}}`},
	{"Bedrock", `{"message":"Too many tokens, please wait before trying again."}`},
	{"another number", `{"error":{"code":"1302","message":"1113 requests"}}`},
	{"a prompt that is given back", `{"error":{"message":"slow down"},"input":"insufficient_quota","prompt":"insufficient balance"}`},
	{"Google's word for all of them", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for quota metric 'Requests'"}}`},
	{"nothing", ""},
	{"a page", "<html>429 Too Many Requests</html>"},
}

func quoted(s string) string {
	return strings.ReplaceAll(strconv.Quote(s), "\\x", "\\u00")
}

// wide returns a text in UTF-16 with its mark.
func wide(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func TestBudgetsThatAreSpent(t *testing.T) {
	classify := func(body, coding string) httpthrottle.Refusal {
		h := http.Header{}
		if coding != "" {
			h.Set("Content-Encoding", strings.TrimPrefix(coding, "raw "))
		}
		r, refused := httpthrottle.OpenAI(httpthrottle.Answer{Status: 429, Header: h, Body: []byte(body), At: came})
		require.True(t, refused)
		return r
	}
	for _, tc := range spentBodies {
		t.Run(tc.name, func(t *testing.T) {
			r := classify(tc.body, "")
			require.Equal(t, httpthrottle.Stop, r.Class)
			require.Equal(t, tc.code, r.Code)
			for _, coding := range []string{"gzip", "deflate", "raw deflate"} {
				require.Equal(t, r, classify(string(packed(coding, tc.body)), coding), coding)
			}
			require.Equal(t, r, classify(string(packed("gzip", tc.body)), ""), "gzip that does not say so")
			for i, other := range []httpthrottle.Classifier{httpthrottle.Azure, httpthrottle.Anthropic, httpthrottle.Gemini} {
				r, _ := other(httpthrottle.Answer{Status: 429, Header: header("Retry-After: 20"), Body: []byte(tc.body), At: came})
				require.Equal(t, httpthrottle.Stop, r.Class, i)
			}
		})
	}
	for _, tc := range waitBodies {
		t.Run("not "+tc.name, func(t *testing.T) {
			require.Equal(t, httpthrottle.Wait, classify(tc.body, "").Class)
			require.Equal(t, httpthrottle.Wait, classify(string(packed("gzip", tc.body)), "gzip").Class)
			r, _ := httpthrottle.Gemini(httpthrottle.Answer{Status: 429, Header: http.Header{}, Body: []byte(tc.body), At: came})
			require.Equal(t, httpthrottle.Wait, r.Class)
		})
	}
}

// A body that unpacks to more than is read is looked at as far as it is read, and costs no more.
func TestBodyThatUnpacksToALot(t *testing.T) {
	body := packed("gzip", `{"error":{"code":"insufficient_quota","message":"`+strings.Repeat("x", 32<<20)+`"}}`)
	a := httpthrottle.Answer{Status: 429, Header: header("Content-Encoding: gzip"), Body: body, At: came}
	var r httpthrottle.Refusal
	result := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			r, _ = httpthrottle.OpenAI(a)
		}
	})
	require.Equal(t, httpthrottle.Stop, r.Class)
	require.Less(t, result.AllocedBytesPerOp(), int64(16<<20))
}

// A real server that says that a budget is spent is asked once, whoever packs its answer.
func TestSpentBudgetIsAskedOnce(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		code   string
	}{
		{"Moonshot", 429, `{"error":{"type":"exceeded_current_quota_error"}}`, "exceeded_current_quota_error"},
		{"a long body", 429, `{"error":{"message":"` + strings.Repeat("x", 100<<10) + `","code":"insufficient_quota"}}`, "insufficient_quota"},
		{"DeepSeek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, "insufficient_balance"},
		{"OpenRouter", 402, `{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/credits","code":402}}`, "insufficient_credits"},
		{"402 alone", 402, ``, ""},
	} {
		for _, coding := range []string{"", "gzip", "deflate"} {
			t.Run(tc.name+" "+coding, func(t *testing.T) {
				server, calls := serveHTTP(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
					body := []byte(tc.body)
					if coding != "" {
						body = packed(coding, tc.body)
						w.Header().Set("Content-Encoding", coding)
					}
					w.WriteHeader(tc.status)
					_, _ = w.Write(body)
				})
				th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 1000})
				require.NoError(t, err)
				defer func() { require.NoError(t, th.Close()) }()
				client := &http.Client{Transport: httpthrottle.NewTransport(&http.Transport{DisableCompression: true}, th,
					httpthrottle.WithClassifier(httpthrottle.OpenAI), httpthrottle.RefusalsAsErrors())}
				defer client.CloseIdleConnections()
				_, err = client.Get(server.URL)
				require.ErrorContains(t, err, "(stop)")
				require.NotErrorIs(t, err, throttle.ErrThrottled, "it is not worth another try")
				if tc.code != "" {
					require.ErrorContains(t, err, "code "+tc.code)
				}
				require.Equal(t, int64(1), calls.Load())
				require.Nil(t, th.Status().Paused)
			})
		}
	}
}

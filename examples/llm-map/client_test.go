package main

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// What becomes of each form of an answer, by a real connection: each attempt draws once, and is charged for what it took.
func TestForms(t *testing.T) {
	for form, want := range map[fakellm.Form]struct {
		code     string // of the error; empty for a text
		attempts int
	}{
		fakellm.Plain: {"", 1}, fakellm.Parts: {"", 1}, fakellm.Completion: {"", 1}, fakellm.OddTypes: {"", 1}, fakellm.Marked: {"", 1},
		fakellm.Events:  {"", 1},
		fakellm.Refusal: {"refusal", 1}, fakellm.Filtered: {"content_filter", 1}, fakellm.Nothing: {"empty_answer", 1},
		fakellm.Error: {"502", 2}, fakellm.Failed: {"broken_answer", 2}, fakellm.NoChoices: {"no_choices", 2}, fakellm.NoBody: {"no_body", 2},
		fakellm.Page: {"not_json", 2}, fakellm.Half: {"not_json", 2},
	} {
		t.Run(string(form), func(t *testing.T) {
			fake, url := startFake(t, fakellm.Config{Provider: fakellm.SelfHosted, Forms: []fakellm.Form{form}})
			l := throttletest.New()
			s := testSettings(func(s *settings) { s.BaseURL, s.MaxAttempts = url, 2 })
			h := mustHandlerTo(t, s, l)
			r := ask(t.Context(), t, h, "some words to repeat")
			if want.code == "" {
				require.Nil(t, r.Error)
				require.Contains(t, r.Text, "words")
				require.NotNil(t, r.Usage)
				require.Equal(t, fake.Stats().Used, r.Usage.TotalTokens)
			} else {
				require.Equal(t, want.code, r.Error.Code)
				require.NotEmpty(t, r.Error.Message)
				require.Empty(t, r.Text)
			}
			require.Equal(t, want.attempts, r.Attempts)
			require.Len(t, l.Draws(), want.attempts)
			require.Equal(t, want.attempts, fake.Stats().Served)
		})
	}
}

// mustHandlerTo is mustHandler for a real connection.
func mustHandlerTo(t *testing.T, s settings, l *throttletest.Limiter) *handler {
	t.Helper()
	h, err := newHandler(s, []target{drawing(t, s, l, nil)}, nil, discard())
	require.NoError(t, err)
	return h
}

// An error with the status 200 is judged by what it says, and its words are in the result without the key.
func TestErrorsWithAGoodStatus(t *testing.T) {
	for _, c := range []struct {
		name     string
		provider profile.Name
		body     string
		verdict  verdict
		code     string
		words    string
	}{
		{"credit", selfHosted, `{"error":{"code":402,"message":"Insufficient credits"}}`, stop, "insufficient_credits", "Insufficient credits"},
		{"quota", openAI, `{"error":{"code":"insufficient_quota","message":"You exceeded your quota"}}`, stop, "insufficient_quota", "your quota"},
		{"key", openAI, `{"error":{"code":"invalid_api_key","message":"Incorrect key ` + canary + `"}}`, stop, "invalid_api_key", "Incorrect key (not shown)"},
		{"limit", selfHosted, `{"error":{"code":429,"message":"slow down"}}`, overload, "rate_limited", "slow down"},
		{"limit of a choice", selfHosted, `{"choices":[{"error":{"code":429,"message":"slow down"},"message":{}}]}`, overload, "rate_limited", "slow down"},
		{"overload", anthropic, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, overload, "overloaded_error", "Overloaded"},
		{"the prompt's fault", selfHosted, `{"object":"error","message":"too long","type":"BadRequestError"}`, invalid, "BadRequestError", "too long"},
		{"limit, a text", selfHosted, `{"error":"Rate limit exceeded, slow down"}`, overload, "rate_limited", "slow down"},
		{"limit, unwrapped", selfHosted, `{"code":429,"message":"slow down"}`, overload, "rate_limited", "slow down"},
		{"limit beside the error", selfHosted, `{"error":{"message":"oops"},"status":429}`, overload, "rate_limited", "oops"},
		{
			"limit behind a gateway", anthropic,
			`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`,
			overload, "rate_limit_error", "slow down",
		},
		{"limit of MiniMax", selfHosted, `{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, overload, "rate_limited", "rate limit"},
		{"tokens of MiniMax", selfHosted, `{"base_resp":{"status_code":1039,"status_msg":"token limit"}}`, overload, "rate_limited", "token limit"},
		{
			"limit of Apigee", selfHosted,
			`{"fault":{"faultstring":"Spike arrest violation","detail":{"errorcode":"policies.ratelimit.SpikeArrestViolation"}}}`,
			overload, "policies.ratelimit.SpikeArrestViolation", "Spike arrest",
		},
		{
			"limit of AWS", selfHosted,
			`{"__type":"com.amazon.coral.availability#ThrottlingException","Message":"Too many requests"}`,
			overload, "rate_limited", "Too many",
		},
		{
			"balance of MiniMax", selfHosted,
			`{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`,
			stop, "insufficient_balance", "insufficient balance",
		},
		{"key of MiniMax", selfHosted, `{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`, stop, "401", "login fail"},
		{"prompt of MiniMax", selfHosted, `{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}`, invalid, "400", "invalid params"},
		{"servers of MiniMax", selfHosted, `{"base_resp":{"status_code":1033,"status_msg":"system error"}}`, failed, "provider_error", "system error"},
		{
			"MiniMax, beside a choice", selfHosted,
			`{"choices":[{"message":{"content":"hi"}}],"base_resp":{"status_code":1027,"status_msg":"sensitive"}}`,
			invalid, "400", "sensitive",
		},
		{
			"no success, limit", selfHosted,
			`{"success":false,"errors":[{"code":10000,"message":"Rate limited: slow down, rate limit reached"}]}`,
			overload, "rate_limited", "slow down",
		},
		{"no success, key", selfHosted, `{"success":false,"message":"Invalid API key"}`, stop, "401", "Invalid API key"},
		{"no success, nothing else", selfHosted, `{"success":false,"result":null}`, failed, "provider_error", ""},
		{"balance, a text", selfHosted, `{"error":"Insufficient balance"}`, stop, "insufficient_balance", "Insufficient balance"},
		{
			"credit of Anthropic", anthropic,
			`{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`,
			stop, "insufficient_credits", "too low",
		},
		{"arrears of Zhipu", selfHosted, `{"error":{"code":"1113","message":"x"}}`, stop, "1113", ""},
		{"key, a text", selfHosted, `{"error":"Incorrect API key provided"}`, stop, "401", "provided"},
		{"no login, unwrapped", selfHosted, `{"object":"error","message":"Unauthorized","code":401}`, stop, "401", "Unauthorized"},
		{"model, a text", selfHosted, `{"error":"model 'x' not found, try pulling it first"}`, stop, "404", "pulling"},
		{"no such page", selfHosted, `{"detail":"Not Found"}`, stop, "404", "Not Found"},
		{"prompt too long, a text", selfHosted, `{"error":"This model's maximum context length is 8192 tokens, rate limit aside"}`, invalid, "400", "8192"},
		{"prompt too long, vLLM", selfHosted, `{"object":"error","message":"maximum context length","type":"Error","code":null}`, invalid, "400", "maximum"},
		{
			"validation of FastAPI", selfHosted,
			`{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}`,
			invalid, "400", "field required",
		},
		{"a problem", selfHosted, `{"type":"about:blank","title":"Too Many","status":429,"detail":"slow down"}`, overload, "rate_limited", "slow down"},
		{"loading, a text", selfHosted, `{"error":"Model x is currently loading"}`, overload, "overloaded", "loading"},
		{"a framework of Node", selfHosted, `{"statusCode":429,"error":"Too Many","message":"slow down"}`, overload, "rate_limited", "Too Many: slow down"},
		{"codes of other names", selfHosted, `{"errorCode":429,"errorMessage":"slow down"}`, overload, "rate_limited", "slow down"},
		{"limit of Baidu", selfHosted, `{"error_code":18,"error_msg":"Open api qps request limit reached"}`, overload, "rate_limited", "qps"},
		{"error true", selfHosted, `{"error":true,"message":"Too many requests"}`, overload, "rate_limited", "Too many"},
		{"an event, a text", selfHosted, "event: error\ndata: overloaded\n\ndata: [DONE]\n\n", overload, "overloaded", "overloaded"},
		{
			"an event, limit", openAI,
			"data: {\"choices\":[{\"delta\":{\"content\":\"h\"}}]}\n\ndata: {\"error\":\"Rate limit exceeded\"}\n\n",
			overload, "rate_limited", "exceeded",
		},
		{"unknown", selfHosted, `{"error":"oops"}`, failed, "provider_error", "oops"},
		{"unknown number", selfHosted, `{"error":{"code":1234,"message":"oops"}}`, failed, "provider_error", "oops"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(refuses(200, "", c.body)))
			defer server.Close()
			s := testSettings(func(s *settings) { s.Provider, s.BaseURL = c.provider, server.URL })
			o := judge(t.Context(), complete(t.Context(), t, &s, throttletest.New()))
			require.Equal(t, c.verdict, o.verdict, o.err)
			require.Equal(t, c.code, o.code)
			require.Contains(t, o.words, c.words)
			require.NotContains(t, o.text+o.err.Error()+o.words, canary)
			require.False(t, c.words != "" && strings.Contains(o.text+o.err.Error(), c.words), "what goes to the log may not repeat the prompt")
			require.NotContains(t, o.text, "reached")
		})
	}
}

// What a provider says is in the result, in one line, and without what is secret.
func TestWordsOfTheProvider(t *testing.T) {
	say := func(message string) string {
		encoded, err := json.Marshal(message)
		require.NoError(t, err)
		return `{"error":{"message":` + string(encoded) + `,"code":"x","param":"max_tokens"}}`
	}
	for said, want := range map[string]string{
		"no\nway":                             "no way",
		"key " + canary:                       "key (not shown)",
		"header secret-of-the-gateway":        "header (not shown)",
		"an analysis failed":                  "an analysis failed",
		"the Sentiment analysis failed":       "the (not shown) failed",
		"Bearer abc is wrong":                 "(not shown) is wrong",
		"provided: sk-hun**********nary.":     "provided: (not shown)",
		"provided: abcd****wxyz":              "provided: (not shown)",
		"sk-other-123456 is not yours":        "(not shown) is not yours",
		strings.Repeat("x ", 146) + canary:    strings.Repeat("x ", 146) + "(not sho...",
		"model gpt-4o-mini-2024-07-18 is new": "model gpt-4o-mini-2024-07-18 is new",
	} {
		e := answers(refuses(400, "", say(said)))
		s := testSettings(func(s *settings) { s.Headers = "X-Gateway: Bearer secret-of-the-gateway\nX-Title: Sentiment analysis" })
		r := ask(t.Context(), t, mustHandler(t, s, nil, e, nil), "x")
		require.Equal(t, "the endpoint answered with status 400, code x (see the setting maxTokensField): "+want, r.Error.Message)
		require.Equal(t, "x", r.Error.Code)
	}
}

// A key that the provider repeats, in whatever encoding, and also in an answer that can't be read, is in neither the result nor the log.
func TestNoKeyComesBack(t *testing.T) {
	const key = "zz/hunter2+canary=&0123456789"
	encoded := map[string]string{
		"plain": key, "query": url.QueryEscape(key), "lower": strings.ToLower(url.QueryEscape(key)), "path": url.PathEscape(key),
		"base64": base64.StdEncoding.EncodeToString([]byte(key)), "base64 url": base64.RawURLEncoding.EncodeToString([]byte("user:" + key)),
		"base64, another place": base64.StdEncoding.EncodeToString([]byte("us:" + key)),
	}
	const left = "hunter2" // of the key
	for name, text := range encoded {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		message := `{"error":{"message":"no key ` + strings.Trim(string(quoted), `"`) + `","code":"x"}}`
		for place, raw := range map[string]string{
			"message":     "HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" + message,
			"in a 200":    "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" + message,
			"status line": "HTTP/1.1 " + text + "\r\n\r\n",
			"version":     text + "\r\n\r\n",
			"header":      "HTTP/1.1 200 OK\r\n" + text + "\r\n\r\n",
			"length":      "HTTP/1.1 200 OK\r\nContent-Length: " + text + "\r\n\r\n",
			"coding":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + text + "\r\n\r\n",
		} {
			t.Run(name+", "+place, func(t *testing.T) {
				if head, body, ok := strings.Cut(raw, "\r\n\r\n"); ok && body != "" {
					raw = fmt.Sprintf(head, len(body)) + "\r\n\r\n" + body
				}
				at := brokenServer(t, raw)
				for _, denied := range []deniedAction{waitOnDenied, nackOnDenied} {
					log := &testkit.Book{}
					s := testSettings(func(s *settings) {
						s.BaseURL, s.MaxAttempts, s.APIKey = at, 1, program.Credential{Text: numathrottle.NewSecret(key)}
						s.OnDenied, s.MaxWait = denied, time.Minute
					})
					h, err := newHandler(s, []target{drawing(t, s, throttletest.New(), nil)}, nil, log.Logger())
					require.NoError(t, err)
					r := ask(t.Context(), t, h, "x")
					require.NotNil(t, r.Error)
					all := fmt.Sprint(*r.Error) + log.String()
					for _, part := range append(slices.Collect(maps.Values(encoded)), left) {
						require.NotContains(t, all, part, denied)
					}
				}
			})
		}
	}
}

// A code that is the key isn't shown.
func TestNoKeyIsACode(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   string
	}{{200, "x"}, {400, "x"}, {403, "x"}, {500, "x"}, {200, "insufficient_quota"}, {403, "insufficient_quota"}, {429, "insufficient_quota"}} {
		body := `{"model":"` + canary + `","error":{"code":"` + canary + `","param":"` + canary + `","type":"` + c.kind + `"}}`
		server := httptest.NewServer(answers(refuses(c.status, "", body)))
		log := &testkit.Book{}
		s := testSettings(func(s *settings) { s.MaxAttempts, s.OnStop, s.BaseURL = 1, resultOnStop, server.URL })
		h, err := newHandler(s, []target{drawing(t, s, nil, nil)}, nil, log.Logger())
		require.NoError(t, err)
		r := ask(t.Context(), t, h, "x")
		require.NotNil(t, r.Error)
		require.NotContains(t, fmt.Sprint(*r.Error, r.Model, log.String()), "hunter2", c)
		server.Close()
	}
}

// brokenServer answers each connection with a text.
func brokenServer(t *testing.T, text string) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = lis.Close() })
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, text)
				}
			}()
		}
	}()
	return "http://" + lis.Addr().String()
}

// A limit that only the body tells of is waited for, as the answer says or with a backoff, for as long as it takes.
func TestLimitsInTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := `{"error":{"code":429,"message":"slow down"}}`
		e := answers(refuses(200, "Retry-After: 20", slow), refuses(200, "", slow), refuses(200, "", slow), says("hi", 1, 1))
		r := ask(t.Context(), t, mustHandler(t, testSettings(func(s *settings) { s.MaxAttempts = 1 }), nil, e, nil), "x")
		require.Equal(t, "hi", r.Text)
		require.GreaterOrEqual(t, e.at[1].Sub(e.at[0]), 20*time.Second)
		require.GreaterOrEqual(t, e.at[2].Sub(e.at[1]), time.Second)
	})
}

func TestCompressedAnswers(t *testing.T) {
	for _, announced := range []bool{true, false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if announced {
				w.Header().Set("Content-Encoding", "gzip")
			}
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte(`{"choices":[{"message":{"content":"hi"}}]}`))
			_ = z.Close()
		}))
		s := testSettings(func(s *settings) { s.BaseURL = server.URL })
		require.Equal(t, "hi", ask(t.Context(), t, mustHandlerTo(t, s, throttletest.New()), "x").Text)
		server.Close()
	}
}

// Whatever is configured is sent: parameters of reasoning models, names of deployments, extra fields and headers.
func TestNothingIsRefusedByTheNameOfAModel(t *testing.T) {
	for _, c := range []struct {
		provider profile.Name
		model    string
		field    tokensField
		want     string
	}{
		{openAI, "o1", "", "max_completion_tokens"},
		{openAI, "o3-mini", plainTokens, "max_tokens"},
		{openAI, "gpt-6-astra", "", "max_completion_tokens"},
		{azure, "my-reasoner", completionTokens, "max_completion_tokens"},
		{azure, "gpt-5", plainTokens, "max_tokens"},
		{azure, "gpt-35-turbo", "", "max_tokens"},
		{selfHosted, "openai/gpt-5", "", "max_completion_tokens"},
		{selfHosted, "openai/GPT-5.1-chat", "", "max_completion_tokens"},
		{selfHosted, "olmo-2", "", "max_tokens"},
		{selfHosted, "openai/gpt-4o", "", "max_tokens"},
		{anthropic, "claude", completionTokens, "max_completion_tokens"},
	} {
		t.Run(string(c.provider)+" "+c.model, func(t *testing.T) {
			var header http.Header
			e := answers(func(w http.ResponseWriter, r *http.Request) { header = r.Header; says("hi", 1, 1)(w, r) })
			s := testSettings(func(s *settings) {
				s.Provider, s.Model, s.MaxTokensField, s.Temperature = c.provider, c.model, c.field, "0.7"
				s.ExtraBody = `{"response_format":{"type":"json_object"},"top_p":0.9,"stop":["\n"],"seed":7,"reasoning_effort":"high","vendor":{"x":[1]}}`
				s.Headers = "X-Title: numaflow\nHTTP-Referer: https://example.com"
			})
			require.Equal(t, "hi", ask(t.Context(), t, mustHandler(t, s, nil, e, nil), "x").Text)
			require.Contains(t, e.calls[0], `"`+c.want+`":100,"temperature":0.7,`+s.ExtraBody[1:])
			require.Equal(t, 1, strings.Count(e.calls[0], "tokens\":100"))
			require.Equal(t, "numaflow", header.Get("X-Title"))
			require.Equal(t, "https://example.com", header.Get("Http-Referer"))
			require.Equal(t, "application/json", header.Get("Content-Type"))
		})
	}
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		provider             profile.Name
		base, model, version string
		want                 string
	}{
		{selfHosted, "http://h/v1/", "m", "", "http://h/v1/chat/completions"},
		{azure, "https://n.azure.com/", "a b/ü", "", "https://n.azure.com/openai/deployments/a%20b%2F%C3%BC/chat/completions?api-version=2024-10-21"},
		{azure, "https://n.openai.azure.com/openai", "m", "v", "https://n.openai.azure.com/openai/deployments/m/chat/completions?api-version=v"},
		{azure, "https://n.openai.azure.com/openai/v1/", "m", "", "https://n.openai.azure.com/openai/v1/chat/completions"},
		{azure, "https://n.openai.azure.com/openai/v1", "m", "preview", "https://n.openai.azure.com/openai/v1/chat/completions?api-version=preview"},
	} {
		s := testSettings(func(s *settings) {
			s.Provider, s.BaseURL, s.Model, s.APIVersion = c.provider, c.base, c.model, c.version
		})
		require.Equal(t, c.want, s.endpoint())
	}
}

// What the extra fields say of the cost is drawn.
func TestDrawOfExtraFields(t *testing.T) {
	for extra, want := range map[string]int{
		`{"max_tokens":50}`: 51, `{"max_completion_tokens":50,"n":3}`: 151, `{"max_tokens":50,"tools":["123456"]}`: 54,
	} {
		l := throttletest.New()
		s := testSettings(func(s *settings) { s.MaxTokens, s.ExtraBody = 0, extra })
		e := answers(says("hi", 1, 1))
		ask(t.Context(), t, mustHandler(t, s, l, e, nil), "four")
		require.Equal(t, want, l.Draws()[0].Cost, extra)
		require.Contains(t, e.calls[0], extra[1:])
	}
}

// Nothing is drawn for a call that cannot be sent, and nobody is told that the endpoint was away.
func TestACallWithoutAKeyDrawsNothing(t *testing.T) {
	l, e := throttletest.New(), answers(says("hi", 1, 1))
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	s := testSettings(func(s *settings) { s.APIKey, s.MaxAttempts = program.Credential{File: file}, 1 })
	r := ask(t.Context(), t, mustHandler(t, s, l, e, nil), "x")
	require.Equal(t, "no_key", r.Error.Code)
	require.Contains(t, r.Error.Message, "apiKeyFile")
	require.Contains(t, r.Error.Message, "was not sent")
	require.Empty(t, l.Draws())
	require.Zero(t, e.count())

	s = testSettings(func(s *settings) {
		s.APIKey, s.MaxAttempts = program.Credential{Text: numathrottle.NewSecret("k\u00e4y")}, 1
	})
	r = ask(t.Context(), t, mustHandler(t, s, l, e, nil), "x")
	require.Contains(t, r.Error.Message, "the setting apiKey gives")
}

// The message goes on beside its result, where that is asked for: also beside an error.
func TestInput(t *testing.T) {
	for _, c := range []struct {
		how           inputForm
		payload, want string
	}{
		{noInput, `{"a":1}`, `{"text":"hi"}`},
		{inputText, `{"a": 1}`, `{"text":"hi","input":"{\"a\": 1}"}`},
		{inputJSON, `{"a": 1e3, "b":12345678901234567890}`, `{"text":"hi","input":{"a":1e3,"b":12345678901234567890}}`},
		{inputJSON, `plain`, `{"text":"hi","input":"plain"}`},
		{inputText, "\xff", `{"input_base64":"/w==","error":{"code":"bad_prompt"}}`},
		{inputMetadata, `{"a":1}`, `{"text":"hi"}`},
	} {
		h := mustHandler(t, testSettings(func(s *settings) { s.Input = c.how }), nil, answers(says("hi", 0, 0)), nil)
		out := h.Map(t.Context(), []string{"k"}, userDatum{datum{value: c.payload}}).Items()
		var got map[string]any
		require.NoError(t, json.Unmarshal(out[0].Value(), &got))
		for _, key := range []string{"model", "finish_reason", "attempts"} {
			delete(got, key)
		}
		if e, ok := got["error"].(map[string]any); ok {
			delete(e, "message")
		}
		encoded, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(encoded))
		if c.how != inputMetadata {
			require.Nil(t, out[0].UserMetadata())
			continue
		}
		require.Equal(t, c.payload, string(out[0].UserMetadata().Value("llm-map", "input")))
		require.Equal(t, "v", string(out[0].UserMetadata().Value("own", "k")), "the message's own stays")
	}
}

// A userDatum has user metadata.
type userDatum struct{ datum }

func (userDatum) UserMetadata() *mapsdk.UserMetadata {
	m := mapsdk.NewUserMetadata()
	m.AddKV("own", "k", []byte("v"))
	return m
}

// The settings of a request that would not be sent are refused, and none that would be.
func TestCheckOfTheRequest(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"EXTRA_BODY", `{"model":"x"}`, `extraBody sets "model", which is set already`},
		{"EXTRA_BODY", `{"max_tokens":7}`, "extraBody says how long an answer may be, and so does maxTokens"},
		{"EXTRA_BODY", `[1]`, `extraBody is "[1]"`},
		{"HEADERS", "Content-Type: text/plain", "headers sets Content-Type"},
		{"HEADERS", "Idempotency-Key: 1", "headers sets Idempotency-Key"},
		{"HEADERS", "X Y: " + canary, "headers is not as it should be (not shown)"},
		{"HEADERS", "X-Y: a\x01", "headers is not as it should be (not shown)"},
		{"HEADERS", "X-Y: 1\nx-y: 2", "headers is not as it should be (not shown)"},
		{"HEADERS", "Authorization: Bearer x", "headers sets Authorization, and so does the key"},
		{"BASE_URL", "http://h:99999/v1", "baseURL has the port 99999"},
		{"MAX_TOKENS_FIELD", "max_words", `maxTokensField is "max_words"`},
		{"INPUT", "yes", `input is "yes"`},
		{"STRICT", "true", "strict is true, but there is no limit on requests"},
		{"MAX_RESERVED", "3", "maxReserved is set without strict"},
		{"ADAPTIVE_MIN", "3", "adaptiveMin is set without adaptive"},
		{"EXTRA_BODY", `{"min_p":null,"top_p":0.1}`, ""},
		{"HEADERS", "X-Title: numaflow\n\nX-B: ü", ""},
		{"MODEL", "openai/o1", ""},
		{"TEMPERATURE", "1.5", ""},
	} {
		clearEnv(t)
		for name, value := range map[string]string{
			"LLM_MAP_MODEL": "gpt-5", "LLM_MAP_API_KEY": canary, "LLM_MAP_MAX_TOKENS": "10", "LLM_MAP_" + c.name: c.value,
		} {
			t.Setenv(name, value)
		}
		_, err := loadSettings()
		if c.want == "" {
			require.NoError(t, err, c.value)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), canary)
		require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, err)
	}
}

// A key of the user's own, in a header, is enough.
func TestALoginByHeader(t *testing.T) {
	clearEnv(t)
	t.Setenv("LLM_MAP_PROVIDER", "azure")
	t.Setenv("LLM_MAP_BASE_URL", "https://n.openai.azure.com")
	t.Setenv("LLM_MAP_MODEL", "m")
	t.Setenv("LLM_MAP_HEADERS", "Authorization: Bearer "+canary)
	s, err := loadSettings()
	require.NoError(t, err)
	require.NotContains(t, llmMap.Effective(&s, &config.Reading{}), canary)
	require.Contains(t, llmMap.Effective(&s, &config.Reading{}), `headers: "Authorization (values not shown)"`)
	var seen string
	e := answers(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		says("hi", 1, 1)(w, r)
	})
	require.Equal(t, "hi", ask(t.Context(), t, mustHandler(t, s, nil, e, nil), "x").Text)
	require.Equal(t, "Bearer "+canary, seen)
}

// The file takes mappings, and the library's own names of settings count here, too.
func TestSettingsOfTheLibrary(t *testing.T) {
	clearEnv(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
model: m
apiKey: x
requestsPerMinute: 600
tokensPerMinute: 90000
strict: true
maxReserved: 2
headers: |
  X-Title: numaflow
extraBody:
  response_format: {type: json_object}
  top_p: 0.10
  stop: ["\n", yes]
`), 0o600))
	t.Setenv("NUMATHROTTLE_CONFIG", file)
	t.Setenv("NUMATHROTTLE_ADAPTIVE", "true")
	t.Setenv("NUMATHROTTLE_ADAPTIVE_MIN", "500")
	s, err := loadSettings()
	require.NoError(t, err)
	require.JSONEq(t, `{"response_format":{"type":"json_object"},"top_p":0.10,"stop":["\n","yes"]}`, s.ExtraBody)
	require.Contains(t, s.ExtraBody, "0.10")
	require.True(t, limitOf(s, "requestsPerMinute").Strict)
	require.Equal(t, 2, limitOf(s, "requestsPerMinute").MaxReserved)
	require.False(t, limitOf(s, "requestsPerMinute").Adaptive)
	require.True(t, limitOf(s, "tokensPerMinute").Adaptive)
	require.False(t, limitOf(s, "tokensPerMinute").Strict)
	require.Equal(t, 500, limitOf(s, "tokensPerMinute").AdaptiveMin)

	t.Setenv("NUMATHROTTLE_STRICT", "false")
	t.Setenv("NUMATHROTTLE_MAX_RESERVED", "0")
	s, err = loadSettings()
	require.NoError(t, err)
	require.False(t, limitOf(s, "requestsPerMinute").Strict, "the environment wins")
	t.Setenv("NUMATHROTTLE_STRICT", "true")
	t.Setenv("NUMATHROTTLE_STORE", "static://?replicas=2")
	t.Setenv("LLM_MAP_ADAPTIVE", "false")
	_, err = loadSettings()
	require.ErrorContains(t, err, "strict is true, but the store is static")
	require.ErrorContains(t, err, "adaptive is set by NUMATHROTTLE_ADAPTIVE, and by LLM_MAP_ADAPTIVE, allowed: one of them")
}

// A strict limit: four processors together send no two calls closer than the limit says, and use it.
func TestStrictRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := fakellm.New(fakellm.Config{Provider: fakellm.SelfHosted, TokensPerMinute: 900_000})
		require.NoError(t, err)
		answered := runPool(t, server, 200, func(s *settings) {
			s.RequestsPerMinute, s.TokensPerMinute, s.Strict, s.MaxReserved = 120, 900_000, true, 8
			s.Pool.OnStoreLoss = numathrottle.StoreLossStop
		})
		require.Equal(t, 200, answered)
		charges := server.Charges()
		var last time.Time
		n := 0
		for _, c := range charges {
			if c.Requests == 0 {
				continue
			}
			if n++; n > 1 {
				require.GreaterOrEqual(t, c.At.Sub(last), 250*time.Millisecond, "500 ms less the validity of a slot, at call %d", n)
			}
			last = c.At
		}
		used, _ := use(charges, fakellm.Config{RequestsPerMinute: 120, TokensPerMinute: 1})
		t.Logf("used %.3f", used)
		require.GreaterOrEqual(t, used, 0.95)
		requests, _ := fakellm.Worst(charges, time.Minute)
		require.LessOrEqual(t, requests, 122)
	})
}

package account_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
)

// every is a configuration with all limits.
func every(p profile.Name) account.Config {
	return account.Config{
		Provider: p, RequestsPerMinute: 100_000, InputTokensPerMinute: 1_000_000_000, OutputTokensPerMinute: 1_000_000_000,
		TokensPerMinute: 1_000_000_000, InFlight: 1000,
	}
}

// absurd are answers with usages that cannot be, in every dialect.
var absurd = map[string][]string{
	"chat": {
		`{"usage":{}}`, `{"usage":null}`, `{"usage":7}`, `{"usage":{"prompt_tokens":-1,"completion_tokens":-1}}`,
		`{"usage":{"prompt_tokens":1e12,"completion_tokens":1e12}}`,
		`{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":0}}`, `{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1e12}}`,
		`{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":1e12}}}`, `{"usage":{"total_tokens":3}}`, `{"usage":{"total_tokens":-3}}`,
		`{"usage":{"prompt_tokens":0,"completion_tokens":0}}`, `{"usage":{"prompt_tokens":"NaN","completion_tokens":"Infinity"}}`,
		`{"usage":{"prompt_tokens":5,"completion_tokens":100000}}`, `{"usage":{"completion_tokens":3}}`, `{"usage":{"prompt_tokens":3}}`,
	},
	"messages": {
		`{"usage":{"input_tokens":-1,"output_tokens":-1}}`, `{"usage":{"input_tokens":1e12,"cache_read_input_tokens":1e12,"output_tokens":1e12}}`,
		`{"usage":{"input_tokens":1,"cache_read_input_tokens":-5,"output_tokens":1}}`, `{"usage":{"cache_creation_input_tokens":3}}`,
	},
	"gemini": {
		`{"usageMetadata":{"promptTokenCount":-1}}`, `{"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":1e12,"candidatesTokenCount":1e12}}`,
		`{"usageMetadata":{"totalTokenCount":1}}`, `{"usageMetadata":{"promptTokenCount":2,"thoughtsTokenCount":-9}}`,
	},
	"bedrock":  {`{"usage":{"inputTokens":-1,"outputTokens":1}}`, `{"usage":{"inputTokens":1,"outputTokens":1e12,"totalTokens":-1}}`},
	"deepseek": {`{"usage":{"prompt_cache_miss_tokens":1,"prompt_cache_hit_tokens":-1,"completion_tokens":1}}`},
	"cohere":   {`{"usage":{"tokens":{"input_tokens":-1,"output_tokens":1e12}}}`, `{"meta":{"tokens":{"input_tokens":1,"output_tokens":0}}}`},
	"none":     {``, `{`, `[]`, `null`, `"x"`, `{"a":`, "\xff\xfe", `{"usage":{"prompt_tokens":1,"completion_tokens":1}`},
}

// Usages that are missing or cannot be never cost less than what was surely used, nor more than what was drawn and the longest answer.
func TestAbsurdUsages(t *testing.T) {
	const bytes, most = 40_000, 500
	const drawn, least = bytes / 4, bytes / 20
	for dialect, bodies := range absurd {
		for _, name := range profile.Names() {
			virtually(t, dialect+" "+string(name), func(t *testing.T) {
				for i, body := range bodies {
					l := openAs(t, every(name), fmt.Sprint(dialect, name, i))
					call(t, l.Transport(always(200, body)), chat(bytes, most))
					got := l.settled(t)
					for pool, of := range map[string][2]int{"/input": {least, drawn + most}, "/output": {0, most}, "/tokens": {least, drawn + most}} {
						require.GreaterOrEqual(t, got[pool], of[0], pool+" "+body)
						require.LessOrEqual(t, got[pool], of[1], pool+" "+body)
					}
					require.Equal(t, 1, got["/requests"], body)
					require.Equal(t, 1, got["/in-flight"], body)
				}
			})
		}
	}
}

// unseen is a body that can be read once.
type unseen struct{ io.Reader }

// Bodies of any kind count as long as they are, and the service gets them whole.
func TestHugeBodies(t *testing.T) {
	huge := chat(10<<20, 100)
	cut := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a", 10<<20)
	for name, tc := range map[string]struct {
		body   string
		change func(req *http.Request, body string)
	}{
		"with GetBody": {huge, func(*http.Request, string) {}},
		"without":      {huge, func(req *http.Request, _ string) { req.GetBody = nil }},
		"chunked": {huge, func(req *http.Request, body string) {
			req.GetBody, req.ContentLength, req.Body = nil, -1, io.NopCloser(unseen{strings.NewReader(body)})
		}},
		"of unknown length": {huge, func(req *http.Request, body string) {
			req.GetBody, req.ContentLength, req.Body = nil, 0, io.NopCloser(unseen{strings.NewReader(body)})
		}},
		"broken": {cut, func(req *http.Request, _ string) { req.GetBody = nil }},
		"broken and chunked": {cut, func(req *http.Request, body string) {
			req.GetBody, req.ContentLength, req.Body = nil, -1, io.NopCloser(unseen{strings.NewReader(body)})
		}},
		"text": {strings.Repeat("a", 10<<20), func(req *http.Request, _ string) {
			req.GetBody = nil
			req.Header.Set("Content-Type", "text/plain")
		}},
	} {
		virtually(t, name, func(t *testing.T) {
			c := every(profile.SelfHosted)
			l := open(t, c)
			tr := l.Transport(service(func(_ *http.Request, body string) (*http.Response, error) {
				require.Len(t, body, len(tc.body))
				return answers(200, `{}`), nil
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://llm/v1/chat/completions", strings.NewReader(tc.body))
			require.NoError(t, err)
			tc.change(req, tc.body)
			res, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.GreaterOrEqual(t, l.settled(t)["/tokens"], 10<<20/4)
			require.LessOrEqual(t, l.settled(t)["/tokens"], 10<<20/4+2000)
		})
	}
}

// Requests without a prompt count as a call.
func TestSmallRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		method, body string
		output       int
	}{
		"get": {http.MethodGet, "", 1}, "empty": {http.MethodPost, "", 1024}, "null": {http.MethodPost, "null", 1024},
		"half": {http.MethodPost, `{"messages":[`, 1024},
	} {
		virtually(t, name, func(t *testing.T) {
			l := open(t, every(profile.SelfHosted))
			req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://llm/v1/models", bytes.NewBufferString(tc.body))
			require.NoError(t, err)
			if tc.method == http.MethodGet {
				req.Body, req.GetBody = nil, nil
			}
			res, err := l.Transport(always(200, `{}`)).RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			got := l.settled(t)
			require.Equal(t, 1, got["/requests"])
			require.LessOrEqual(t, got["/input"], 10)
			require.Equal(t, tc.output, got["/output"])
		})
	}
}

// Whatever a call ends with, its slot comes back and nothing is held.
func TestNothingIsHeld(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		serve service
		count int // of requests
	}{
		"no connection": {func(*http.Request, string) (*http.Response, error) { return nil, broken }, 1},
		"a panic":       {func(*http.Request, string) (*http.Response, error) { panic("base") }, 1},
		"no body": {func(*http.Request, string) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		}, 1},
		"an error": {always(500, `{"error":{}}`), 1},
		"a broken answer": {func(*http.Request, string) (*http.Response, error) {
			res := answers(200, "")
			res.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"usage":`), failing{broken}))
			return res, nil
		}, 1},
	} {
		virtually(t, name, func(t *testing.T) {
			c := every(profile.Anthropic)
			c.InFlight = 1
			l := open(t, c)
			tr := l.Transport(tc.serve)
			for range 3 {
				func() {
					defer func() { _ = recover() }()
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://llm/v1/messages", strings.NewReader(chat(10, 10)))
					require.NoError(t, err)
					if res, err := tr.RoundTrip(req); err == nil {
						_, _ = io.Copy(io.Discard, res.Body)
						_ = res.Body.Close()
					}
				}()
			}
			require.Equal(t, 3*tc.count, l.settled(t)["/requests"])
			require.Equal(t, 200, call(t, l.Transport(always(200, `{}`)), chat(10, 10)))
		})
	}
}

type failing struct{ error }

func (e failing) Read([]byte) (int, error) { return 0, e.error }

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// Answers of each API, whole and in events: "hi", for 20 tokens of the prompt and 3 of the answer.
const (
	chatAnswer      = `{"model":"m-1","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3}}`
	responsesAnswer = `{"object":"response","status":"completed","model":"m-1","output":[{"type":"message","role":"assistant","content":[` +
		`{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":20,"output_tokens":3,"total_tokens":23}}`
	messagesAnswer = `{"type":"message","role":"assistant","model":"m-1","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",` +
		`"usage":{"input_tokens":4,"cache_read_input_tokens":16,"output_tokens":3}}`
	chatEvents = `data: {"model":"m-1","choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3}}` +
		"\n\ndata: [DONE]\n\n"
	responsesEvents = `data: {"type":"response.output_text.delta","delta":"hi"}` + "\n\n" +
		`data: {"type":"response.completed","response":` + responsesAnswer + "}\n\n"
	messagesEvents = `data: {"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":4,"cache_read_input_tokens":16,"output_tokens":1}}}` +
		"\n\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n"
)

// Each API has its path, its login and its body. What comes back is read by what it is, as gateways answer in other APIs than they are asked in.
func TestEachAPI(t *testing.T) {
	for _, c := range []struct {
		api         chat.API
		provider    profile.Name
		path, login string
		body        string
	}{
		{
			chat.Chat, openAI, "/chat/completions", "Authorization",
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"x"}],"max_completion_tokens":100}`,
		},
		{
			chat.Responses, openAI, "/responses", "Authorization",
			`{"model":"m","input":[{"role":"system","content":"s"},{"role":"user","content":"x"}],"max_output_tokens":100}`,
		},
		{chat.Messages, anthropic, "/messages", "X-Api-Key", `{"model":"m","system":"s","messages":[{"role":"user","content":"x"}],"max_tokens":100}`},
		{chat.Messages, azure, "/messages", "X-Api-Key", `{"model":"m","system":"s","messages":[{"role":"user","content":"x"}],"max_tokens":100}`},
		{chat.Messages, selfHosted, "/messages", "X-Api-Key", `{"model":"m","system":"s","messages":[{"role":"user","content":"x"}],"max_tokens":100}`},
	} {
		for _, answer := range []string{chatAnswer, responsesAnswer, messagesAnswer, chatEvents, responsesEvents, messagesEvents} {
			var asked *http.Request
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r
				body, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, answer)
			}))
			s := testSettings(func(s *settings) { s.API, s.Provider, s.BaseURL, s.System = c.api, c.provider, server.URL+"/v1", "s" })
			l := throttletest.New()
			r := ask(t.Context(), t, mustHandlerTo(t, s, l), "x")
			server.Close()
			require.Nil(t, r.Error)
			require.Equal(t, result{
				Text: "hi", Model: "m-1", FinishReason: "stop", Attempts: 1, Usage: &used{PromptTokens: 20, CompletionTokens: 3, TotalTokens: 23},
			}, r)
			require.Equal(t, "/v1"+c.path, asked.URL.String())
			require.JSONEq(t, c.body, string(body))
			key, version := map[string]string{}, ""
			for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
				if value := asked.Header.Get(name); value != "" {
					key[name] = strings.TrimPrefix(value, "Bearer ")
				}
			}
			require.Equal(t, map[string]string{c.login: canary}, key)
			if c.api == chat.Messages {
				version = "2023-06-01"
			}
			require.Equal(t, version, asked.Header.Get("Anthropic-Version"))
		}
	}
}

// The messages API requires a bound for an answer. The user's own headers win.
func TestMessagesWithoutABound(t *testing.T) {
	var header http.Header
	e := answers(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		_, _ = io.WriteString(w, messagesAnswer)
	})
	l := throttletest.New()
	s := testSettings(func(s *settings) {
		s.API, s.MaxTokens, s.Headers, s.APIKey = chat.Messages, 0, "Anthropic-Version: 2030-01-01\nAuthorization: Bearer x", program.Credential{}
	})
	require.Equal(t, "hi", ask(t.Context(), t, mustHandler(t, s, l, e, nil), "four").Text)
	require.JSONEq(t, `{"model":"m","messages":[{"role":"user","content":"four"}],"max_tokens":1024}`, e.calls[0])
	require.Equal(t, 1025, l.Draws()[0].Cost)
	require.Equal(t, []string{"2030-01-01"}, header["Anthropic-Version"])
	require.Equal(t, "Bearer x", header.Get("Authorization"))
	require.Empty(t, header.Get("X-Api-Key"))

	s.ExtraBody = `{"max_tokens":30}`
	ask(t.Context(), t, mustHandler(t, s, l, e, nil), "four")
	require.Contains(t, e.calls[1], `"max_tokens":30}`)
	require.Equal(t, 31, l.Draws()[1].Cost)
}

// A usage that came before the end of an answer says nothing of how long answers are.
func TestOnlyAFinalUsageIsLearntFrom(t *testing.T) {
	early := `data: {"choices":[{"delta":{"content":"h"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}` + "\n\n"
	for body, learnt := range map[string]bool{early: false, chatEvents: true, messagesEvents: true, responsesEvents: true} {
		l := throttletest.New()
		h := mustHandler(t, testSettings(func(s *settings) { s.MaxTokens = 0 }), l, answers(refuses(200, "", body)), nil)
		for range 20 {
			require.Equal(t, "hi", ask(t.Context(), t, h, "four").Text)
		}
		require.Equal(t, 1025, l.Draws()[0].Cost)
		require.Equal(t, learnt, l.Draws()[19].Cost < 1025, body)
	}
}

func TestEndpointsOfEachAPI(t *testing.T) {
	for _, c := range []struct {
		api           chat.API
		provider      profile.Name
		base, version string
		want          string
	}{
		{chat.Responses, openAI, "", "", "https://api.openai.com/v1/responses"},
		{chat.Messages, anthropic, "", "", "https://api.anthropic.com/v1/messages"},
		{chat.Responses, azure, "https://n.openai.azure.com", "", "https://n.openai.azure.com/openai/v1/responses"},
		{chat.Responses, azure, "https://n.openai.azure.com/openai/v1/", "", "https://n.openai.azure.com/openai/v1/responses"},
		{chat.Responses, azure, "https://n.openai.azure.com/openai", "v", "https://n.openai.azure.com/openai/responses?api-version=v"},
		{chat.Messages, azure, "https://n.services.ai.azure.com/anthropic/v1", "", "https://n.services.ai.azure.com/anthropic/v1/messages"},
	} {
		s := settings{API: c.api, BaseURL: c.base, Model: "m", APIVersion: c.version}
		s.Provider = c.provider
		s = withDefaults(s)
		require.Equal(t, c.want, s.endpoint())
	}
}

// Wrong combinations are told before the first call, also of one deployment; gateways may have any API.
func TestFaultsOfTheAPI(t *testing.T) {
	clearEnv(t)
	t.Setenv("LLM_MAP_MODEL", "m")
	t.Setenv("LLM_MAP_API_KEY", canary)
	for text, want := range map[string]string{
		"API: completions":                                                         "allowed: `chat`, `responses`, `messages` or `embeddings`",
		"API: messages":                                                            `api is "messages", which openai does not have (LLM_MAP_API)`,
		"API: responses, PROVIDER: anthropic":                                      `api is "responses", which anthropic does not have`,
		"API: messages, BASE_URL: http://h":                                        "",
		"API: responses, BASE_URL: http://h, PROVIDER: anthropic":                  "",
		"API: messages, PROVIDER: anthropic":                                       "",
		"API: responses, MAX_TOKENS_FIELD: max_tokens":                             "maxTokensField is set, but the api is responses",
		"API: responses, MAX_TOKENS_FIELD: auto":                                   "",
		"API: chat, MAX_TOKENS_FIELD: max_tokens":                                  "",
		"API: responses, EXTRA_BODY: '{input: x}'":                                 `extraBody sets "input", which is set already`,
		"API: responses, MAX_TOKENS: 5, EXTRA_BODY: '{max_output_tokens: 6}'":      `extraBody sets "max_output_tokens", which is set already`,
		"API: messages, PROVIDER: anthropic, SYSTEM: s, EXTRA_BODY: '{system: x}'": "extraBody has a system message, and so has the setting system",
		"API: messages, PROVIDER: anthropic, EXTRA_BODY: '{system: x}'":            "",
		"API: messages, PROVIDER: anthropic, TOKENS_PER_MINUTE: 900":               "outputTokens is 1024, which is sent as max_tokens and",
		"API: messages, PROVIDER: anthropic, HEADERS: 'X-Api-Key: k'":              "headers sets X-Api-Key, and so does the key",
		"API: messages, DEPLOYMENTS: '{a: {}}'":                                    `deployments.a: api is "messages", which openai does not have`,
		"MAX_TOKENS_FIELD: max_tokens, DEPLOYMENTS: '{a: {api: responses}}'":       "",
	} {
		t.Run(text, func(t *testing.T) {
			setEnv(t, text)
			_, err := loadSettings()
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		})
	}
	var out bytes.Buffer
	setEnv(t, "API: responses, DEPLOYMENTS: '{a: {api: chat}, b: {}}'")
	require.NoError(t, llmMap.Run(t.Context(), []string{"--check"}, &out, io.Discard))
	require.Contains(t, out.String(), `api: "responses"`)
	require.Contains(t, out.String(), "{a: {api: chat}, b: {}}")
	s, err := loadSettings()
	require.NoError(t, err)
	require.Equal(t, []chat.API{chat.Chat, chat.Responses}, []chat.API{s.targets[0].API, s.targets[1].API})
}

// A refusal within a stream of the messages API waits for its limit, and an error status is judged by its type.
func TestErrorsOfTheMessagesAPI(t *testing.T) {
	const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	for _, c := range []struct {
		status  int
		body    string
		verdict verdict
		code    string
	}{
		{200, "event: error\ndata: " + overloaded + "\n\n", overload, "overloaded_error"},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, wait, "rate_limit_error"},
		{529, overloaded, overload, "overloaded_error"},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`, invalid, "invalid_request_error"},
		{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key ` + canary + `"}}`, stop, "authentication_error"},
		{404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, stop, "not_found_error"},
	} {
		server := httptest.NewServer(http.HandlerFunc(refuses(c.status, "", c.body)))
		s := testSettings(func(s *settings) { s.API, s.Provider, s.BaseURL = chat.Messages, anthropic, server.URL })
		o := judge(t.Context(), complete(t.Context(), t, &s, throttletest.New()))
		server.Close()
		require.Equal(t, c.verdict, o.verdict, c.body)
		require.Equal(t, c.code, o.code)
		require.NotContains(t, o.text+o.err.Error()+o.words, canary)
	}
}

// setEnv sets variables of llm-map until the test ends: a list of NAME: value.
func setEnv(t *testing.T, list string) {
	t.Helper()
	var all map[string]string
	require.NoError(t, yaml.Unmarshal([]byte("{"+list+"}"), &all))
	for name, value := range all {
		t.Setenv(prefix+name, value)
	}
}

package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	official "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	community "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// An llm is a small server with the chat endpoint of OpenAI. It refuses as often as it is
// told, and then answers "hi", which costs 29 tokens.
type llm struct {
	*httptest.Server

	mu      sync.Mutex
	refuse  int
	code    string
	after   string
	prompts []string
}

func serveLLM(t *testing.T, refuse int, code, after string) *llm {
	t.Helper()
	s := &llm{refuse: refuse, code: code, after: after}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *llm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Stream   bool `json:"stream"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.prompts = append(s.prompts, body.Messages[0].Content)
	refuse := len(s.prompts) <= s.refuse
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if refuse {
		w.Header().Set("Retry-After-Ms", s.after)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"no","type":"x","param":null,"code":%q}}`, s.code)
		return
	}
	const usage = `"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}`
	if body.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","usage":null,`+
			`"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\n")
		_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","choices":[],`+usage+"}\n\ndata: [DONE]\n\n")
		return
	}
	_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}],`+usage+`}`)
}

// A client asks for one completion, by one library.
type client func(ctx context.Context, url string, transport http.RoundTripper, prompt string) (string, error)

func clients() map[string]client {
	return map[string]client{
		"go-openai": func(ctx context.Context, url string, transport http.RoundTripper, prompt string) (string, error) {
			res, err := goOpenAI(url, transport).CreateChatCompletion(ctx, goOpenAIRequest(prompt))
			if err != nil {
				return "", err
			}
			return res.Choices[0].Message.Content, nil
		},
		"go-openai, streamed": func(ctx context.Context, url string, transport http.RoundTripper, prompt string) (string, error) {
			req := goOpenAIRequest(prompt)
			req.StreamOptions = &community.StreamOptions{IncludeUsage: true}
			stream, err := goOpenAI(url, transport).CreateChatCompletionStream(ctx, req)
			if err != nil {
				return "", err
			}
			defer func() { _ = stream.Close() }()
			var text strings.Builder
			for {
				chunk, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return text.String(), nil
				}
				if err != nil {
					return "", err
				}
				for _, choice := range chunk.Choices {
					text.WriteString(choice.Delta.Content)
				}
			}
		},
		"openai-go": func(ctx context.Context, url string, transport http.RoundTripper, prompt string) (string, error) {
			c := openAIGo(url, transport)
			res, err := c.Chat.Completions.New(ctx, openAIGoRequest(prompt))
			if err != nil {
				return "", err
			}
			return res.Choices[0].Message.Content, nil
		},
		"openai-go, streamed": func(ctx context.Context, url string, transport http.RoundTripper, prompt string) (string, error) {
			c := openAIGo(url, transport)
			stream := c.Chat.Completions.NewStreaming(ctx, openAIGoRequest(prompt))
			defer func() { _ = stream.Close() }()
			var text strings.Builder
			for stream.Next() {
				for _, choice := range stream.Current().Choices {
					text.WriteString(choice.Delta.Content)
				}
			}
			return text.String(), stream.Err()
		},
	}
}

func goOpenAI(url string, transport http.RoundTripper) *community.Client {
	config := community.DefaultConfig("sesame")
	config.BaseURL = url
	config.HTTPClient = &http.Client{Transport: transport}
	return community.NewClientWithConfig(config)
}

func goOpenAIRequest(prompt string) community.ChatCompletionRequest {
	return community.ChatCompletionRequest{
		Model:    "gpt-4o",
		Messages: []community.ChatCompletionMessage{{Role: community.ChatMessageRoleUser, Content: prompt}},
	}
}

// openAIGo switches off the library's own retries, which the limit would not see.
func openAIGo(url string, transport http.RoundTripper) official.Client {
	return official.NewClient(option.WithBaseURL(url), option.WithAPIKey("sesame"), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: transport}))
}

func openAIGoRequest(prompt string) official.ChatCompletionNewParams {
	return official.ChatCompletionNewParams{
		Model:    "gpt-4o",
		Messages: []official.ChatCompletionMessageParamUnion{official.UserMessage(prompt)},
	}
}

// transport draws an estimate of 100 tokens, which the usage corrects.
func transport(l throttle.Limiter, opts ...httpthrottle.Option) http.RoundTripper {
	opts = append(opts, httpthrottle.WithClassifier(httpthrottle.OpenAI),
		httpthrottle.WithMeter(func(res *http.Response) httpthrottle.Meter { return usage.NewMeter(res, nil) }),
		httpthrottle.WithCost(func(*http.Request) int { return 100 }))
	return httpthrottle.NewTransport(nil, l, opts...)
}

// Refusals are waited out within the limit, with the whole prompt each time, and the usage
// is settled.
func TestRefusalsAreWaitedOut(t *testing.T) {
	for name, ask := range clients() {
		t.Run(name, func(t *testing.T) {
			s := serveLLM(t, 2, "rate_limit_exceeded", "5")
			l := throttletest.New()
			text, err := ask(t.Context(), s.URL, transport(l), "hello")
			require.NoError(t, err)
			require.Equal(t, "hi", text)
			require.Equal(t, []string{"hello", "hello", "hello"}, s.prompts)
			require.Equal(t, []int{100, 100, 29}, used(l))
		})
	}
}

// A quota that is spent is asked for once.
func TestStopIsNotRetried(t *testing.T) {
	for name, ask := range clients() {
		t.Run(name, func(t *testing.T) {
			s := serveLLM(t, 9, "insufficient_quota", "5")
			l := throttletest.New()
			_, err := ask(t.Context(), s.URL, transport(l), "hello")
			require.ErrorContains(t, err, "429")
			require.Len(t, s.prompts, 1)
			require.Equal(t, []int{100}, used(l))

			_, err = ask(t.Context(), s.URL, transport(l, httpthrottle.RefusalsAsErrors()), "hello")
			refused, ok := errors.AsType[*httpthrottle.RefusedError](err)
			require.True(t, ok)
			require.Equal(t, httpthrottle.Stop, refused.Refusal.Class)
			require.Equal(t, "insufficient_quota", refused.Refusal.Code)
			require.Len(t, s.prompts, 2)
		})
	}
}

// A wait that is too long comes out of the library with its time, and so does a pause that
// another call began.
func TestTimeToRetryComesThrough(t *testing.T) {
	for name, ask := range clients() {
		t.Run(name, func(t *testing.T) {
			s := serveLLM(t, 9, "rate_limit_exceeded", "240000")
			tr := transport(throttletest.New(), httpthrottle.RefusalsAsErrors())
			// The first call learns that it takes four minutes; others are held back as long. Above WithMaxPause it would be a stop.
			for _, want := range []struct {
				reason throttle.Reason
				least  float64
			}{{httpthrottle.ReasonRefused, 3.9}, {throttle.ReasonPause, 3.9}} {
				_, err := ask(t.Context(), s.URL, tr, "hello")
				require.ErrorIs(t, err, throttle.ErrThrottled)
				refused, ok := errors.AsType[*throttle.Error](err)
				require.True(t, ok)
				require.Equal(t, want.reason, refused.Reason)
				require.Greater(t, refused.RetryAfter.Minutes(), want.least)
			}
			require.Len(t, s.prompts, 1)
		})
	}
}

func used(l *throttletest.Limiter) []int {
	var tokens []int
	for _, d := range l.Draws() {
		tokens = append(tokens, d.Used)
	}
	return tokens
}

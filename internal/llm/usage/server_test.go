package usage_test

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// How a caller ends an answer of a real server.
func toItsEnd(_ context.CancelFunc, body io.Reader) { _, _ = io.Copy(io.Discard, body) }

// untilDone reads events as client libraries do, which let go after [DONE].
func untilDone(_ context.CancelFunc, body io.Reader) {
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadString('\n')
		if err != nil || strings.TrimSpace(line) == "data: [DONE]" {
			return
		}
	}
}

// andCancels reads what there is, and gives up.
func andCancels(cancel context.CancelFunc, body io.Reader) {
	_, _ = body.Read(make([]byte, 4096))
	cancel()
	_, _ = io.Copy(io.Discard, body)
}

func andCloses(_ context.CancelFunc, body io.Reader) { _, _ = body.Read(make([]byte, 4096)) }

// Only the usage of a whole answer lowers what a call cost. 600 tokens are drawn.
func TestOnlyAFinalUsageLowersTheCost(t *testing.T) {
	const (
		interim = `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":19,"completion_tokens":7,"total_tokens":26}}` + "\n\n"
		more    = `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"total_tokens":900}}` + "\n\n"
	)
	begun := before(anthropicStream, "event: ping")
	withoutDone := strings.TrimSuffix(openAIStream, "data: [DONE]\n\n")
	meter := func(res *http.Response) httpthrottle.Meter { return usage.NewMeter(res, nil) }
	for _, tc := range []struct {
		name, body string
		broken     bool // the connection ends without the end of the body
		open       bool // the server goes on for ever
		read       func(context.CancelFunc, io.Reader)
		used       int
	}{
		{"whole", openAIStream, false, false, toItsEnd, 29},
		{"whole, for a caller that lets go at the last event", openAIStream, false, true, untilDone, 29},
		{"whole, and then the connection breaks", openAIStream, true, false, toItsEnd, 29},
		{"cut off", interim, true, false, toItsEnd, 600},
		{"cut off above what was drawn", more, true, false, toItsEnd, 900},
		{"cut off by something that ends it well", interim, false, false, toItsEnd, 600},
		{"cut off between usage and the last event", withoutDone, true, false, toItsEnd, 600},
		{"cut off by a gateway that sends its own end", interim + "data: [DONE]\n\n", false, false, toItsEnd, 600},
		{"the same above what was drawn", more + "data: [DONE]\n\n", false, false, untilDone, 900},
		{"closed before its end", interim, false, true, andCloses, 600},
		{"given up", interim, false, true, andCancels, 600},
		{"Anthropic", anthropicStream, false, false, toItsEnd, 40},
		{"Anthropic, only begun", begun, true, false, toItsEnd, 600},
		{"Anthropic, only begun, with an end", begun, false, false, toItsEnd, 600},
		{"OpenAI's responses, let go", openAIResponses, false, true, andCloses, 48},
		{"Gemini", geminiEvents, false, false, toItsEnd, 128},
		{"Gemini, closed before its end", geminiEvents, false, true, andCloses, 600},
		{"Gemini, cut off", before(geminiEvents, "\n\n") + "\n\n", true, false, toItsEnd, 600},
		{"Gemini's array", geminiArray, false, false, toItsEnd, 128},
		{"Gemini's array, cut off", strings.TrimSuffix(geminiArray, "]"), false, false, toItsEnd, 600},
		{"JSON", openAIChat, false, false, toItsEnd, 29},
		{"JSON, let go at its end", openAIChat, false, true, andCloses, 29},
		{"JSON, cut off behind the usage", openAIChat[:len(openAIChat)-1], true, false, toItsEnd, 600},
		{"JSON, cut off with an end", openAIChat[:len(openAIChat)-1], false, false, toItsEnd, 600},
		{"Moonshot", moonshotStream, false, false, toItsEnd, 29},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, tc.body)
				_ = http.NewResponseController(w).Flush()
				if tc.open {
					<-r.Context().Done()
				}
				if tc.broken {
					panic(http.ErrAbortHandler)
				}
			}))
			defer server.Close()
			l := throttletest.New()
			client := &http.Client{Transport: httpthrottle.NewTransport(nil, l, httpthrottle.WithMeter(meter),
				httpthrottle.WithCost(func(*http.Request) int { return 600 }))}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
			require.NoError(t, err)
			res, err := client.Do(req)
			require.NoError(t, err)
			tc.read(cancel, res.Body)
			require.NoError(t, res.Body.Close())
			require.Equal(t, tc.used, l.Used())
		})
	}
}

// However a stream comes in pieces and wherever it ends, its usage is final only if it is whole; and what is told of it
// never falls as more of it comes.
func TestUsageOfAnyPartOfAStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	streams := map[string]int{ // where the last event that matters ends, at the earliest
		openAIStream: strings.Index(openAIStream, "[DONE]"), anthropicStream: strings.Index(anthropicStream, "message_stop\"}"),
		openAIResponses: len(openAIResponses) - 4, moonshotStream: strings.Index(moonshotStream, "[DONE]"),
		openAIChat: len(openAIChat) - 1, geminiArray: len(geminiArray) - 1,
	}
	for body, whole := range streams {
		for range 300 {
			cut := rng.IntN(len(body) + 1)
			m := usage.NewMeter(&http.Response{}, nil)
			last := 0
			for rest := body[:cut]; rest != ""; {
				n := 1 + rng.IntN(min(len(rest), 1+rng.IntN(200)))
				_, _ = io.WriteString(m, rest[:n])
				rest = rest[n:]
				used, _ := m.UsedUntil(false)
				require.GreaterOrEqual(t, used, last)
				last = used
			}
			used, final := m.UsedUntil(false)
			if final {
				require.Greater(t, cut, whole, "final at %d of %q", cut, body)
				require.NotZero(t, used)
			}
			if cut == len(body) {
				require.True(t, final, body)
			}
		}
	}
}

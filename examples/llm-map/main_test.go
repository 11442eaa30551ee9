package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// canary is a key that must not come out anywhere.
const canary = "sk-hunter2-canary"

// processVariable makes this binary an llm-map.
const processVariable = "LLMMAPTEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(processVariable) != "" {
		_ = os.Unsetenv(processVariable)
		main()
		return
	}
	os.Exit(m.Run())
}

// clearEnv takes away every variable that llm-map reads, until the test ends.
func clearEnv(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		for _, p := range []string{"NUMATHROTTLE_", "NUMAFLOW_", prefix} {
			if strings.HasPrefix(name, p) {
				t.Setenv(name, value) // puts it back in the end
				require.NoError(t, os.Unsetenv(name))
			}
		}
	}
}

func loadSettings() (settings, error) {
	s, r := llmMap.Read()
	return s, r.Err()
}

// The providers of the tests.
const (
	openAI     = profile.OpenAI
	azure      = profile.Azure
	anthropic  = profile.Anthropic
	selfHosted = profile.SelfHosted
)

// testSettings are those of a self-hosted endpoint, with a key.
func testSettings(change func(*settings)) settings {
	s := settings{
		BaseURL: "http://endpoint.invalid/v1", Model: "m", MaxTokens: 100, APIKey: program.Credential{Text: numathrottle.NewSecret(canary)},
	}
	s.Provider = selfHosted
	if change != nil {
		change(&s)
	}
	return withDefaults(s)
}

// drawing returns a target whose calls draw from l, instead of the limits of s, and from a purse.
func drawing(t testing.TB, s settings, l throttle.Limiter, p *account.Purse) target {
	t.Helper()
	return drawingTo(t, s, l, p, discard())
}

// drawingTo is drawing with a log.
func drawingTo(t testing.TB, s settings, l throttle.Limiter, p *account.Purse, log *slog.Logger) target {
	t.Helper()
	c := s.shaped()
	if c.Limiter, c.Purse = l, p; l == nil {
		c.Limiter = throttle.All()
	}
	limits, err := account.Open(t.Context(), c, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, limits.Close()) })
	return target{s, limits}
}

// mustHandler returns a handler whose calls draw from l and are answered by endpoint, without a network.
func mustHandler(t *testing.T, s settings, l throttle.Limiter, endpoint http.Handler, log *slog.Logger) *handler {
	t.Helper()
	return handlerOf(t, drawing(t, s, l, nil), endpoint, log)
}

// handlerOf is mustHandler for open limits.
func handlerOf(t *testing.T, of target, endpoint http.Handler, log *slog.Logger) *handler {
	t.Helper()
	if log == nil {
		log = discard()
	}
	h, err := newHandler(of.settings, []target{of}, inMemory{endpoint}, log)
	require.NoError(t, err)
	return h
}

// pursed returns the purse of settings, with their budget.
func pursed(t *testing.T, s settings, log *slog.Logger) *account.Purse {
	t.Helper()
	p, err := account.OpenPurse(t.Context(), s.Pool, s.Prices, s.Budget, s.BudgetQuotas(), s.OnStop == resultOnStop, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// limitOf returns the limit of a setting.
func limitOf(s settings, key string) throttle.Limit {
	c := s.shaped()
	return c.Limits()[key]
}

// opened returns a target with the limits of settings.
func opened(t *testing.T, s settings) target {
	t.Helper()
	l, err := openLimits(t.Context(), s, nil, discard())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return target{s, l}
}

// inMemory is a transport that calls a handler itself, so that tests can run in virtual
// time.
type inMemory struct{ handler http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return w.Result(), nil
}

// A datum is a message.
type datum struct {
	mapsdk.Datum

	value   string
	headers map[string]string
}

func (d datum) Value() []byte              { return []byte(d.value) }
func (d datum) Headers() map[string]string { return d.headers }
func (d datum) EventTime() time.Time       { return time.Unix(1_700_000_000, 0) }

// ask sends one message and returns its result. It must be an error if and only if it has
// the tag for it.
func ask(ctx context.Context, t *testing.T, h *handler, text string) result {
	t.Helper()
	out := h.Map(ctx, []string{"k"}, datum{value: text}).Items()
	require.Len(t, out, 1)
	require.Equal(t, []string{"k"}, out[0].Keys())
	require.NotContains(t, string(out[0].Value()), canary)
	var r result
	require.NoError(t, json.Unmarshal(out[0].Value(), &r))
	require.Equal(t, r.Error != nil, len(out[0].Tags()) == 1 && out[0].Tags()[0] == errorTag)
	return r
}

// An endpoint answers each call with the next of its answers; the last goes on for ever.
type endpoint struct {
	mu      sync.Mutex
	answers []func(w http.ResponseWriter, r *http.Request)
	calls   []string // bodies
	at      []time.Time
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	e.mu.Lock()
	e.calls, e.at = append(e.calls, body.String()), append(e.at, time.Now())
	answer := e.answers[min(len(e.calls), len(e.answers))-1]
	e.mu.Unlock()
	answer(w, r)
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.calls)
}

type answer = func(w http.ResponseWriter, r *http.Request)

// says is a good answer that costs prompt and completion tokens.
func says(text string, prompt, completion int) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"model":"m-1","choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, text, prompt, completion, prompt+completion)
	}
}

// refuses is any other answer. header is "Name: value", or empty.
func refuses(status int, header, body string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func answers(a ...answer) *endpoint { return &endpoint{answers: a} }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestAnswer(t *testing.T) {
	e := answers(says("hello", 7, 3))
	h := mustHandler(t, testSettings(func(s *settings) { s.System, s.Temperature = "Be kind.", "0" }), nil, e, nil)
	require.Equal(t, result{
		Text: "hello", Model: "m-1", FinishReason: "stop", Usage: &used{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10}, Attempts: 1,
	}, ask(t.Context(), t, h, "hi"))
	require.Contains(t, e.calls[0], `"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"hi"}]`)
	require.Contains(t, e.calls[0], `"temperature":0}`)
}

// What a call draws, and what it is settled with: a prompt of 400 characters, an answer of
// at most 50 tokens.
func TestDrawAndSettlement(t *testing.T) {
	for _, c := range []struct {
		charge       profile.Charge
		draws, stays int
	}{
		{profile.ByLarger, 100, 100},
		{profile.BySum, 150, 150},
		{profile.ByUsage, 150, 110},
	} {
		t.Run(string(c.charge), func(t *testing.T) {
			l := throttletest.New()
			s := testSettings(func(s *settings) { s.Charge, s.MaxTokens = c.charge, 50 })
			ask(t.Context(), t, mustHandler(t, s, l, answers(says("hi", 90, 20)), nil), strings.Repeat("x", 400))
			draws := l.Draws()
			require.Len(t, draws, 1)
			require.Equal(t, c.draws, draws[0].Cost)
			require.True(t, draws[0].Settled)
			require.Equal(t, c.stays, draws[0].Used)
		})
	}
}

// Without maxTokens the draw is what answers were like, and never above outputTokens.
func TestUnboundedAnswersAreEstimated(t *testing.T) {
	l := throttletest.New()
	s := testSettings(func(s *settings) { s.MaxTokens, s.OutputTokens = 0, 500 })
	e := answers(says("short", 1, 20))
	h := mustHandler(t, s, l, e, nil)
	for range 100 {
		ask(t.Context(), t, h, "four")
	}
	draws := l.Draws()
	require.Equal(t, 501, draws[0].Cost)
	require.InDelta(t, 21, draws[99].Cost, 2)
	require.NotContains(t, e.calls[0], "max_tokens")
	e.answers = []answer{says("long", 1, 100_000)}
	for range 100 {
		ask(t.Context(), t, h, "four")
	}
	require.LessOrEqual(t, l.Draws()[199].Cost, 501)
}

// A prompt that the limit can never let through is answered at once, and draws nothing.
func TestTooLargePromptsAreAnsweredAtOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*settings)
		message string
	}{
		{
			"above tokensPerMinute", func(s *settings) { s.TokensPerMinute = 300 },
			"the call would take about 350 tokens (prompt 250), allowed: at most 300 (tokensPerMinute)",
		},
		{"above maxPromptTokens", func(s *settings) { s.MaxPromptTokens = 249 }, "the prompt has about 250 tokens, allowed: at most 249 (maxPromptTokens)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, e := throttletest.New(), answers(says("hi", 1, 1))
			h := mustHandler(t, testSettings(c.change), l, e, nil)
			require.Equal(t, &fault{Code: codeTooLarge, Message: c.message}, ask(t.Context(), t, h, strings.Repeat("x", 1000)).Error)
			require.Empty(t, l.Draws())
			require.Zero(t, e.count())
			require.Nil(t, ask(t.Context(), t, h, strings.Repeat("x", 700)).Error)
		})
	}
}

// Each call draws, and one that is refused comes again when the provider says, for as long
// as it takes.
func TestRefusalsAreRepeatedWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttletest.New()
		e := answers(
			refuses(429, "Retry-After: 20", "slow down"), refuses(503, "", "overloaded"), refuses(429, "", "slow down"), says("hi", 1, 1))
		var log bytes.Buffer
		h := mustHandler(t, testSettings(func(s *settings) { s.MaxAttempts = 1 }), l, e, slog.New(slog.NewTextHandler(&log, nil)))
		r := ask(t.Context(), t, h, "x")
		require.Equal(t, "hi", r.Text)
		require.Equal(t, 4, r.Attempts)
		require.Len(t, l.Draws(), 4)
		require.GreaterOrEqual(t, e.at[1].Sub(e.at[0]), 20*time.Second)
		require.Less(t, e.at[1].Sub(e.at[0]), 23*time.Second)
		for i := range 3 {
			require.GreaterOrEqual(t, e.at[i+1].Sub(e.at[i]), 500*time.Millisecond, i)
		}
		require.Contains(t, log.String(), "class=overload")
		require.NotContains(t, log.String(), canary)
	})
}

func TestFailuresAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := answers(refuses(500, "", "broken"))
		h := mustHandler(t, testSettings(func(s *settings) { s.MaxAttempts = 3 }), nil, e, nil)
		r := ask(t.Context(), t, h, "x")
		require.Equal(t, &fault{Code: "500", Message: "the endpoint answered with status 500"}, r.Error)
		require.Equal(t, 3, r.Attempts)
		require.Equal(t, 3, e.count())
		e.answers = []answer{refuses(400, "", `{"error":{"message":"no","code":"content_filter"}}`)}
		require.Equal(t, 1, ask(t.Context(), t, h, "x").Attempts, "the message's own fault is not repeated")
	})
}

// While the account is spent one call a minute tries; all messages are answered afterwards.
func TestStopHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spent := refuses(429, "", `{"error":{"message":"x","code":"insufficient_quota"}}`)
		e := answers(says("hi", 1, 1), spent)
		var log bytes.Buffer
		h := mustHandler(t, testSettings(nil), nil, e, slog.New(slog.NewTextHandler(&log, nil)))
		var asked sync.WaitGroup
		require.Nil(t, ask(t.Context(), t, h, "x").Error)
		before := e.count()
		for range 10 {
			asked.Go(func() { require.Equal(t, "hi", ask(t.Context(), t, h, "x").Text) })
		}
		synctest.Wait()
		first := e.count() - before
		require.LessOrEqual(t, first, 10)
		time.Sleep(10*time.Minute + time.Second)
		require.Equal(t, first+10, e.count()-before, "one a minute")
		e.mu.Lock()
		e.answers = []answer{says("hi", 1, 1)}
		e.mu.Unlock()
		began := time.Now()
		asked.Wait()
		require.LessOrEqual(t, time.Since(began), time.Minute)
		require.Equal(t, 1, strings.Count(log.String(), "refuses all calls"))
	})
}

func TestStopAsResult(t *testing.T) {
	e := answers(refuses(401, "", `{"error":{"message":"`+canary+`","code":"invalid_api_key"}}`))
	h := mustHandler(t, testSettings(func(s *settings) { s.OnStop = resultOnStop }), nil, e, nil)
	require.Equal(t, "invalid_api_key", ask(t.Context(), t, h, "x").Error.Code)
	require.Equal(t, 1, e.count())
}

// A message whose context ends has no answer, wherever it waits, and what it drew comes
// back or counts as drawn.
func TestEndedMessagesHaveNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		script   []throttletest.Step
		endpoint *endpoint
	}{
		"for tokens": {[]throttletest.Step{throttletest.Block()}, answers(says("hi", 1, 1))},
		"in a call":  {nil, answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })},
		"refused":    {nil, answers(refuses(429, "Retry-After: 60", ""))},
		"failed":     {nil, answers(refuses(500, "", ""))},
		"stopped":    {nil, answers(refuses(401, "", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := mustHandler(t, testSettings(func(s *settings) { s.MaxAttempts = 1000 }), throttletest.New(c.script...), c.endpoint, nil)
				requireNoAnswer(t, h, time.Second)
			})
		})
	}
}

// requireNoAnswer has a handler take a message whose context ends after so long: an answer would lose the message.
func requireNoAnswer(t *testing.T, h *handler, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(after, cancel)
	returned, gone := false, make(chan struct{})
	go func() {
		defer close(gone)
		h.Map(ctx, nil, datum{value: "x"})
		returned = true
	}()
	<-gone
	require.Error(t, ctx.Err(), "it has waited for the end")
	require.False(t, returned, "an answer would lose the message")
}

// A limiter that is closed belongs to a process that shuts down: the message waits for the
// end of its stream.
func TestClosedLimiterAnswersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 1000})
		require.NoError(t, err)
		require.NoError(t, l.Close())
		h := mustHandler(t, testSettings(nil), l, answers(says("hi", 1, 1)), nil)
		requireNoAnswer(t, h, time.Hour)
	})
}

// The key is read for every call, so that a changed Secret needs no restart; a file that
// is broken for a while is a failure, and names no content.
// A file that cannot be used leaves the last key in force, and is told once.
func TestKeyFileIsReadAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	var seen []string
	e := answers(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		says("hi", 1, 1)(w, r)
	})
	s := testSettings(func(s *settings) { s.APIKey, s.MaxAttempts = program.Credential{File: file}, 1 })
	var logs testkit.Book
	h := mustHandler(t, s, nil, e, logs.Logger())
	for _, key := range []string{"one", "two\n", canary + "\x00", "", "three"} {
		require.NoError(t, os.WriteFile(file, []byte(key), 0o600))
		require.Nil(t, ask(t.Context(), t, h, "x").Error)
	}
	require.Equal(t, []string{"Bearer one", "Bearer two", "Bearer two", "Bearer two", "Bearer three"}, seen)
	require.Equal(t, 2, strings.Count(logs.String(), "cannot be used: what it held before stays"), logs.String())
	require.Contains(t, logs.String(), "apiKeyFile is")
	require.NotContains(t, logs.String(), canary)
}

func TestAnswersThatAreTooLong(t *testing.T) {
	endless := answers(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"model":"`+strings.Repeat("x", maxAnswer)+`"}`)
	})
	h := mustHandler(t, testSettings(nil), nil, endless, nil)
	r := ask(t.Context(), t, h, "x")
	require.Equal(t, "answer_too_long", r.Error.Code)
	require.Equal(t, 1, r.Attempts, "the next would be as long, and would cost as much")
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	"github.com/stretchr/testify/require"
)

// An embedder is an endpoint for embeddings with limits of a call. The vector of a text is the number that it begins with. Items come in the
// opposite order.
type embedder struct {
	perByte             float64
	inputs, text, whole int           // the most of a call, and the tokens of a text and of a call; 0: any
	status              int           // of what is too much; 0: 400
	bad                 string        // a text that is refused, by what it begins with
	first               []answer      // of the first calls, instead
	hold                chan struct{} // each call waits for one, or for two
	twice               bool
	mu                  sync.Mutex
	calls, tokens       []int // the texts and tokens of the calls that were answered
	refused, all        int
}

type item = map[string]any

func (e *embedder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/embeddings" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hold != nil {
		<-e.hold
		if e.twice {
			<-e.hold
		}
	}
	e.all++
	if e.all <= len(e.first) {
		e.first[e.all-1](w, r)
		return
	}
	tokens, tooMuch := 0, e.inputs > 0 && len(body.Input) > e.inputs
	var data []item
	for i, text := range body.Input {
		n := int(e.perByte * float64(len(text)))
		tokens += n
		tooMuch = tooMuch || e.text > 0 && n > e.text || e.bad != "" && strings.HasPrefix(text, e.bad)
		number, _, _ := strings.Cut(text, " ")
		value, _ := strconv.Atoi(number)
		data = append(data, item{"object": "embedding", "index": i, "embedding": []int{value, -1}})
	}
	if tooMuch || e.whole > 0 && tokens > e.whole {
		e.refused++
		w.WriteHeader(max(e.status, http.StatusBadRequest))
		_, _ = w.Write([]byte(`{"error":{"message":"too much","type":"max_tokens_per_request","code":"max_tokens_per_request"}}`))
		return
	}
	slices.Reverse(data)
	e.calls, e.tokens = append(e.calls, len(body.Input)), append(e.tokens, tokens)
	answer, err := json.Marshal(item{"object": "list", "data": data, "model": body.Model + "-1", "usage": item{"prompt_tokens": tokens}})
	if err == nil {
		_, _ = w.Write(answer)
	}
}

// texts returns so many numbered texts of a length.
func texts(n, bytes int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%-*d", bytes, i) // spaces count like letters
		out[i] = out[i][:bytes-1] + "x"
	}
	return out
}

// embedding are settings of an endpoint for embeddings.
func embedding(change func(*settings)) settings {
	return testSettings(func(s *settings) {
		s.API, s.MaxTokens = "embeddings", 0
		if change != nil {
			change(s)
		}
	})
}

// batch hands texts over in one batch, and returns the messages that they become. Each has the id and the place of its text.
func batch(ctx context.Context, t *testing.T, h *handler, texts ...string) []batchmapsdk.Message {
	t.Helper()
	in := make(chan batchmapsdk.Datum)
	go func() {
		defer close(in)
		for i, text := range texts {
			in <- batchmapsdk.NewHandlerDatum([]byte(text), time.Time{}, time.Time{}, map[string]string{"tenant": text[:1]}, fmt.Sprint("id", i), []string{"k"})
		}
	}()
	var out []batchmapsdk.Message
	for i, r := range h.BatchMap(ctx, in).Items() {
		require.Equal(t, fmt.Sprint("id", i), r.Id())
		require.Len(t, r.Items(), 1)
		out = append(out, r.Items()[0])
	}
	require.Len(t, out, len(texts))
	return out
}

// results reads messages. They are errors if and only if they have the tag for it.
func results(t *testing.T, messages []batchmapsdk.Message) []result {
	t.Helper()
	out := make([]result, len(messages))
	for i, m := range messages {
		require.NoError(t, json.Unmarshal(m.Value(), &out[i]))
		require.Equal(t, []string{"k"}, m.Keys())
		require.Equal(t, out[i].Error != nil, slices.Equal(m.Tags(), []string{errorTag}))
	}
	return out
}

// requireVectors requires the vector of each text but some, and returns the results of those.
func requireVectors(t *testing.T, all []result, but ...int) (others []result) {
	t.Helper()
	for i, r := range all {
		if slices.Contains(but, i) {
			others = append(others, r)
			continue
		}
		require.Nil(t, r.Error, i)
		require.JSONEq(t, fmt.Sprintf("[%d,-1]", i), string(r.Embedding))
	}
	return others
}

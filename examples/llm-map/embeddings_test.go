package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// Messages are put into as few calls as the provider takes, and each counts as a request, or each text does. The results are in order.
func TestManyMessagesAreOneCall(t *testing.T) {
	for _, c := range []struct {
		texts, bytes int
		change       func(*settings)
		calls        []int
		requests     int
	}{
		{5000, 200, func(s *settings) { s.Provider = profile.OpenAI }, []int{904, 2048, 2048}, 3},
		{5000, 200, func(s *settings) { s.CountInputs = true }, []int{904, 2048, 2048}, 5000},
		{700, 90, func(s *settings) { s.MaxInputs = 250 }, []int{200, 250, 250}, 3},
		{200, 50, func(s *settings) { s.Provider = profile.Cohere }, []int{8, 96, 96}, 200},
		{200, 50, func(s *settings) { s.Provider = profile.Gemini }, []int{100, 100}, 200},
		{100, 400, func(s *settings) { s.MaxCallTokens = 1112 }, []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, 10}, // 100 tokens each
		{1, 5, nil, []int{1}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			reader := sdk.NewManualReader()
			s := embedding(func(s *settings) {
				s.RequestsPerMinute = 1_000_000
				s.Pool = numathrottle.Config{
					Store: "memory://embeddings", Pool: "p", ID: "one", MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)),
				}
				if c.change != nil {
					c.change(s)
				}
			})
			e := &embedder{perByte: 0.25}
			h := handlerOf(t, opened(t, s), e, nil)
			all := results(t, batch(t.Context(), t, h, texts(c.texts, c.bytes)...))
			require.Empty(t, requireVectors(t, all))
			slices.Sort(e.calls)
			require.Equal(t, c.calls, e.calls)
			require.Equal(t, "m-1", all[0].Model)
			require.Equal(t, 1, all[0].Attempts)
			require.Equal(t, c.requests, settled(t, reader, "p/requests"))
		})
	}
}

// settled returns what a limit was charged.
func settled(t *testing.T, reader *sdk.ManualReader, limit string) (n int) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != "numathrottle.tokens.settled" || !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				if v, _ := p.Attributes.Value("limit"); v.AsString() == limit {
					n += int(p.Value)
				}
			}
		}
	}
	return n
}

// What answers say of the tokens of a byte decides how many texts go into a call, also where the provider counts characters against its limits.
func TestCallsAreFilledByWhatWasLearned(t *testing.T) {
	for provider, perByte := range map[profile.Name]float64{profile.SelfHosted: 0.5, profile.OpenAI: 0.5, profile.Azure: 0.3, profile.Mistral: 0.15} {
		e := &embedder{perByte: perByte, whole: 300_000}
		s := embedding(func(s *settings) { s.Provider, s.MaxInputs = provider, 5000 })
		if provider == profile.Azure {
			s.BaseURL = "http://endpoint.invalid/v1/openai/v1"
		}
		limiter := throttle.Limiter(throttletest.New())
		if provider == profile.Mistral {
			limiter = nil // no limit
		}
		h := handlerOf(t, drawing(t, s, limiter, nil), http.StripPrefix(map[bool]string{true: "/v1/openai"}[provider == profile.Azure], e), nil)
		for range 100 {
			requireVectors(t, results(t, batch(t.Context(), t, h, texts(1, 1000)...)))
		}
		e.calls, e.tokens = nil, nil
		requireVectors(t, results(t, batch(t.Context(), t, h, texts(4000, 1000)...)))
		require.Zero(t, e.refused)
		slices.Sort(e.tokens)
		for _, tokens := range e.tokens[1:] { // but the last, which has the rest
			require.GreaterOrEqual(t, tokens, 240_000, provider)
		}
	}
}

// A text that is too long, or that the provider does not take for another reason, fails alone.
func TestARefusedTextFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := texts(100, 60)
		all[41] = "41 " + strings.Repeat("x", 60_000)
		e := &embedder{perByte: 0.25, text: 8192}
		h := mustHandler(t, embedding(nil), nil, e, nil)
		others := requireVectors(t, results(t, batch(t.Context(), t, h, all...)), 41)
		require.Equal(t, "max_tokens_per_request", others[0].Error.Code)
		require.Equal(t, 2, e.all, "it was alone from the beginning")

		for _, status := range []int{400, 413, 422} {
			e = &embedder{perByte: 0.25, bad: "17 ", status: status}
			h = mustHandler(t, embedding(nil), nil, e, nil)
			others = requireVectors(t, results(t, batch(t.Context(), t, h, texts(64, 60)...)), 17)
			require.Equal(t, "max_tokens_per_request", others[0].Error.Code)
			require.Equal(t, 7, others[0].Attempts, "of 64, 32, 16, 8, 4, 2 and itself")
			require.Equal(t, 13, e.all)
			require.Equal(t, 7, e.refused)
		}
		e = &embedder{perByte: 0.25, inputs: 100} // the settings say more
		h = mustHandler(t, embedding(nil), nil, e, nil)
		requireVectors(t, results(t, batch(t.Context(), t, h, texts(300, 60)...)))
		require.Equal(t, []int{75, 75, 75, 75}, e.calls)

		e = &embedder{perByte: 0.25} // a limit that never grants a call of 6,000 tokens is not asked for one
		h = mustHandler(t, embedding(func(s *settings) { s.TokensPerMinute = 2000 }), throttletest.New(), e, nil)
		requireVectors(t, results(t, batch(t.Context(), t, h, texts(100, 240)...)))
		require.Equal(t, []int{25, 25, 25, 25}, e.calls)
	})
}

// A message without a text is an error of its own, and an output is made of each result.
func TestMessagesOfABatchHaveTheirOwnFaults(t *testing.T) {
	e := &embedder{perByte: 0.25}
	h := mustHandler(t, embedding(func(s *settings) { s.Prompt, s.Input = "{{.JSON.n}} is it", inputJSON }), nil, e, nil)
	all := results(t, batch(t.Context(), t, h, `{"n":0}`, `{"n":1}`, `{"m":2}`, `{"n":3}`))
	require.Equal(t, []int{3}, e.calls)
	for i, want := range []string{"[0,-1]", "[1,-1]", "", "[3,-1]"} {
		require.Equal(t, want, string(all[i].Embedding))
	}
	require.Equal(t, codeBadPrompt, all[2].Error.Code)
	require.JSONEq(t, `{"n":3}`, string(all[3].Input))
	require.Empty(t, batch(t.Context(), t, h))

	h = mustHandler(t, embedding(func(s *settings) { s.Output = `{{.Text}}: {{json .Result.embedding}}` }), nil, e, nil)
	require.Equal(t, "0 x: [0,-1]", string(batch(t.Context(), t, h, "0 x")[0].Value()))
}

// The usage of a call is divided by the bytes of its texts, and nothing of it is lost.
func TestSharesOfTheUsage(t *testing.T) {
	e := &embedder{perByte: 0.37}
	h := mustHandler(t, embedding(nil), nil, e, nil)
	sum := 0
	all := results(t, batch(t.Context(), t, h, "0 "+strings.Repeat("x", 98), "1 x", "2 "+strings.Repeat("x", 298), "3 xx", "4 xxx"))
	for _, r := range all {
		sum += r.Usage.PromptTokens
		require.Equal(t, r.Usage.PromptTokens, r.Usage.TotalTokens)
		require.Zero(t, r.Usage.CompletionTokens)
	}
	require.Equal(t, []int{sum}, e.tokens)
	require.InDelta(t, 37, all[0].Usage.PromptTokens, 1)
	require.InDelta(t, 111, all[2].Usage.PromptTokens, 1)
}

// Refusals and failures are treated as those of any call, once for all its texts.
func TestFailedCallsComeAgain(t *testing.T) {
	const (
		few   = `{"data":[{"index":0,"embedding":[1]}],"model":"m"}`
		twice = `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}],"model":"m"}`
	)
	for name, c := range map[string]struct {
		first []answer
		calls int
		code  string
	}{
		"a rate limit":         {[]answer{refuses(429, "Retry-After: 2", ""), refuses(429, "Retry-After: 2", "")}, 3, ""},
		"an overload":          {[]answer{refuses(503, "", "")}, 2, ""},
		"failures":             {[]answer{refuses(500, "", ""), refuses(502, "", "")}, 3, ""},
		"too many failures":    {slices.Repeat([]answer{refuses(500, "", "")}, 9), 4, "500"},
		"one vector too few":   {slices.Repeat([]answer{refuses(200, "", few)}, 9), 4, "broken_answer"},
		"an index twice":       {slices.Repeat([]answer{refuses(200, "", twice)}, 9), 4, "broken_answer"},
		"no choices":           {slices.Repeat([]answer{refuses(200, "", `{"model":"m"}`)}, 9), 4, "no_choices"},
		"a rate limit in body": {[]answer{refuses(200, "", `{"error":{"code":429,"message":"slow down"}}`)}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &embedder{perByte: 0.25, first: c.first}
				h := mustHandler(t, embedding(func(s *settings) { s.MaxAttempts = 4 }), nil, e, nil)
				all := results(t, batch(t.Context(), t, h, "0 x", "1 x"))
				require.Equal(t, c.calls, e.all)
				if c.code == "" {
					requireVectors(t, all)
					require.Equal(t, c.calls, all[1].Attempts)
					return
				}
				for _, r := range all {
					require.Equal(t, c.code, r.Error.Code)
				}
			})
		})
	}
}

// Messages whose call does not come in time are given back, each with its own turn. A batch that ends has no answers.
func TestBatchesThatAreNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &embedder{perByte: 0.25}
		l := throttletest.New(throttletest.Deny(&throttle.Error{Reason: throttle.ReasonLimit, RetryAfter: 8 * time.Second}))
		h := mustHandler(t, embedding(impatience), l, e, nil)
		for _, m := range batch(t.Context(), t, h, "0 x", "1 x") {
			require.Equal(t, []string{batchmapsdk.NACK}, m.Tags())
			require.GreaterOrEqual(t, *m.NackOptions().Delay, uint64(8000))
		}
		require.Zero(t, e.all)

		h = mustHandler(t, embedding(nil), throttletest.New(throttletest.Deny(errors.New("the store is gone"))), answers(refuses(500, "", "")), nil)
		h.settings.MaxAttempts = 2
		require.Equal(t, "not_sent", results(t, batch(t.Context(), t, h, "0 x"))[0].Error.Code)

		ctx, cancel := context.WithCancel(t.Context())
		h = mustHandler(t, embedding(nil), throttletest.New(throttletest.Block()), e, nil)
		ended, returned := make(chan struct{}), false
		go func() {
			defer close(ended)
			in := make(chan batchmapsdk.Datum, 1)
			in <- batchmapsdk.NewHandlerDatum([]byte("0 x"), time.Time{}, time.Time{}, nil, "id", nil)
			close(in)
			h.BatchMap(ctx, in)
			returned = true
		}()
		synctest.Wait()
		cancel()
		<-ended
		require.False(t, returned)
	})
}

// The texts of a call draw for one tag.
func TestACallIsForOneTag(t *testing.T) {
	e := &embedder{perByte: 0.25}
	h := mustHandler(t, embedding(func(s *settings) { s.Tag = "header tenant" }), throttletest.New(), e, nil)
	requireVectors(t, results(t, batch(t.Context(), t, h, texts(12, 10)...))) // tenants 0 to 9; 1 has 10 and 11, too
	slices.Sort(e.calls)
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 3}, e.calls)
}

// With several deployments a call is one that each of them takes, and goes to the next where the first takes no more.
func TestDeploymentsForEmbeddings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &embedder{perByte: 0.25, inputs: 10, status: 413}, &embedder{perByte: 0.25}
		var targets []target
		for name, most := range map[string]int{"a": 40, "b": 30} {
			s := embedding(func(s *settings) {
				s.Deployment, s.MaxInputs, s.BaseURL = name, most, "http://"+name+".invalid/v1"
			})
			targets = append(targets, drawing(t, s, nil, nil))
		}
		slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.settings.Deployment, b.settings.Deployment) })
		h, err := newHandler(targets[0].settings, targets, inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			map[string]http.Handler{"a.invalid": first, "b.invalid": second}[r.Host].ServeHTTP(w, r)
		})}, discard())
		require.NoError(t, err)
		all := results(t, batch(t.Context(), t, h, texts(65, 10)...))
		requireVectors(t, all)
		require.Equal(t, []int{5}, first.calls)
		require.Equal(t, []int{30, 30}, second.calls)
		require.Equal(t, "b", all[0].Deployment)
		require.Equal(t, "a", all[64].Deployment)
	})
}

func TestSettingsOfEmbeddings(t *testing.T) {
	base := map[string]string{"API": "embeddings", "MODEL": "m", "API_KEY": canary, "PRICES": "{m: {input: 0.02}}", "BUDGET": "{amount: 5, per: day}"}
	s, err := load(t, base)
	require.NoError(t, err)
	require.True(t, s.batches())
	require.Equal(t, []int{2048, 8192, 300_000}, []int{s.MaxInputs, s.MaxInputTokens, s.MaxCallTokens})
	require.Equal(t, "https://api.openai.com/v1/embeddings", s.endpoint())
	for name, want := range map[string]string{
		"SYSTEM":            "system is set, but the api is embeddings",
		"MAX_TOKENS":        "maxTokens is set, but the api is embeddings",
		"MAX_PROMPT_TOKENS": "maxPromptTokens is set, but the api is embeddings",
		"TEMPERATURE":       "temperature is set, but the api is embeddings",
		"MAX_INPUTS":        "maxInputs is 0",
		"INPUT":             "input is metadata, which a batch map does not have",
		"EXTRA_BODY":        `sets "input"`,
		"PROVIDER":          "api is \"embeddings\", which anthropic does not have",
		"DEPLOYMENTS":       "deployments.b: api is chat, and that of a is embeddings",
	} {
		value := map[string]string{
			"SYSTEM": "s", "TEMPERATURE": "1", "INPUT": "metadata", "EXTRA_BODY": `{"input":"x"}`, "PROVIDER": "anthropic", "MAX_INPUTS": "-1",
			"DEPLOYMENTS": "{a: {}, b: {api: chat}}",
		}[name]
		with := map[string]string{name: value}
		if value == "" {
			with[name] = "5"
		}
		maps.Copy(with, base)
		_, err := load(t, with)
		if name == "MAX_INPUTS" {
			want = `maxInputs is "-1"`
		}
		require.ErrorContains(t, err, want, name)
	}
	_, err = load(t, map[string]string{"MODEL": "m", "API_KEY": canary, "MAX_INPUTS": "5"})
	require.ErrorContains(t, err, "maxInputs is set, but the api is chat")

	azure := embedding(func(s *settings) { s.Provider, s.BaseURL, s.Model = profile.Azure, "https://n.openai.azure.com", "e3" })
	require.Equal(t, "https://n.openai.azure.com/openai/deployments/e3/embeddings?api-version=2024-10-21", azure.endpoint())
}

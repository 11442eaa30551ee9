package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
)

// Every promise of a row that is broken makes the table fail.
func TestProfileRowFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*profileRow)
		ok    bool
	}{
		{"all is well", func(*profileRow) {}, true},
		{"the limit not used", func(r *profileRow) { r.use = 0.979 }, false},
		{"a call refused", func(r *profileRow) { r.refused = 1 }, false},
		{"money", func(r *profileRow) { r.counted++ }, false},
		{"no money at all", func(r *profileRow) { r.counted, r.priced = 0, 0 }, false},
		{"a message without a result", func(r *profileRow) { r.failed.Add(1) }, false},
		{"an error result", func(r *profileRow) { r.errorResults.Add(1) }, false},
		{"an error", func(r *profileRow) { r.err = errors.New("did not start") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &demo{dir: t.TempDir(), out: t.Output()}
			row := func() *profileRow {
				r := newProfileRow(d, limits[2], 0)
				r.use, r.priced, r.counted = 0.98, 100, 100
				return r
			}
			spoiled := row()
			c.spoil(spoiled)
			require.Equal(t, c.ok, printRows(t.Output(), []*profileRow{row(), spoiled, row()}))
		})
	}
}

// The use of the tighter limit leaves out the time in which the pool begins and heals.
func TestTighterLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newProfileRow(&demo{}, fakellm.Config{Provider: fakellm.Anthropic, RequestsPerMinute: 120, OutputTokensPerMinute: 600}, 0)
		server, err := fakellm.New(r.provides)
		require.NoError(t, err)
		r.began = time.Now()
		r.killed = r.began.Add(20 * time.Second)
		for range 40 { // a call each second: half of the requests, and nine tenths of the output
			if s := time.Since(r.began); (s >= rowWarmUp && s < 20*time.Second) || s >= 20*time.Second+rowHeal {
				req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"messages":[{"content":"hi"}]}`))
				req.Header.Set(fakellm.UsageHeader, `{"input": 1, "output": 9}`)
				server.ServeHTTP(httptest.NewRecorder(), req)
			}
			time.Sleep(time.Second - r.provides.Latency)
		}
		limit, use := r.tightest(server.Charges(), time.Now())
		require.Equal(t, fakellm.OutputTokens, limit)
		require.InDelta(t, 0.9, use, 0.02)
	})
}

func TestSettingsOfAProvider(t *testing.T) {
	settings, err := settingsOf(fakellm.Config{InputTokensPerMinute: 3, OutputTokensPerMinute: 4, OutputWeight: 5, CachedInput: fakellm.Free, Prices: prices})
	require.NoError(t, err)
	require.Equal(t, []string{
		"LLM_MAP_INPUT_TOKENS_PER_MINUTE=3", "LLM_MAP_OUTPUT_TOKENS_PER_MINUTE=4", "LLM_MAP_OUTPUT_WEIGHT=5", "LLM_MAP_CACHED_INPUT=free",
		`LLM_MAP_PRICES={"demo":{"input":3,"output":15,"cachedInput":0.3,"cacheWrite":3.75}}`,
	}, settings)
	settings, err = settingsOf(fakellm.Config{RequestsPerMinute: 1, TokensPerMinute: 2})
	require.NoError(t, err)
	require.Equal(t, []string{"LLM_MAP_REQUESTS_PER_MINUTE=1", "LLM_MAP_TOKENS_PER_MINUTE=2"}, settings[:2])
}

func TestCostByMetrics(t *testing.T) {
	n, err := costIn(strings.NewReader("# TYPE llm_map_cost_total counter\nllm_map_cost_total{model=\"a\"} 0.1\nllm_map_cost_total{model=\"b\"} 0.2\nx 7\n"))
	require.NoError(t, err)
	require.InDelta(t, 300_000, n, 1e-6)
	for _, page := range []string{"", "x 7\n", "llm_map_cost_total{} y\n"} {
		_, err = costIn(strings.NewReader(page))
		require.Error(t, err)
	}
}

func TestProfileFlags(t *testing.T) {
	o, err := parse([]string{"-binary", "x", "-profiles", "openai,bedrock"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, map[fakellm.Provider]bool{fakellm.OpenAI: true, fakellm.Bedrock: true}, o.profiles)
	for _, args := range [][]string{{"-profiles", "x"}, {"-profile-processes", "1"}, {"-profile-time", "1s"}} {
		_, err := parse(append([]string{"-binary", "x"}, args...), t.Output())
		require.Error(t, err, args)
	}
	for _, c := range limits {
		_, err := fakellm.New(newProfileRow(&demo{}, c, 0).provides)
		require.NoError(t, err, "the limits in the table are those that the provider has")
	}
	require.Len(t, limits, len(fakellm.Providers))
}

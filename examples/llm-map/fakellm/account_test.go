package fakellm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// Four members of an account keep within the limits of each provider, use the tighter one, and count what the provider bills, whatever part
// of the input comes from a cache.
func TestAccountsUnderEachProfile(t *testing.T) {
	testkit.SkipShort(t, "it makes 60,000 calls")
	for i, c := range []fakellm.Config{
		{Provider: fakellm.OpenAI, RequestsPerMinute: 3000, TokensPerMinute: 400_000},
		{Provider: fakellm.Azure, RequestsPerMinute: 3000, TokensPerMinute: 600_000},
		{Provider: fakellm.Anthropic, RequestsPerMinute: 4000, InputTokensPerMinute: 300_000, OutputTokensPerMinute: 90_000},
		{Provider: fakellm.Gemini, RequestsPerMinute: 3000, InputTokensPerMinute: 300_000},
		{Provider: fakellm.Bedrock, TokensPerMinute: 700_000, OutputWeight: 5},
		{Provider: fakellm.BedrockMantle, InputTokensPerMinute: 350_000, OutputTokensPerMinute: 90_000},
		{Provider: fakellm.Groq, RequestsPerMinute: 3000, TokensPerMinute: 400_000},
		{Provider: fakellm.SelfHosted, RequestsPerMinute: 3000, TokensPerMinute: 400_000},
	} {
		c.Slice, c.Latency, c.Spread, c.AnswerLeast, c.AnswerMost = 10*time.Second, 250*time.Millisecond, 0.1, 20, 70
		shares := []float64{0, 0.5, 0.95}
		if testkit.Race { // make norace has all of them
			shares = shares[i%len(shares):][:1]
		}
		for _, c.CachedShare = range shares {
			t.Run(fmt.Sprintf("%s, %.0f %%", c.Provider, 100*c.CachedShare), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { requireAccount(t, c) })
			})
		}
	}
}

// requireAccount lets the members of an account call a server for a minute.
func requireAccount(t *testing.T, c fakellm.Config) {
	t.Helper()
	s, err := fakellm.New(c)
	require.NoError(t, err)
	var calling sync.WaitGroup
	var readers []*sdk.ManualReader
	from := time.Now().Add(20 * time.Second) // the pool is new for 15 s
	to := from.Add(time.Minute)
	for i := range 4 {
		reader := sdk.NewManualReader()
		readers = append(readers, reader)
		l, err := account.Open(t.Context(), account.Config{
			Provider: profile.Name(c.Provider), RequestsPerMinute: c.RequestsPerMinute, TokensPerMinute: c.TokensPerMinute,
			InputTokensPerMinute: c.InputTokensPerMinute, OutputTokensPerMinute: c.OutputTokensPerMinute, OutputWeight: c.OutputWeight,
			Pool: numathrottle.Config{
				Store: fmt.Sprintf("memory://%s-%.0f", c.Provider, 100*c.CachedShare), Pool: "p", ID: fmt.Sprint("m", i),
				MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)),
			},
		}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		client := &http.Client{Transport: l.Transport(direct{s})}
		for j := range 32 {
			calling.Go(func() {
				for n := j; time.Now().Before(to); n++ {
					assert.NoError(t, ask(t.Context(), client, strings.Repeat("word ", 20+n*7%150)))
				}
			})
		}
	}
	calling.Wait()

	st := s.Stats()
	require.Zero(t, st.Refused(), "%+v", st)
	use := 0.0
	for l, amount := range map[fakellm.Limit]int{
		fakellm.Requests: c.RequestsPerMinute, fakellm.Tokens: c.TokensPerMinute,
		fakellm.InputTokens: c.InputTokensPerMinute, fakellm.OutputTokens: c.OutputTokensPerMinute,
	} {
		if amount > 0 {
			use = max(use, float64(fakellm.SumOf(l, s.Charges(), from, to))/float64(amount))
		}
	}
	require.GreaterOrEqual(t, use, 0.98)
	require.Equal(t, st.Usage, countedBy(t, readers))
}

// countedBy returns what the members have counted, by the metric of issue 48.
func countedBy(t *testing.T, readers []*sdk.ManualReader) (u fakellm.Usage) {
	t.Helper()
	kinds := map[string]*int{"input": &u.Input, "cache_write": &u.CacheWrite, "cache_read": &u.CacheRead, "output": &u.Output}
	for _, reader := range readers {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				sum, ok := m.Data.(metricdata.Sum[int64])
				if m.Name != "llm.tokens" || !ok {
					continue
				}
				for _, p := range sum.DataPoints {
					kind, _ := p.Attributes.Value("kind")
					*kinds[kind.AsString()] += int(p.Value)
				}
			}
		}
	}
	return u
}

// direct sends requests to a server without a network.
type direct struct{ *fakellm.Server }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// ask makes a call.
func ask(ctx context.Context, client *http.Client, prompt string) error {
	body := fmt.Sprintf(`{"model":"m","max_tokens":200,"messages":[{"role":"user","content":%q}]}`, prompt)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://p.invalid/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

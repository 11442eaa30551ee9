package clienttest

import (
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/pkg/llm"
)

// used is the usage of every answer, in tokens.
const used = `{"input":50,"cache_write":20,"cache_read":100,"output":30}`

// A provider is the fake one, which refuses as many calls as it is told before it serves any.
type provider struct {
	fake     http.Handler
	compress bool
	refuse   int
	refusal  func(w http.ResponseWriter)

	mu     sync.Mutex
	bodies []string
}

func newProvider(t *testing.T) *provider {
	fake, err := fakellm.New(fakellm.Config{Provider: fakellm.SelfHosted, APIKey: "sesame"})
	require.NoError(t, err)
	return &provider{fake: fake}
}

// calls returns the bodies of all calls so far.
func (p *provider) calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.bodies...)
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	p.mu.Lock()
	p.bodies = append(p.bodies, string(body))
	refuse := len(p.bodies) <= p.refuse
	p.mu.Unlock()
	if refuse {
		p.refusal(w)
		return
	}
	r.Header.Set(fakellm.UsageHeader, used)
	if p.compress && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		z := gzip.NewWriter(w)
		defer z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		w = compressed{w, z}
	}
	p.fake.ServeHTTP(w, r)
}

// compressed is an answer whose body is compressed.
type compressed struct {
	http.ResponseWriter
	body io.Writer
}

// Write implements io.Writer.
func (c compressed) Write(b []byte) (int, error) { return c.body.Write(b) }

// RoundTrip implements http.RoundTripper without a network, for tests in virtual time.
func (p *provider) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	in := req.Clone(req.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	p.ServeHTTP(w, in)
	_ = in.Body.Close()
	res := w.Result()
	res.Request = req
	return res, nil
}

// An account has the limits of a call's provider, and its metrics.
type account struct {
	*llm.Limits
	metrics *sdk.ManualReader
}

// open opens limits that no test here reaches.
func open(t *testing.T, c llm.Config) account {
	t.Helper()
	const plenty = 100_000_000
	c.RequestsPerMinute = cmp.Or(c.RequestsPerMinute, plenty)
	switch c.Provider {
	case "anthropic":
		c.InputTokensPerMinute, c.OutputTokensPerMinute = plenty, plenty
	case "gemini":
		c.InputTokensPerMinute = plenty
	default:
		c.TokensPerMinute = plenty
	}
	reader := sdk.NewManualReader()
	c.Store, c.Pool, c.ID = "memory://"+strings.Map(letters, t.Name()), "acct", "one"
	c.Base = numathrottle.Config{MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)), Logger: slog.New(slog.DiscardHandler)}
	limits, err := llm.Open(t.Context(), c)
	require.NoError(t, err)
	return account{limits, reader}
}

// letters drops what is no letter of a store's name.
func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

// sums returns the counters of a name by the label that is asked for.
func (a account) sums(t *testing.T, name, label string) map[string]int {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, a.metrics.Collect(context.Background(), &all))
	found := map[string]int{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != name || !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				for _, kv := range p.Attributes.ToSlice() {
					if string(kv.Key) == label {
						found[kv.Value.AsString()] += int(p.Value)
					}
				}
			}
		}
	}
	return found
}

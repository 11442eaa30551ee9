package httpthrottle_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// What the transport adds to a call that is granted at once: beside a base that does
// nothing, and with a megabyte to find the usage in.
func BenchmarkTransport(b *testing.B) {
	limiter, err := throttle.New(throttle.Limit{Max: 1_000_000_000})
	require.NoError(b, err)
	b.Cleanup(func() { _ = limiter.Close() })
	const answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"hello"}}],"usage":{"total_tokens":29}}`
	meter := func(res *http.Response) httpthrottle.Meter { return usage.NewMeter(res, nil) }
	for name, body := range map[string]string{"small": answer, "megabyte": strings.Repeat(" ", 1<<20) + answer} {
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			reader := io.NopCloser(struct{ io.Reader }{strings.NewReader(body)})
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: reader, Request: req}, nil
		})
		for kind, tr := range map[string]http.RoundTripper{
			"base":      base,
			"throttled": httpthrottle.NewTransport(base, limiter),
			"metered":   httpthrottle.NewTransport(base, limiter, httpthrottle.WithMeter(meter)),
		} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://service.test/", strings.NewReader("hello"))
				require.NoError(b, err)
				buffer := make([]byte, 32<<10)
				b.ReportAllocs()
				for b.Loop() {
					res, err := tr.RoundTrip(req)
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, buffer)
					_ = res.Body.Close()
				}
			})
		}
	}
}

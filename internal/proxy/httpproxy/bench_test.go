package httpproxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What a request through the proxy costs beside one that goes straight to the service.
func BenchmarkRequest(b *testing.B) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer service.Close()
	th, err := throttle.New(throttle.Limit{Max: 1_000_000_000})
	require.NoError(b, err)
	ready := make(chan string, 1)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{
			Upstream: service.URL, Limiter: th, Serving: proxy.Serving{Listen: "127.0.0.1:0"}, Logger: slog.New(slog.DiscardHandler),
			Ready: func(addrs []string) { ready <- "http://" + addrs[0] },
		})
	}()
	proxied := <-ready
	for name, url := range map[string]string{"direct": service.URL, "proxied": proxied} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				res, err := http.Get(url)
				require.NoError(b, err)
				_, err = io.Copy(io.Discard, res.Body)
				require.NoError(b, err)
				require.NoError(b, res.Body.Close())
			}
		})
	}
	stop()
	require.NoError(b, <-ended)
}

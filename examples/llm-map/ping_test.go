package main

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A connection of HTTP/2 that dies without a word costs the calls that are under way, no more: they end when its ping is not
// answered, long before their timeout, and the next has a new one.
func TestADeadConnectionIsNoticed(t *testing.T) {
	var protocol atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol.Store(int32(r.ProtoMajor))
		_, _ = io.Copy(io.Discard, r.Body)
		says("hi", 1, 1)(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	proxy := testenv.Proxy(t, server.Listener.Addr().String())

	base, ok := newBase(200 * time.Millisecond).(*http.Transport)
	require.True(t, ok)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	base.TLSClientConfig.RootCAs = roots
	defer base.CloseIdleConnections()
	// The certificate is good for 127.0.0.1, where the proxy listens, too.
	s := testSettings(func(s *settings) { s.BaseURL, s.MaxAttempts = "https://"+proxy.Addr(), 4 })
	h, err := newHandler(s, []target{drawing(t, s, throttletest.New(), nil)}, base, discard())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.Equal(t, "hi", ask(ctx, t, h, "x").Text)
	require.EqualValues(t, 2, protocol.Load())

	proxy.Swallow(true, true)
	began := time.Now()
	lost := judge(ctx, func() error { _, err := h.deployments[0].client.complete(ctx, &account.Call{}, question{}); return err }())
	require.Equal(t, failed, lost.verdict, lost.err)
	require.Less(t, time.Since(began), s.Timeout/2, "not by the timeout of the call")
	proxy.Cut() // what was swallowed does not arrive late
	require.NoError(t, proxy.Heal())
	r := ask(ctx, t, h, "x")
	require.Equal(t, "hi", r.Text)
	require.Equal(t, 1, r.Attempts, "the dead connection is used no more")
}

// What is used in earnest has a time for both.
func TestPingsAreSet(t *testing.T) {
	base, ok := newBase(httpthrottle.PingTime(time.Minute)).(*http.Transport)
	require.True(t, ok)
	require.Equal(t, &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}, base.HTTP2)
	require.True(t, base.ForceAttemptHTTP2)
}

package handlerproxy_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/internal/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// BenchmarkMap compares a map of numaflow-go, alone and behind the proxy, with 500 messages in flight. Everything runs in
// one process, so that driver, proxy and handler share its processors.
func BenchmarkMap(b *testing.B) {
	alone := sdkserver.Start(b, echoMap)
	b.Run("alone", func(b *testing.B) { mapAll(b, alone.Socket) })
	th, err := throttle.New(throttle.Limit{Max: 1e9})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, th.Close()) })
	dir, err := os.MkdirTemp("", "hp") //nolint:usetesting // the test's name would make the path too long for a socket
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, os.RemoveAll(dir)) })
	c := handlerproxy.Config{
		Kind: handlerproxy.Map, Limiter: th, Socket: filepath.Join(dir, "p.sock"), ServerInfo: filepath.Join(dir, "p-info"),
		HandlerSocket: alone.Socket, HandlerServerInfo: filepath.Join(filepath.Dir(alone.Socket), "server-info"),
		Logger: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- handlerproxy.Run(ctx, c) }()
	b.Cleanup(func() { cancel(); require.NoError(b, <-ended) })
	require.Eventually(b, func() bool { _, err := os.Stat(c.ServerInfo); return err == nil }, 10*time.Second, time.Millisecond)
	b.Run("proxy", func(b *testing.B) { mapAll(b, c.Socket) })
}

func mapAll(b *testing.B, socket string) {
	b.Helper()
	m, err := dataplane.Dial(b.Context(), socket)
	require.NoError(b, err)
	todo := make(chan struct{}, b.N)
	for range b.N {
		todo <- struct{}{}
	}
	close(todo)
	msg := dataplane.Message{Keys: []string{"k"}, Value: make([]byte, 1024), Headers: map[string]string{"tokens": "7"}}
	var before, after syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	b.ResetTimer()
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			for range todo {
				if _, err := m.Do(b.Context(), msg); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric((processor(&after)-processor(&before))*1e6/float64(b.N), "cpu-us/message")
	require.NoError(b, m.Close())
}

// processor is the time of the processor that was used, in seconds.
func processor(r *syscall.Rusage) float64 {
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

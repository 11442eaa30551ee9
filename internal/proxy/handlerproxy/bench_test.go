package handlerproxy_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// BenchmarkMap compares a map of numaflow-go, alone and behind the proxy, with 500 messages in flight. Everything runs in
// one process, so that driver, proxy and handler share its processors.
func BenchmarkMap(b *testing.B) {
	alone := dataplane.Serve(b, echoMap)
	msg := message("")
	msg.Value = make([]byte, 1024)
	b.Run("alone", func(b *testing.B) { flood(b, alone.Socket, msg) })
	th, err := throttle.New(throttle.Limit{Max: 1e9})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, th.Close()) })
	c := configured(b, handlerproxy.Map, th)
	c.HandlerSocket, c.HandlerServerInfo = alone.Socket, filepath.Join(filepath.Dir(alone.Socket), "server-info")
	socket := start(b, c).waitSocket(b)
	b.Run("proxy", func(b *testing.B) { flood(b, socket, msg) })
}

func flood(b *testing.B, socket string, msg dataplane.Message) {
	b.Helper()
	m, err := dataplane.Dial(b.Context(), socket)
	require.NoError(b, err)
	var before, after syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	b.ResetTimer()
	require.NoError(b, m.Flood(b.Context(), msg, b.N))
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

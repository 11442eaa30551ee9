package languages

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// BenchmarkPython compares a map of pynumaflow, alone and behind the proxy, with 500 messages of 1 kB in flight. Driver,
// proxy and handler are processes on one machine.
func BenchmarkPython(b *testing.B) {
	p := newPod(b, python(b).command, "map", "--max=1000000000")
	msg := message("")
	msg.Value = make([]byte, 1024)
	b.Run("alone", func(b *testing.B) { flood(b, p.path("h.sock"), msg) })
	b.Run("proxy", func(b *testing.B) { flood(b, p.socket(), msg) })
}

func flood(b *testing.B, socket string, msg dataplane.Message) {
	b.Helper()
	m, err := dataplane.Dial(b.Context(), socket)
	require.NoError(b, err)
	b.ResetTimer()
	require.NoError(b, m.Flood(b.Context(), msg, b.N))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	require.NoError(b, m.Close())
}

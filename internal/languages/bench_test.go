package languages

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// BenchmarkPython compares a map of pynumaflow, alone and behind the proxy, with 500 messages of 1 kB in flight. Driver,
// proxy and handler are processes on one machine.
func BenchmarkPython(b *testing.B) {
	p := newPod(b, python(b).command, "map", "--max=1000000000")
	b.Run("alone", func(b *testing.B) { mapAll(b, p.path("h.sock")) })
	b.Run("proxy", func(b *testing.B) { mapAll(b, p.socket()) })
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
	msg := message("")
	msg.Value = make([]byte, 1024)
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
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	require.NoError(b, m.Close())
}

package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// BenchmarkSyncWithTagSlots makes the syncs of a hundred processors, of which each reports slots of so many tags, of so many in all. It measures the round
// trip with parsing, and what it costs the server. Run it with -benchtime 1000x.
func BenchmarkSyncWithTagSlots(b *testing.B) {
	server := testenv.Redis(b)
	s := New(client(b, ClientOptions(server.Addr())))
	const rows = 100
	for _, of := range []struct{ tags, all int }{{0, 1}, {8, 8}, {8, 1024}, {64, 1024}, {256, 256}, {256, 1024}} {
		b.Run(fmt.Sprintf("rows=%d/tags=%d/all=%d", rows, of.tags, of.all), func(b *testing.B) {
			pool, tags := fmt.Sprint("pool of ", of, b.N), of.tags
			next := fill(b, s, pool, rows)
			n := 0
			sync := func() time.Duration {
				req := next()
				for k := range tags {
					each := of.all / tags
					req.TagSlots = append(req.TagSlots, driver.TagSlots{Key: uint64(k*each+n%each) << 54, InUse: 1, Wanted: 1, Demand: 3, Total: 100})
				}
				n = (n + 1) % rows
				sent := time.Now()
				granted(b, s, req)
				return time.Since(sent)
			}
			for range rows {
				sync()
			}
			before, err := server.CPUTime(b.Context())
			require.NoError(b, err)
			var took []time.Duration
			b.ResetTimer()
			for range b.N {
				took = append(took, sync())
			}
			b.StopTimer()
			after, err := server.CPUTime(b.Context())
			require.NoError(b, err)
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-us")
			b.ReportMetric(float64((after-before).Microseconds())/float64(b.N), "server-us/op")
			key, _ := s.keys(pool)
			size := 0
			for name, value := range s.client.HGetAll(b.Context(), key).Val() {
				size += len(name) + len(value)
			}
			b.ReportMetric(float64(size), "record-bytes")
		})
	}
}

package redisstore

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var cpuStat = regexp.MustCompile(`used_cpu_(?:user|sys):([0-9.]+)`)

// What draws cost in a sync, with a hundred processors in the pool: cpu-us is the processor time of the server, which does
// not depend on what else the machine does. A request draws from 256 tills at the most, so that a thousand take four.
func BenchmarkDraws(b *testing.B) {
	server := testenv.Redis(b)
	c := client(b, ClientOptions(server.Addr()))
	for _, bench := range []struct{ draws, budgets int }{{0, 0}, {8, 0}, {64, 0}, {256, 0}, {8, 1}, {64, 1}, {256, 1}, {1000, 0}} {
		b.Run(fmt.Sprintf("draws=%d/budgets=%d", bench.draws, bench.budgets), func(b *testing.B) {
			require.NoError(b, c.FlushAll(b.Context()).Err())
			s := New(c)
			for i := range 99 {
				granted(b, s, request("p", fmt.Sprint("other ", i), 1, 1))
			}
			now := time.Now().UnixMicro()
			var requests [][]driver.Draw
			for key := 0; key < bench.draws || key == 0; key += driver.MaxDraws {
				var draws []driver.Draw
				for i := range min(driver.MaxDraws, bench.draws-key) {
					d := driver.Draw{Key: uint64(key+i) << 40, Total: 1000, Per: time.Second, Burst: 100, Ask: 10}
					for range bench.budgets {
						d.Budgets = append(d.Budgets, driver.BudgetDraw{Amount: driver.MaxAmount, Start: now - 1_000_000, End: now + 86_400_000_000})
					}
					draws = append(draws, d)
				}
				requests = append(requests, draws)
			}
			seq := uint64(0)
			all := func() {
				for _, draws := range requests {
					seq++
					req := request("p", "a", seq, 1)
					req.Draws = draws
					granted(b, s, req)
				}
			}
			all()
			before, n := cpuTime(b, server), 0
			for b.Loop() {
				all()
				n++
			}
			b.ReportMetric(1e6*(cpuTime(b, server)-before)/float64(n), "cpu-us")
		})
	}
}

// cpuTime is what the server has used, in seconds.
func cpuTime(tb testing.TB, server *servers.Redis) (seconds float64) {
	tb.Helper()
	found := cpuStat.FindAllStringSubmatch(client(tb, ClientOptions(server.Addr())).Info(tb.Context(), "cpu").Val(), -1)
	require.Len(tb, found, 2)
	for _, m := range found {
		n, err := strconv.ParseFloat(m[1], 64)
		require.NoError(tb, err)
		seconds += n
	}
	return seconds
}

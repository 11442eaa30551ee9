package redisstore_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// bare is the least that a script can do which keeps calls a spacing apart.
var bare = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local next = tonumber(redis.call('GET', KEYS[1]) or 0)
if next < now then next = now end
redis.call('SET', KEYS[1], string.format('%.0f', next + ARGV[1]), 'PX', 10000)
return next - now`)

// What a strict permit costs from call to call, on a server of the loopback, by the
// number of processors: against the store's reservation alone, and against a bare script.
// The limit is so high that a slot is always due.
func BenchmarkStrict(b *testing.B) {
	server := testenv.Redis(b)
	limit := throttle.Limit{Max: 1_000_000, Strict: true}
	for _, clients := range []int{1, 10} {
		each := func(b *testing.B, call func(client int) error) {
			b.Helper()
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range clients {
				wg.Go(func() {
					for range b.N / clients {
						if err := call(i); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "permits/s")
		}
		var links []*redis.Client
		for range clients {
			links = append(links, redis.NewClient(&redis.Options{Addr: server.Addr()}))
		}
		b.Cleanup(func() {
			for _, c := range links {
				_ = c.Close()
			}
		})
		name := map[int]string{1: "1 client", 10: "10 clients"}[clients]
		b.Run("script/"+name, func(b *testing.B) {
			each(b, func(i int) error { return bare.Run(b.Context(), links[i], []string{"bare"}, 1).Err() })
		})

		var stores []*redisstore.Store
		var ths []*throttle.Throttle
		for i, c := range links {
			stores = append(stores, redisstore.New(c))
			m, err := consensus.Join(b.Context(), stores[i], name, consensus.WithID(string(rune('a'+i))), consensus.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(b, err)
			th, err := throttle.New(limit, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(b, err)
			b.Cleanup(func() { _ = th.Close() })
			ths = append(ths, th)
		}
		for _, th := range ths { // a new pool is frozen at first
			p, err := th.Acquire(b.Context(), 1)
			require.NoError(b, err)
			p.Settle(1)
		}
		b.Run("reserve/"+name, func(b *testing.B) {
			req := driver.Reserve{Pool: name, Count: 1, Spacing: time.Microsecond, Lease: driver.DefaultLease}
			each(b, func(i int) error {
				_, err := stores[i].Reserve(b.Context(), req)
				return err
			})
		})
		b.Run("acquire/"+name, func(b *testing.B) {
			each(b, func(i int) error {
				_, err := ths[i].Acquire(b.Context(), 1)
				return err
			})
		})
	}
}

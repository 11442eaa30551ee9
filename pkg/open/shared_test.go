package open

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A numbered datum of a sink; nobody looks at the rest.
type numbered struct {
	sinksdk.Datum

	n int
}

func (d numbered) ID() string { return fmt.Sprint(d.n) }

// TestVerticesShareAPool has a map in one pipeline and a sink in another call the same
// service: the pool's name alone makes the limit one.
func TestVerticesShareAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, warmUp, watched = 100, 10 * time.Second, 20 * time.Second
		open := func(pipeline, vertex string) *throttle.Throttle {
			t.Setenv("NUMAFLOW_NAMESPACE", "ns")
			t.Setenv("NUMAFLOW_PIPELINE_NAME", pipeline)
			t.Setenv("NUMAFLOW_VERTEX_NAME", vertex)
			t.Setenv("NUMAFLOW_POD", pipeline+"-"+vertex+"-0-abcde")
			return mustOpen(t, Config{
				Limit: throttle.Limit{Max: limit, Burst: 1}, Store: "memory://" + t.Name(), Pool: "service", Logger: quiet(),
			})
		}
		forMap, forSink := open("enrich", "call"), open("deliver", "post")
		ctx, cancel := context.WithCancel(t.Context())
		var mapped, posted atomic.Int64

		m := mapper.Wrap(mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages {
			mapped.Add(1)
			return mapsdk.MessagesBuilder()
		}), forMap)
		for range 4 {
			go func() {
				for {
					m.Map(ctx, nil, nil)
				}
			}()
		}
		s := sinker.Wrap(sinksdk.SinkerFunc(func(_ context.Context, in <-chan sinksdk.Datum) (out sinksdk.Responses) {
			for d := range in {
				posted.Add(1)
				out = append(out, sinksdk.ResponseOK(d.ID()))
			}
			return out
		}), forSink)
		go func() {
			for ctx.Err() == nil {
				in := make(chan sinksdk.Datum)
				go func() {
					defer close(in)
					for n := range 50 {
						in <- numbered{n: n}
					}
				}()
				s.Sink(ctx, in)
			}
		}()

		time.Sleep(warmUp)
		mapped.Store(0)
		posted.Store(0)
		time.Sleep(watched)
		all := int64(limit * watched / time.Second)
		require.InDelta(t, all, mapped.Load()+posted.Load(), float64(all)/100, "one limit")
		require.InDelta(t, all/2, mapped.Load(), float64(all)/20, "a fair share for each")

		cancel()
		synctest.Wait()
		require.NoError(t, forMap.Close())
		require.NoError(t, forSink.Close())
	})
}

package mapper_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// fast returns a limit of 10,000 per second: ten messages are admitted before the handler takes them.
func fast(t *testing.T) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(throttle.Limit{Max: 10_000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	time.Sleep(time.Second) // its bucket is full
	return th
}

// warm wraps a handler whose pace is known: a first batch of one message was taken at once.
func warm(t *testing.T, next batchmapsdk.BatchMapper, th *throttle.Throttle, opts ...mapper.Option) batchmapsdk.BatchMapper {
	t.Helper()
	first := true
	m := mapper.WrapBatch(batchmapsdk.BatchMapperFunc(func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		if first {
			first = false
			return taker(-1, nil, nil).BatchMap(ctx, in)
		}
		return next.BatchMap(ctx, in)
	}), th, opts...)
	require.Len(t, (<-callBatch(t.Context(), t, m, "first")).answers, 1)
	return m
}

// inUse is what was granted since then and not given back.
func inUse(th *throttle.Throttle) int64 {
	synctest.Wait()
	st := th.Status()
	return st.Granted - st.Returned - 1
}

// idsOf returns so many IDs, as callBatch takes them.
func idsOf(n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	return strings.Join(ids, " ")
}

// taker takes n messages, or all if n is negative, after it has let the wrapper go as far as it can; then it ends.
func taker(n int, look, end func()) batchmapsdk.BatchMapper {
	return batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		synctest.Wait()
		if look != nil {
			look()
		}
		out := batchmapsdk.BatchResponsesBuilder()
		for i := 0; i != n; i++ {
			d, ok := <-in
			if !ok {
				break
			}
			out = respond(out, d.Id())
		}
		if end != nil {
			end()
		}
		return out
	})
}

func TestBatchAFewMessagesAreAheadOfABusyHandler(t *testing.T) {
	for name, c := range map[string]struct {
		opts []mapper.Option
		want []int64 // in the first batch, and in one after it has taken two milliseconds for each message
	}{
		"a token each":     {nil, []int64{10 + 1, 5 + 1}},
		"a cost of theirs": {[]mapper.Option{mapper.WithCost(func([]string, mapsdk.Datum) int { return 1 })}, []int64{1, 1}},
		"tags":             {[]mapper.Option{mapper.WithTag(func([]string, mapsdk.Datum) string { return "" })}, []int64{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, batches := fast(t), 0
				m := warm(t, taker(-1, func() {
					time.Sleep(time.Second)
					require.Equal(t, c.want[batches], inUse(th)-int64(500*batches))
				}, nil), th, c.opts...)
				for batches = range c.want {
					o := <-callBatch(t.Context(), t, m, idsOf(500))
					require.Nil(t, o.panicked)
					require.Len(t, o.answers, 500)
				}
				require.EqualValues(t, 1000, inUse(th))
			})
		})
	}
}

// However a handler ends, the tokens of what was ahead of it are given back, and a batch that it has not read to
// its end fails the stream.
func TestBatchWhatWasAheadIsTakenBack(t *testing.T) {
	for name, end := range map[string]func(){
		"returns": nil, "panics": func() { panic("end") }, "exits": runtime.Goexit,
	} {
		for _, taken := range []int{0, 1, 3, 10, 11} {
			for _, size := range []int{0, 1, 3, 5, 10, 11, 12, 13, 30} {
				if size < taken {
					continue
				}
				t.Run(fmt.Sprint(name, " after ", taken, " of ", size), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						th := fast(t)
						o := <-callBatch(t.Context(), t, warm(t, taker(taken, nil, end), th), idsOf(size))
						require.EqualValues(t, taken, inUse(th))
						switch {
						case name == "panics":
							require.Equal(t, "end", o.panicked)
						case name == "returns" && taken < size:
							require.ErrorContains(t, panickedWith(t, o.panicked), "returned before it had read the whole batch")
						case name == "returns":
							require.Nil(t, o.panicked)
							require.Len(t, o.answers, size)
						}
					})
				})
			}
		}
	}
}

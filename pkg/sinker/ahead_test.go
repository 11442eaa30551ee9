package sinker_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
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
func warm(t *testing.T, next sinksdk.Sinker, th *throttle.Throttle, opts ...sinker.Option) sinksdk.Sinker {
	t.Helper()
	first := true
	s := sinker.Wrap(sinksdk.SinkerFunc(func(ctx context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
		if first {
			first = false
			return (&handler{}).Sink(ctx, in)
		}
		return next.Sink(ctx, in)
	}), th, opts...)
	require.Equal(t, ok("first"), s.Sink(t.Context(), batchOf("first")))
	return s
}

// inUse is what was granted since then and not given back.
func inUse(th *throttle.Throttle) int64 {
	synctest.Wait()
	st := th.Status()
	return st.Granted - st.Returned - 1
}

func TestAFewMessagesAreAheadOfABusyHandler(t *testing.T) {
	one := func(sinksdk.Datum) int { return 1 }
	for name, c := range map[string]struct {
		opts []sinker.Option
		want []int64 // in the first batch, and in one after it has taken two milliseconds for each message
	}{
		"a token each":     {nil, []int64{10 + 1, 5 + 1}},
		"a cost of theirs": {[]sinker.Option{sinker.WithCost(one)}, []int64{1, 1}},
		"tags":             {[]sinker.Option{sinker.WithTag(func(sinksdk.Datum) string { return "" })}, []int64{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, batches := fast(t), 0
				next := sinksdk.SinkerFunc(func(_ context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
					time.Sleep(time.Second)
					require.Equal(t, c.want[batches], inUse(th)-int64(500*batches))
					return (&handler{}).Sink(t.Context(), in)
				})
				s := warm(t, next, th, c.opts...)
				ids := numbered(500)
				for batches = range c.want {
					require.Equal(t, ok(ids...), s.Sink(t.Context(), batchOf(ids...)))
				}
				require.EqualValues(t, 1000, inUse(th))
			})
		})
	}
}

// However a handler ends, what was ahead of it is answered as not handled, and its tokens are given back.
func TestWhatWasAheadIsTakenBack(t *testing.T) {
	for name, end := range map[string]func(){
		"returns": nil, "panics": func() { panic("end") }, "exits": runtime.Goexit,
	} {
		for _, taken := range []int{0, 1, 3, 10, 11, 25} {
			for _, size := range []int{0, 1, 3, 10, 12, 30, 100} {
				if size < taken {
					continue
				}
				t.Run(fmt.Sprint(name, " after ", taken, " of ", size), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						th, ids, settled := fast(t), numbered(size), []string(nil)
						s := warm(t, quitter(taken, end), th, sinker.WithSettle(func(d sinksdk.Datum, _ sinksdk.Response) int {
							settled = append(settled, d.ID())
							return 1
						}))
						settled = nil
						o := <-call(t.Context(), s, batchOf(ids...))
						require.EqualValues(t, taken, inUse(th))
						require.Equal(t, end == nil, o.returned)
						if end != nil {
							return
						}
						require.Len(t, o.responses, size)
						const why = "not handled: the handler returned before it took this message"
						require.ElementsMatch(t, append(ok(ids[:taken]...), failures(why, ids[taken:]...)...), o.responses)
						require.Equal(t, ids[:taken], append([]string{}, settled...))
					})
				})
			}
		}
	}
}

func TestWhatWasAheadWhenTheContextEndsIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := fast(t)
		ctx, cancel := context.WithCancel(t.Context())
		next := sinksdk.SinkerFunc(func(_ context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
			d := <-in
			synctest.Wait()
			cancel()
			return ok(d.ID())
		})
		o := <-call(ctx, warm(t, next, th), batchOf(numbered(30)...))
		require.Len(t, o.responses, 30)
		require.EqualValues(t, 1, inUse(th))
	})
}

package mapper_test

import (
	"context"
	"errors"
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
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestBatchAHandlerThatReturnsEarlyFailsTheStreamAndNothingIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
		for name, l := range map[string]*throttletest.Limiter{
			"the next has its token":  throttletest.New(),
			"the next waits for it":   throttletest.New(throttletest.Grant(), throttletest.Block()),
			"the limiter was closed":  nil,
			"the next costs nothing":  throttletest.New(),
			"the next may be dropped": throttletest.New(throttletest.Grant(), throttletest.Block()),
		} {
			var opts []mapper.Option
			switch name {
			case "the limiter was closed":
				l = throttletest.New(throttletest.Grant(), throttletest.Block())
			case "the next costs nothing":
				opts = append(opts, mapper.WithCost(func(keys []string, _ mapsdk.Datum) int { return 'b' - int(keys[0][0]) }))
			case "the next may be dropped":
				opts = append(opts, mapper.WithMaxWait(time.Hour), mapper.OnDenied(mapper.Drop()))
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := callBatch(ctx, t, mapper.WrapBatch(batchmapsdk.BatchMapperFunc(
				func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
					out := respond(nil, (<-in).Id())
					if name == "the limiter was closed" {
						l.Close()
					}
					time.Sleep(time.Second)
					return out
				}), l, opts...), "a b c d")
			if name == "the limiter was closed" {
				time.Sleep(time.Hour)
				require.Empty(t, done, "it waits for the end of the stream")
				cancel()
				require.Equal(t, batchOutcome{}, <-done)
				continue
			}
			o := <-done
			cancel()
			err := panickedWith(t, o.panicked)
			require.ErrorContains(t, err, "returned before it had read the whole batch", name)
			require.LessOrEqual(t, l.Used(), 1, name)
			require.Zero(t, l.Waiting(), name)
		}
	})
}

// A handler may know how many there are, and not look for the end.
func TestBatchAHandlerNeedNotReadTheEnd(t *testing.T) {
	m := mapper.WrapBatch(batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		return respond(respond(nil, (<-in).Id()), (<-in).Id())
	}), throttletest.New())
	require.Equal(t, batchOutcome{returned: true, answers: []string{"a=", "b="}}, <-callBatch(t.Context(), t, m, "a b"))
}

func TestBatchAPanicOfTheHandlerGoesOnUnchangedAndNothingIsStuck(t *testing.T) {
	for name, end := range map[string]struct {
		with func()
		want batchOutcome
	}{
		"panic":  {func() { panic("mine") }, batchOutcome{panicked: "mine"}},
		"Goexit": {runtime.Goexit, batchOutcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
				l := throttletest.New()
				var handlerCtx context.Context
				o := <-callBatch(t.Context(), t, mapper.WrapBatch(batchmapsdk.BatchMapperFunc(
					func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
						handlerCtx = ctx //nolint:fatcontext // kept for the test
						<-in
						<-in
						synctest.Wait() // the third is ready
						end.with()
						return nil
					}), l), "a b c d e")
				require.Equal(t, end.want, o)
				require.Error(t, handlerCtx.Err())
				synctest.Wait()
				require.Len(t, l.Draws(), 3, "nothing is drawn for what comes after the end")
				require.Equal(t, 2, l.Used(), "what it took stays drawn, the rest is given back")
			})
		})
	}
}

func TestBatchACancelledWaitEndsTheGoroutineWithoutAnAnswer(t *testing.T) {
	for name, cause := range map[string]error{"plain": nil, "with a cause": errors.New("sibling failed")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, h := throttletest.New(throttletest.Grant(), throttletest.Block()), &batchHandler{}
				ctx, cancel := context.WithCancelCause(t.Context())
				done := callBatch(ctx, t, mapper.WrapBatch(h, l, mapper.WithMaxWait(time.Hour), mapper.OnDenied(mapper.Drop())), "a b c")
				synctest.Wait()
				require.Equal(t, []string{"a"}, h.seen)
				require.Empty(t, done)
				cancel(cause)
				require.Equal(t, batchOutcome{}, <-done)
				require.Equal(t, []string{"a"}, h.seen)
				require.Equal(t, 1, l.Used())
			})
		})
	}
}

func TestBatchTokensOfAMessageThatWasNotTakenAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttletest.New()
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		done := callBatch(ctx, t, mapper.WrapBatch(batchmapsdk.BatchMapperFunc(
			func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
				for range in {
					seen++
					<-ctx.Done()
				}
				return nil
			}), l), "a b c")
		synctest.Wait()
		require.Equal(t, 2, l.Used(), "the second is ready")
		cancel()
		require.Equal(t, batchOutcome{}, <-done)
		require.Equal(t, 1, seen)
		require.Equal(t, 1, l.Used())
	})
}

func TestBatchAClosedLimiterLeavesTheBatchToItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, seen, over := throttletest.New(throttletest.Grant(), throttletest.Block()), 0, 0
		m := mapper.WrapBatch(batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
			for range in {
				seen++
			}
			over++ // a handler that collects its batch makes its call now, for an answer that nobody gets
			return nil
		}), l)
		ctx, cancel := context.WithCancel(t.Context())
		before := callBatch(ctx, t, m, "a b")
		synctest.Wait()
		l.Close()
		after := callBatch(ctx, t, mapper.WrapBatch(&batchHandler{}, l), "a b")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, before)
		require.Empty(t, after)
		require.Zero(t, over, "the batch is not over for the handler before its context is")
		cancel()
		require.Equal(t, batchOutcome{}, <-before)
		require.Equal(t, batchOutcome{}, <-after)
		require.Equal(t, 1, seen)

		o := <-callBatch(context.Background(), t, m, "a")
		require.ErrorIs(t, panickedWith(t, o.panicked), throttle.ErrClosed, "a context that cannot end")
	})
}

func TestBatchARefusalPanicsWithTheLimitersErrorAndEndsTheHandlersContext(t *testing.T) {
	for name, refusal := range map[string]error{
		"limit": throttled(), // without a MaxWait nobody chose what to do
		"other": errors.New("other"),
	} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New(throttletest.Grant(), throttletest.Deny(refusal))
			var cause error
			o := <-callBatch(t.Context(), t, mapper.WrapBatch(batchmapsdk.BatchMapperFunc(
				func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
					out := respond(nil, (<-in).Id())
					_, open := <-in
					require.False(t, open)
					cause = context.Cause(ctx)
					return out
				}), l), "a b c")
			require.Equal(t, batchOutcome{panicked: refusal}, o)
			require.Equal(t, refusal, cause, "known when the channel is closed")
		})
	}
}

// What panics in the user's functions fails the stream as a panic of the handler
// does, and not the process.
func TestBatchAPanicOfAFunctionOfTheUserGoesOnUnchanged(t *testing.T) {
	deny := mapper.OnDenied(mapper.DenyFunc(func(context.Context, []string, mapsdk.Datum, *throttle.Error) mapsdk.Messages { panic("mine") }))
	for name, opts := range map[string][]mapper.Option{
		"cost": {mapper.WithCost(func([]string, mapsdk.Datum) int { panic("mine") })},
		"tag":  {mapper.WithTag(func([]string, mapsdk.Datum) string { panic("mine") })},
		"deny": {mapper.WithMaxWait(time.Second), deny},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &batchHandler{}
				m := mapper.WrapBatch(h, throttletest.New(throttletest.Deny(nil)), opts...)
				require.Equal(t, batchOutcome{panicked: "mine"}, <-callBatch(t.Context(), t, m, "a b"))
				require.Empty(t, h.seen)
			})
		})
	}
	o := <-callBatch(t.Context(), t, mapper.WrapBatch(&batchHandler{}, throttletest.New(),
		mapper.WithCost(func([]string, mapsdk.Datum) int { runtime.Goexit(); return 1 })), "a b")
	require.ErrorContains(t, panickedWith(t, o.panicked), "ended its goroutine")
}

func TestBatchCallsDoNotDisturbEachOther(t *testing.T) {
	m := mapper.WrapBatch(batchmapsdk.BatchMapperFunc(func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		return (&batchHandler{}).BatchMap(ctx, in)
	}), throttletest.New(), mapper.ExemptDropped(), mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Drop()))
	var calls []<-chan batchOutcome
	for i := range 20 {
		calls = append(calls, callBatch(t.Context(), t, m, strings.Repeat(fmt.Sprintf("x%d ", i), 50)))
	}
	for i, c := range calls {
		o := <-c
		require.True(t, o.returned)
		require.Len(t, o.answers, 50)
		require.Equal(t, fmt.Sprintf("x%d=X%d", i, i), o.answers[49])
	}
}

// numaflow-go closes the channel when the context ends, too: then it need not be the end of the batch, and what the
// handler makes of the messages that came is no answer.
func TestBatchAChannelClosedByTheEndOfTheContextEndsNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, exited := make(chan batchmapsdk.Datum), make(chan struct{})
		returned := false
		go func() {
			defer close(exited)
			mapper.WrapBatch(&batchHandler{}, throttletest.New()).BatchMap(ctx, in)
			returned = true
		}()
		in <- batchmapsdk.NewHandlerDatum([]byte("a"), time.Time{}, time.Time{}, nil, "a", nil)
		synctest.Wait()
		cancel()
		close(in)
		<-exited
		require.False(t, returned)
	})
}

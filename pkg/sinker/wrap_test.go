package sinker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestAMessageDrawsItsTokenBeforeTheHandlerSeesItUnchanged(t *testing.T) {
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "v")
	l := throttletest.New()
	var got []sinksdk.Datum
	want := sinksdk.ResponsesBuilder().Append(sinksdk.ResponseServe("a", []byte("x"))).Append(sinksdk.ResponseFailure("b", "y"))
	s := sinker.Wrap(sinksdk.SinkerFunc(func(ctx context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
		require.Equal(t, "v", ctx.Value(ctxKey{}))
		for d := range data {
			got = append(got, d)
			require.GreaterOrEqual(t, l.Used(), len(got))
		}
		return want
	}), l, nil)
	require.Equal(t, want, s.Sink(ctx, batchOf("a", "b")))
	require.Equal(t, []sinksdk.Datum{datum{"a"}, datum{"b"}}, got)
	one := throttletest.Draw{Method: throttletest.Acquire, Cost: 1, Granted: 1, Used: 1}
	require.Equal(t, []throttletest.Draw{one, one}, l.Draws())
}

func TestAnEmptyBatchIsTheHandlersToo(t *testing.T) {
	h := &handler{}
	require.Empty(t, sinker.Wrap(h, throttletest.New()).Sink(t.Context(), batchOf()))
}

func TestMessagesStreamAsTheyAreAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		h := &handler{}
		done := call(t.Context(), sinker.Wrap(h, throttletest.New(throttletest.GrantOn(tokens))), batchOf("a", "b", "c"))
		for _, want := range [][]string{nil, {"a"}, {"a", "b"}} {
			synctest.Wait()
			require.Equal(t, want, h.Taken())
			require.Empty(t, done)
			tokens <- struct{}{}
		}
		require.Equal(t, ok("a", "b", "c"), (<-done).responses)
	})
}

func TestOneMessageAtMostHoldsTokensForABusyHandler(t *testing.T) {
	for name, c := range map[string]struct {
		opts []sinker.Option
		used int // what the handler has, and what is ready for it
	}{
		"without tags": {nil, 2},
		"in order":     {[]sinker.Option{sinker.WithTag(byKey), sinker.InOrder()}, 2},
		"two tags":     {[]sinker.Option{sinker.WithTag(byKey)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens, gate := make(chan struct{}), make(chan struct{})
				l := throttletest.New(throttletest.GrantOn(tokens))
				h := &handler{each: func(string) { <-gate }}
				done := call(t.Context(), sinker.Wrap(h, l, c.opts...), batchOf("x:1", "y:1", "x:2", "y:2", "x:3", "y:3"))
				synctest.Wait()
				close(tokens)
				synctest.Wait()
				require.Len(t, h.Taken(), 1)
				require.Equal(t, c.used, l.Used())
				close(gate)
				require.Len(t, (<-done).responses, 6)
			})
		})
	}
}

func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		option sinker.Option
		drawn  []int
	}{
		"default":     {nil, []int{1, 1}},
		"nil":         {sinker.WithCost(nil), []int{1, 1}},
		"seven":       {sinker.WithCost(func(sinksdk.Datum) int { return 7 }), []int{7, 7}},
		"zero":        {sinker.WithCost(func(sinksdk.Datum) int { return 0 }), nil},
		"negative":    {sinker.WithCost(func(sinksdk.Datum) int { return -1 }), nil},
		"bytes":       {sinker.WithCost(sinker.CostBytes(2)), []int{1, 2}},
		"bytes, none": {sinker.WithCost(sinker.CostBytes(0)), []int{1, 4}},
		"header":      {sinker.WithCost(sinker.CostFromHeader("id")), []int{5, 1<<31 - 1}},
		"no header":   {sinker.WithCost(sinker.CostFromHeader("none")), []int{1, 1}},
	} {
		for mode, more := range map[string][]sinker.Option{"": nil, ", tags": {sinker.WithTag(byKey)}} {
			t.Run(name+mode, func(t *testing.T) {
				l, h := throttletest.New(), &handler{}
				got := sinker.Wrap(h, l, append(more, c.option)...).Sink(t.Context(), batchOf("5", "four"))
				require.Equal(t, ok("5", "four"), got)
				var drawn []int
				for _, d := range l.Draws() {
					drawn = append(drawn, d.Cost)
				}
				require.Equal(t, c.drawn, drawn)
			})
		}
	}
}

func TestTagsReachALimiterThatTellsThemApart(t *testing.T) {
	for name, opts := range map[string][]sinker.Option{"": nil, "in order": {sinker.InOrder()}} {
		for tags, option := range map[string]sinker.Option{
			"key": sinker.WithTag(sinker.TagFromKey(0)),
			"own": sinker.WithTag(byKey),
		} {
			t.Run(name+tags, func(t *testing.T) {
				l := &perTag{throttletest.New(), map[string]*throttletest.Limiter{"x": throttletest.New(), "y": throttletest.New()}}
				s := sinker.Wrap(&handler{}, l, append(opts, option)...)
				require.Len(t, s.Sink(t.Context(), batchOf("x:1", "y:1", "none", "x:2")), 4)
				require.Len(t, l.tags["x"].Draws(), 2)
				require.Len(t, l.tags["y"].Draws(), 1)
				require.Len(t, l.Draws(), 1)
			})
		}
	}
	l := &perTag{throttletest.New(), map[string]*throttletest.Limiter{"a": throttletest.New()}}
	sinker.Wrap(&handler{}, l, sinker.WithTag(sinker.TagFromHeader("id"))).Sink(t.Context(), batchOf("a", "b"))
	require.Len(t, l.tags["a"].Draws(), 1)
	require.Len(t, l.Draws(), 1)
}

func TestATagThatWaitsHoldsUpNoOtherAndKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		l := &perTag{throttletest.New(), map[string]*throttletest.Limiter{"x": throttletest.New(throttletest.GrantOn(tokens))}}
		h := &handler{}
		done := call(t.Context(), sinker.Wrap(h, l, sinker.WithTag(byKey)), batchOf("x:1", "y:1", "x:2", "y:2", "z:1", "x:3"))
		synctest.Wait()
		require.Equal(t, []string{"y:1", "y:2", "z:1"}, h.Taken())
		require.Equal(t, 1, l.tags["x"].Waiting(), "one of a tag waits, the others stand in line")
		for range 3 {
			tokens <- struct{}{}
			synctest.Wait()
		}
		require.Equal(t, []string{"y:1", "y:2", "z:1", "x:1", "x:2", "x:3"}, h.Taken())
		require.Len(t, (<-done).responses, 6)
	})
}

func TestInOrderKeepsTheOrderAmongTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		l := &perTag{throttletest.New(), map[string]*throttletest.Limiter{"x": throttletest.New(throttletest.GrantOn(tokens))}}
		h := &handler{}
		done := call(t.Context(), sinker.Wrap(h, l, sinker.WithTag(byKey), sinker.InOrder()), batchOf("y:1", "x:1", "y:2", "x:2"))
		synctest.Wait()
		require.Equal(t, []string{"y:1"}, h.Taken())
		tokens <- struct{}{}
		synctest.Wait()
		require.Equal(t, []string{"y:1", "x:1", "y:2"}, h.Taken())
		tokens <- struct{}{}
		require.Equal(t, ok("y:1", "x:1", "y:2", "x:2"), (<-done).responses)
	})
}

// The rate is kept over a batch, and over the next.
func TestTheRateOfAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 10, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		s := sinker.Wrap(&handler{}, l)
		began := time.Now()
		for range 3 {
			require.Equal(t, ok(numbered(10)...), s.Sink(t.Context(), batchOf(numbered(10)...)))
		}
		require.InDelta(t, 2.9, time.Since(began).Seconds(), 0.11)
	})
}

func TestSeveralBatchesAtOnce(t *testing.T) {
	l := throttletest.New()
	s := sinker.Wrap(&handler{}, l, sinker.WithTag(byKey))
	const batches = 20
	var all []<-chan outcome
	for range batches {
		all = append(all, call(t.Context(), s, batchOf("x:1", "y:1", "x:2", "y:2")))
	}
	for _, done := range all {
		require.ElementsMatch(t, ok("x:1", "y:1", "x:2", "y:2"), (<-done).responses)
	}
	require.Equal(t, 4*batches, l.Used())
}

func TestAClosedLimiterWaitsForTheContext(t *testing.T) {
	for name, opts := range map[string][]sinker.Option{
		"":     nil,
		"tags": {sinker.WithTag(byKey)},
		"drop": {sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Drop())},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, logged := logs()
				l := throttletest.New(throttletest.Grant(), throttletest.Block())
				l.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				h := &handler{}
				done := call(ctx, sinker.Wrap(h, l, append(opts, sinker.WithLogger(log))...), batchOf("a", "b", "c"))
				time.Sleep(time.Hour)
				require.Empty(t, done, "no answer")
				cancel(errors.New("the end"))
				o := <-done
				require.Empty(t, h.Taken())
				require.ElementsMatch(t, failures("not handled: the end", "a", "b", "c"), o.responses)
				require.Contains(t, logged(), "limiter closed")
			})
		})
	}
}

func TestALimiterThatFailsOtherwise(t *testing.T) {
	log, logged := logs()
	tooLarge := &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 5000}
	l := throttletest.New(throttletest.Grant(), throttletest.Deny(tooLarge), throttletest.Grant())
	s := sinker.Wrap(&handler{}, l, sinker.WithLogger(log))
	require.Equal(t,
		append(ok("a", "c"), failures("not handled: numathrottle: a cost of 5000 can never be granted", "b")...),
		s.Sink(t.Context(), batchOf("a", "b", "c")))
	require.Contains(t, logged(), "a cost of 5000 can never be granted")
}

// A cost that can never be granted is a denial, and the rest of the batch goes on.
func TestACostThatCanNeverBeGrantedIsDeniedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		action sinker.Action
		want   sinksdk.Response
	}{
		"fallback": {sinker.Fallback(), sinksdk.ResponseFallback("b")},
		"drop":     {sinker.Drop(), sinksdk.ResponseOK("b")},
		"fail":     {sinker.Fail(), sinksdk.ResponseFailure("b", "throttled (too_large)")},
	} {
		for _, bound := range []sinker.Option{sinker.WithMaxWait(time.Second), sinker.WithBatchBudget(time.Second)} {
			log, logged := logs()
			l := throttletest.New(throttletest.Grant(), throttletest.Deny(&throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1e12}), throttletest.Grant())
			s := sinker.Wrap(&handler{}, l, bound, sinker.OnDenied(c.action), sinker.WithLogger(log))
			require.Equal(t, append(ok("a", "c"), c.want), s.Sink(t.Context(), batchOf("a", "b", "c")), name)
			require.Contains(t, logged(), "can never be granted")
		}
	}
	log, _ := logs()
	l := throttletest.New(throttletest.Deny(&throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1e12}))
	r := sinker.Wrap(&handler{}, l, sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Nack()), sinker.WithLogger(log)).Sink(t.Context(), batchOf("a"))
	require.True(t, r[0].Nack)
	require.GreaterOrEqual(t, *r[0].NackOptions.Delay, uint64(60_000))
}

func failures(why string, ids ...string) sinksdk.Responses {
	responses := sinksdk.ResponsesBuilder()
	for _, id := range ids {
		responses = responses.Append(sinksdk.ResponseFailure(id, why))
	}
	return responses
}

// What waits in lanes is not refused: otherwise it would count twice as demand, and show as refusals.
func TestLanesRefuseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 100, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		each := func(d sinksdk.Datum) string { return d.ID() } // a lane for each
		s := sinker.Wrap(&handler{}, l, sinker.WithTag(each))
		for range 3 {
			o := <-call(t.Context(), s, batchOf(numbered(50)...))
			require.Len(t, o.responses, 50)
		}
		require.EqualValues(t, 150, l.Status().Granted)
		require.Zero(t, l.Status().Refused)
	})
}

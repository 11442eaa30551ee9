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

func failures(why string, ids ...string) sinksdk.Responses {
	responses := sinksdk.ResponsesBuilder()
	for _, id := range ids {
		responses = responses.Append(sinksdk.ResponseFailure(id, why))
	}
	return responses
}

// What waits in queues is not refused: otherwise it would count twice as demand, and show as refusals.
func TestQueuesRefuseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 100, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		each := func(d sinksdk.Datum) string { return d.ID() } // a queue for each
		s := sinker.Wrap(&handler{}, l, sinker.WithTag(each))
		for range 3 {
			o := <-call(t.Context(), s, batchOf(numbered(50)...))
			require.Len(t, o.responses, 50)
		}
		require.EqualValues(t, 150, l.Status().Granted)
		require.Zero(t, l.Status().Refused)
	})
}

func TestMaxWaitCountsFromTheTurnOfEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A token every second, waited for one after the other: nobody waits longer.
		l, err := throttle.New(throttle.Limit{Max: 1, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		began := time.Now()
		s := sinker.Wrap(&handler{}, l, sinker.WithMaxWait(1100*time.Millisecond), sinker.OnDenied(sinker.Fail()))
		require.Equal(t, ok(numbered(10)...), s.Sink(t.Context(), batchOf(numbered(10)...)))
		require.InDelta(t, 10, time.Since(began).Seconds(), 1.1)
	})
}

func TestAShorterMaxWaitCountsWithinABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sinker.Wrap(&handler{}, throttletest.New(throttletest.Block()),
			sinker.WithMaxWait(time.Second), sinker.WithBatchBudget(2500*time.Millisecond), sinker.OnDenied(sinker.Fail()))
		began := time.Now()
		require.Equal(t, failures("throttled (limit)", "a", "b"), s.Sink(t.Context(), batchOf("a", "b")))
		require.Equal(t, 2*time.Second, time.Since(began))
		began = time.Now()
		require.Len(t, s.Sink(t.Context(), batchOf(numbered(10)...)), 10)
		require.InDelta(t, 2.5, time.Since(began).Seconds(), 0.001)
	})
}

// A tag's budget may send refused messages to the fallback sink, whatever OnDenied is. Other tags go on.
func TestBudgetSendsToTheFallbackSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 1000}, throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"a": {Budgets: []throttle.Budget{{Amount: 1, Per: "day", Then: "fallback"}}}},
		}))
		require.NoError(t, err)
		defer th.Close()
		time.Sleep(time.Second)
		_, ok := th.ForTag("a").TryAcquire(1)
		require.True(t, ok)
		s := sinker.Wrap(&handler{}, th, sinker.WithTag(func(d sinksdk.Datum) string { return map[string]string{"1": "a", "2": "b"}[d.ID()] }))
		in := make(chan sinksdk.Datum, 2)
		in <- datum{"1"}
		in <- datum{"2"}
		close(in)
		got := map[string]bool{}
		for _, r := range s.Sink(context.Background(), in) {
			got[r.ID] = r.Fallback
		}
		require.Equal(t, map[string]bool{"1": true, "2": false}, got)
	})
}

// What the wrapper answers in the handler's place is logged, once for each batch.
func TestWhatIsLogged(t *testing.T) {
	for want, c := range map[string]struct {
		next   sinksdk.Sinker
		refuse error
		opts   []sinker.Option
	}{
		"throttled messages dropped: acknowledged, and never seen by the handler\" messages=1": {
			&handler{}, nil, []sinker.Option{sinker.OnDenied(sinker.Drop())},
		},
		"action=Fail": {&handler{}, nil, []sinker.Option{sinker.OnDenied(sinker.Fail())}},
		"error=other": {&handler{}, errors.New("other"), []sinker.Option{sinker.OnDenied(sinker.Drop())}},
		"end of the batch: the rest is answered with a failure\" messages=2 taken=1": {quitter(1, nil), nil, []sinker.Option{sinker.OnDenied(sinker.Fail())}},
	} {
		log, logged := logs()
		l := throttletest.New(throttletest.Grant(), throttletest.Deny(c.refuse), throttletest.Grant())
		if _, quits := c.next.(sinksdk.SinkerFunc); quits {
			l = throttletest.New()
		}
		s := sinker.Wrap(c.next, l, append(c.opts, sinker.WithMaxWait(time.Second), sinker.WithLogger(log))...)
		require.Len(t, s.Sink(t.Context(), batchOf("a", "b", "c")), 3)
		require.Contains(t, logged(), want)
	}
}

package sinker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// answering takes everything and answers as it is told.
func answering(responses ...sinksdk.Response) sinksdk.Sinker {
	return sinksdk.SinkerFunc(func(_ context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
		for d := range data {
			_ = d
		}
		return responses
	})
}

func TestResponsesThatDoNotMatchTheBatch(t *testing.T) {
	const missing = "the handler took this message and gave no response"
	message := sinksdk.NewMessage([]byte("m"))
	success, failure := sinksdk.ResponseOK("a"), sinksdk.ResponseFailure("a", "no")
	nack, fallback := sinksdk.ResponseNack("a", nil), sinksdk.ResponseFallback("a")
	serve, onSuccess := sinksdk.ResponseServe("a", []byte("s")), sinksdk.ResponseOnSuccess("a", message)
	for name, c := range map[string]struct {
		given, want sinksdk.Responses
		logged      string // empty: nothing
	}{
		"in another order":     {ok("b", "a"), ok("a", "b"), ""},
		"one missing":          {ok("b"), append(failures(missing, "a"), ok("b")...), "missing=1 duplicate=0 unknown=0"},
		"all missing":          {nil, failures(missing, "a", "b"), "missing=2 duplicate=0 unknown=0"},
		"unknown":              {ok("a", "b", "c"), ok("a", "b"), "missing=0 duplicate=0 unknown=1"},
		"unknown for missing":  {ok("a", "c"), append(ok("a"), failures(missing, "b")...), "missing=1 duplicate=0 unknown=1"},
		"twice the same":       {ok("a", "a", "b"), ok("a", "b"), "missing=0 duplicate=1 unknown=0"},
		"twice, one missing":   {ok("a", "a"), append(ok("a"), failures(missing, "b")...), "missing=1 duplicate=1 unknown=0"},
		"success, failure":     {append(ok("b"), success, failure), append(sinksdk.Responses{failure}, ok("b")...), "duplicate=1"},
		"failure, success":     {append(ok("b"), failure, success), append(sinksdk.Responses{failure}, ok("b")...), "duplicate=1"},
		"failure, nack":        {append(ok("b"), failure, nack), append(sinksdk.Responses{failure}, ok("b")...), "duplicate=1"},
		"fallback, nack":       {append(ok("b"), fallback, nack), append(sinksdk.Responses{nack}, ok("b")...), "duplicate=1"},
		"fallback, on success": {append(ok("b"), fallback, onSuccess), append(sinksdk.Responses{fallback}, ok("b")...), "duplicate=1"},
		"serve, on success":    {append(ok("b"), serve, onSuccess), append(sinksdk.Responses{onSuccess}, ok("b")...), "duplicate=1"},
		"success, serve":       {append(ok("b"), success, serve), append(sinksdk.Responses{serve}, ok("b")...), "duplicate=1"},
		"three times":          {append(ok("b"), success, nack, serve), append(sinksdk.Responses{nack}, ok("b")...), "duplicate=2"},
	} {
		t.Run(name, func(t *testing.T) {
			log, logged := logs()
			got := sinker.Wrap(answering(c.given...), throttletest.New(), sinker.WithLogger(log)).Sink(t.Context(), batchOf("a", "b"))
			require.Equal(t, c.want, got)
			if c.logged == "" {
				require.Empty(t, logged())
			} else {
				require.Contains(t, logged(), c.logged)
			}
		})
	}
}

// What the handler says of a message that it never took does not count.
func TestAnAnswerToADeniedMessageIsLeftOut(t *testing.T) {
	l := throttletest.New(throttletest.Grant(), throttletest.Deny(nil))
	s := sinker.Wrap(answering(ok("a", "b")...), l, sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Fallback()))
	require.Equal(t, append(ok("a"), sinksdk.ResponseFallback("b")), s.Sink(t.Context(), batchOf("a", "b")))
}

func TestTheHandlersResponsesAreNotWrittenTo(t *testing.T) {
	given := append(make(sinksdk.Responses, 0, 8), sinksdk.ResponseOK("a"))
	l := throttletest.New(throttletest.Grant(), throttletest.Deny(nil))
	s := sinker.Wrap(answering(given...), l, sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Fallback()))
	require.Len(t, s.Sink(t.Context(), batchOf("a", "b")), 2)
	require.Equal(t, sinksdk.Response{}, given[:2][1])
}

// quitter takes n messages, answers them, and returns or panics.
func quitter(n int, end func()) sinksdk.Sinker {
	return sinksdk.SinkerFunc(func(_ context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
		responses := sinksdk.ResponsesBuilder()
		for range n {
			d := <-data
			responses = responses.Append(sinksdk.ResponseOK(d.ID()))
		}
		if end != nil {
			end()
		}
		return responses
	})
}

func TestSettle(t *testing.T) {
	settle := sinker.WithSettle(func(d sinksdk.Datum, r sinksdk.Response) int {
		if !r.Success {
			return -1
		}
		return len(d.Value())
	})
	for name, c := range map[string]struct {
		next sinksdk.Sinker
		used []int // by a, bb, ccc and d in this order; a cost of two each
	}{
		"all answered":  {&handler{}, []int{1, 2, 3, 1}},
		"another order": {answering(ok("d", "ccc", "bb", "a")...), []int{1, 2, 3, 1}},
		"one fails":     {answering(append(ok("a", "d", "ccc"), failures("no", "bb")...)...), []int{1, 0, 3, 1}},
		"one missing":   {answering(ok("a", "bb", "d")...), []int{1, 2, 2, 1}},
		"duplicate":     {answering(append(ok("a", "bb", "bb", "ccc", "d"), failures("no", "bb")...)...), []int{1, 0, 3, 1}},
		"early":         {quitter(2, nil), []int{1, 2, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New()
			s := sinker.Wrap(c.next, l, settle, sinker.WithCost(func(sinksdk.Datum) int { return 2 }))
			require.Len(t, s.Sink(t.Context(), batchOf("a", "bb", "ccc", "d")), 4)
			used := make([]int, 4)
			for i, d := range l.Draws() {
				used[i] = d.Used
			}
			require.Equal(t, c.used, used)
		})
	}
	panics := sinker.WithSettle(func(sinksdk.Datum, sinksdk.Response) int { panic("mine") })
	o := <-call(t.Context(), sinker.Wrap(&handler{}, throttletest.New(), panics), batchOf("a"))
	require.Equal(t, outcome{panicked: "mine"}, o)
}

func TestWithoutSettleWhatWasTakenCountsAsDrawn(t *testing.T) {
	l := throttletest.New()
	sinker.Wrap(answering(failures("no", "a", "b")...), l).Sink(t.Context(), batchOf("a", "b"))
	for _, d := range l.Draws() {
		require.Equal(t, throttletest.Draw{Method: throttletest.Acquire, Cost: 1, Granted: 1, Used: 1}, d)
	}
}

// trial is a random batch, limiter and handler: whatever happens each message has
// exactly one response, none says that a message was handled that the handler did not
// take, and what was drawn for others was given back.
func trial(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var ids []string
	for i := range r.IntN(30) {
		ids = append(ids, fmt.Sprintf("%c:%d", 'a'+rune(r.IntN(3)), i))
	}
	var script []throttletest.Step
	for range 60 {
		script = append(script, []throttletest.Step{throttletest.Grant(), throttletest.Grant(), throttletest.Deny(nil), throttletest.Block()}[r.IntN(4)])
	}
	l := throttletest.New(script...)
	opts := []sinker.Option{sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Fallback())}
	for _, more := range []sinker.Option{
		sinker.WithTag(byKey), sinker.InOrder(), sinker.WithBatchBudget(4 * time.Second),
		sinker.WithSettle(func(sinksdk.Datum, sinksdk.Response) int { return 1 }),
	} {
		if r.IntN(2) == 0 {
			opts = append(opts, more)
		}
	}
	leaves, taken := r.IntN(60), map[string]bool{}
	given := map[string]sinksdk.Response{} // what it said first, unless it contradicts itself
	next := sinksdk.SinkerFunc(func(_ context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
		var out sinksdk.Responses
		for d := range data {
			taken[d.ID()] = true
			switch r.IntN(8) {
			case 0:
			case 1:
				given[d.ID()] = sinksdk.ResponseOK(d.ID())
				out = append(out, sinksdk.ResponseOK(d.ID()), sinksdk.ResponseOK(d.ID()))
			case 2:
				given[d.ID()] = sinksdk.ResponseNack(d.ID(), nil)
				out = append(out, sinksdk.ResponseNack(d.ID(), nil), sinksdk.ResponseOK("unknown"))
			default:
				time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
				given[d.ID()] = sinksdk.ResponseOK(d.ID())
				out = append(out, sinksdk.ResponseOK(d.ID()))
			}
			if leaves--; leaves < 0 {
				break
			}
		}
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return append(out, ok(ids...)[:r.IntN(len(ids)+1)/2]...) // claims what it may not have taken
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(60))*time.Second)
	defer cancel()
	got := sinker.Wrap(next, l, opts...).Sink(ctx, batchOf(ids...))

	answered := map[string]sinksdk.Response{}
	for _, response := range got {
		require.NotContains(t, answered, response.ID, "seed %d", seed)
		answered[response.ID] = response
	}
	require.Len(t, answered, len(ids), "seed %d", seed)
	used := 0
	for _, id := range ids {
		require.Contains(t, answered, id, "seed %d", seed)
		if taken[id] {
			used++
			if want, found := given[id]; found {
				require.Equal(t, want, answered[id], "seed %d", seed)
			}
		} else {
			require.False(t, answered[id].Success, "seed %d: success for %s, which was not taken", seed, id)
		}
	}
	require.Equal(t, used, l.Used(), "seed %d", seed)
	require.Zero(t, l.Waiting(), "seed %d", seed)
}

func TestExactlyOneResponseWhateverHappens(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) { trial(t, seed) })
	}
}

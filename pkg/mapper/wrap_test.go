package mapper_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func datum(value string) mapsdk.Datum {
	return mapsdk.NewHandlerDatum([]byte(value), time.Time{}, time.Time{}, nil, nil, nil)
}

func forward(value string) mapsdk.Message { return mapsdk.NewMessage([]byte(value)) }

// handler is comparable, unlike a MapperFunc, and counts its calls.
type handler struct {
	calls int
	out   mapsdk.Messages
	do    func()
}

func (h *handler) Map(context.Context, []string, mapsdk.Datum) mapsdk.Messages {
	h.calls++
	if h.do != nil {
		h.do()
	}
	return h.out
}

// An outcome is how a call of Map ended.
type outcome struct {
	returned bool
	out      mapsdk.Messages
	panicked any // nil with returned false: the goroutine exited
}

// call runs m in a goroutine of its own, which it may end.
func call(ctx context.Context, m mapsdk.Mapper) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.out = m.Map(ctx, []string{"key"}, datum("value"))
		o.returned = true
	}()
	return done
}

type unlimited struct{ throttle.Limiter }

func (unlimited) Unlimited() bool { return true }

func TestWithoutALimitTheHandlerItselfIsReturned(t *testing.T) {
	none, err := throttle.New(throttle.Limit{})
	require.NoError(t, err)
	h := &handler{}
	for name, l := range map[string]throttle.Limiter{"nil": nil, "says so": unlimited{}, "no max": none} {
		require.Same(t, h, mapper.Wrap(h, l, mapper.ExemptDropped()), name)
	}
	require.NotSame(t, h, mapper.Wrap(h, throttletest.New()))
}

func TestAMessageDrawsOneTokenAndReachesTheHandlerUnchanged(t *testing.T) {
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "v")
	want := mapsdk.MessagesBuilder().Append(forward("out").WithKeys([]string{"k"}).WithTags([]string{"t"}))
	d := datum("in")
	l := throttletest.New()
	m := mapper.Wrap(mapsdk.MapperFunc(func(got context.Context, keys []string, gotDatum mapsdk.Datum) mapsdk.Messages {
		require.Equal(t, "v", got.Value(ctxKey{}))
		require.Equal(t, []string{"a", "b"}, keys)
		require.Same(t, d, gotDatum)
		require.Equal(t, 1, l.Used(), "drawn before the handler runs")
		return want
	}), l, nil)
	require.Equal(t, want, m.Map(ctx, []string{"a", "b"}, d))
	require.Equal(t, []throttletest.Draw{{Method: throttletest.Acquire, Cost: 1, Granted: 1, Used: 1}}, l.Draws())
}

func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		option mapper.Option
		drawn  []int
	}{
		"default":  {nil, []int{1}},
		"nil":      {mapper.WithCost(nil), []int{1}},
		"seven":    {mapper.WithCost(func([]string, mapsdk.Datum) int { return 7 }), []int{7}},
		"zero":     {mapper.WithCost(func([]string, mapsdk.Datum) int { return 0 }), nil},
		"negative": {mapper.WithCost(func([]string, mapsdk.Datum) int { return -1 }), nil},
		"by content": {
			mapper.WithCost(func(keys []string, d mapsdk.Datum) int { return len(keys) + len(d.Value()) }),
			[]int{1 + len("value")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, h := throttletest.New(), &handler{}
			o := <-call(t.Context(), mapper.Wrap(h, l, c.option))
			require.True(t, o.returned)
			require.Equal(t, 1, h.calls)
			var drawn []int
			for _, d := range l.Draws() {
				drawn = append(drawn, d.Cost)
			}
			require.Equal(t, c.drawn, drawn)
		})
	}
}

func TestNoCostNeverWaits(t *testing.T) {
	l := throttletest.New(throttletest.Block())
	m := mapper.Wrap(&handler{}, l, mapper.WithCost(func([]string, mapsdk.Datum) int { return 0 }))
	require.True(t, (<-call(t.Context(), m)).returned)
}

func TestExemptDropped(t *testing.T) {
	drop, nack := mapsdk.MessageToDrop(), mapsdk.MessageToNack(nil)
	for name, c := range map[string]struct {
		out    []mapsdk.Message
		exempt bool
	}{
		"a drop":                {[]mapsdk.Message{drop}, true},
		"two drops":             {[]mapsdk.Message{drop, drop}, true},
		"a drop and a forward":  {[]mapsdk.Message{drop, forward("x")}, false},
		"a forward and a drop":  {[]mapsdk.Message{forward("x"), drop}, false},
		"a forward":             {[]mapsdk.Message{forward("x")}, false},
		"nothing":               {nil, false},
		"a nack":                {[]mapsdk.Message{nack}, false},
		"a drop and a nack":     {[]mapsdk.Message{drop, nack}, false},
		"drop among other tags": {[]mapsdk.Message{forward("x").WithTags([]string{"t", mapsdk.DROP})}, true},
		"drop wins over nack":   {[]mapsdk.Message{forward("x").WithTags([]string{mapsdk.NACK, mapsdk.DROP})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New()
			o := <-call(t.Context(), mapper.Wrap(&handler{out: c.out}, l, mapper.ExemptDropped()))
			require.True(t, o.returned)
			require.Equal(t, mapsdk.Messages(c.out), o.out)
			require.Equal(t, c.exempt, l.Used() == 0)

			l = throttletest.New()
			<-call(t.Context(), mapper.Wrap(&handler{out: c.out}, l))
			require.Equal(t, 1, l.Used(), "without the option")
		})
	}
}

func TestTheWaitHasNoTimeLimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens))
		done := call(t.Context(), mapper.Wrap(&handler{}, l))
		time.Sleep(30 * 24 * time.Hour) // virtual
		require.Equal(t, 1, l.Waiting())
		tokens <- struct{}{}
		require.True(t, (<-done).returned)
	})
}

func TestACancelledWaitEndsTheGoroutineWithoutAnAnswer(t *testing.T) {
	for name, cause := range map[string]error{"plain": nil, "with a cause": errors.New("sibling failed")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, h := throttletest.New(throttletest.Block()), &handler{}
				ctx, cancel := context.WithCancelCause(t.Context())
				done := call(ctx, mapper.Wrap(h, l))
				synctest.Wait()
				require.Empty(t, done)
				cancel(cause)
				require.Equal(t, outcome{}, <-done)
				require.Zero(t, h.calls)
			})
		})
	}
}

func TestTokensThatComeAfterTheContextEndedAreGivenBack(t *testing.T) {
	l, h := throttletest.New(), &handler{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, outcome{}, <-call(ctx, mapper.Wrap(h, l)))
	require.Zero(t, h.calls)
	require.Zero(t, l.Used())
	require.True(t, l.Draws()[0].Settled)
}

func TestADeadlineOfAnotherWrapperFailsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, h := throttletest.New(throttletest.Block()), &handler{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := <-call(ctx, mapper.Wrap(h, l))
		err, ok := o.panicked.(error)
		require.True(t, ok, "panicked with %v", o.panicked)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, h.calls)
	})
}

func TestARefusalPanicsWithTheLimitersError(t *testing.T) {
	for name, refusal := range map[string]error{
		"deadline too near": &throttle.Error{Reason: throttle.ReasonLimit, Cost: 1, RetryAfter: time.Second},
		"of another kind":   errors.New("other"),
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler{}
			o := <-call(t.Context(), mapper.Wrap(h, throttletest.New(throttletest.Deny(refusal))))
			require.False(t, o.returned)
			require.Equal(t, refusal, o.panicked)
			require.Zero(t, h.calls)
		})
	}
}

func TestAClosedLimiterLeavesMessagesToTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, h := throttletest.New(throttletest.Block()), &handler{}
		m := mapper.Wrap(h, l)
		ctx, cancel := context.WithCancel(t.Context())
		before := call(ctx, m)
		synctest.Wait()
		l.Close()
		after := call(ctx, m)
		time.Sleep(time.Hour) // virtual
		require.Empty(t, before)
		require.Empty(t, after)
		cancel()
		require.Equal(t, outcome{}, <-before)
		require.Equal(t, outcome{}, <-after)
		require.Zero(t, h.calls)

		o := <-call(context.Background(), m)
		err, ok := o.panicked.(error)
		require.True(t, ok, "a context that cannot end: %v", o.panicked)
		require.ErrorIs(t, err, throttle.ErrClosed)
	})
}

func TestAPanicOfTheHandlerGoesOnUnchangedAndTheTokensStayDrawn(t *testing.T) {
	l := throttletest.New()
	h := &handler{do: func() { panic("mine") }}
	o := <-call(t.Context(), mapper.Wrap(h, l, mapper.ExemptDropped()))
	require.Equal(t, outcome{panicked: "mine"}, o)
	require.Equal(t, []throttletest.Draw{{Method: throttletest.Acquire, Cost: 1, Granted: 1, Used: 1}}, l.Draws())
}

func TestAPanicOfTheCostFunctionDrawsNothing(t *testing.T) {
	l, h := throttletest.New(), &handler{}
	o := <-call(t.Context(), mapper.Wrap(h, l, mapper.WithCost(func([]string, mapsdk.Datum) int { panic("cost") })))
	require.Equal(t, outcome{panicked: "cost"}, o)
	require.Zero(t, h.calls)
	require.Empty(t, l.Draws())
}

func TestTheLogSaysWhyAndNothingOfTheMessage(t *testing.T) {
	var buf bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&buf, nil))
	refusal := &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1000}
	<-call(t.Context(), mapper.Wrap(&handler{}, throttletest.New(throttletest.Deny(refusal)), mapper.WithLogger(logger)))
	require.Contains(t, buf.String(), "a cost of 1000 can never be granted")
	require.NotContains(t, buf.String(), "value")
	require.NotContains(t, buf.String(), `"key"`)

	buf.Reset()
	l := throttletest.New()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	m := mapper.Wrap(&handler{}, l, mapper.WithLogger(logger))
	first, second := call(ctx, m), call(ctx, m)
	cancel()
	<-first
	<-second
	require.Equal(t, 1, bytes.Count(buf.Bytes(), []byte("limiter closed")), "said once, not for each message")
}

package mapper_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// What a message was, its outputs and where they went are its own, though the next message uses its memory again.
func TestStreamMessagesOneAfterTheOtherAreKeptApart(t *testing.T) {
	answers := []string{"a", "DROP", "b DROP", "", "DROP DROP", "c d e f"} //nolint:dupword // two drops
	next := 0
	h := &streamHandler{do: func(_ context.Context, write func(string)) {
		for o := range strings.FieldsSeq(answers[next%len(answers)]) {
			write(o)
		}
		next++
	}}
	l := throttletest.New()
	m := mapper.WrapStream(h, l, mapper.ExemptDropped())
	for i := range 20 * len(answers) {
		want := strings.ReplaceAll(answers[i%len(answers)], "DROP", mapsdk.DROP)
		require.Equal(t, ended(want), <-callStream(t.Context(), m))
	}
	require.Equal(t, 20*4, l.Used(), "all but those of which only drops came")
}

func TestStreamPerOutputEachOutputDraws(t *testing.T) {
	l := &tagger{Limiter: throttletest.New()}
	m := mapper.WrapStream(writing("a DROP b"), l, mapper.PerOutput(), mapper.WithCost(mapper.CostBytes(1)), mapper.WithTag(mapper.TagFromKey(0)))
	require.Equal(t, ended("a "+mapsdk.DROP+" b"), <-callStream(t.Context(), m))
	require.Equal(t, 3*len("value"), l.Used())
	require.Equal(t, []string{"key", "key", "key"}, l.asked)

	exempt := throttletest.New()
	<-callStream(t.Context(), mapper.WrapStream(writing("a DROP b DROP"), exempt, mapper.PerOutput(), mapper.ExemptDropped()))
	require.Len(t, exempt.Draws(), 2, "a drop draws nothing")
	require.Equal(t, 2, exempt.Used())

	none := throttletest.New(throttletest.Block())
	require.Equal(t, ended(""), <-callStream(t.Context(), mapper.WrapStream(writing(""), none, mapper.PerOutput())))
	require.Empty(t, none.Draws(), "no output, no draw")
	free := mapper.WithCost(func([]string, mapsdk.Datum) int { return 0 })
	asked := throttletest.New()
	require.Equal(t, ended("a b"), <-callStream(t.Context(), mapper.WrapStream(writing("a b"), asked, mapper.PerOutput(), free)))
	require.Len(t, asked.Draws(), 2, "what holds others holds these, too")
	require.Zero(t, asked.Used())
}

// A nack of the handler's own keeps its options.
func TestStreamAnOutputPassesUnchanged(t *testing.T) {
	delay := uint64(7)
	nack := mapstreamsdk.MessageToNack(&mapstreamsdk.NackOptions{Delay: &delay})
	h := mapstreamsdk.MapStreamerFunc(func(_ context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
		to <- nack
		close(to)
	})
	for _, opts := range [][]mapper.StreamOption{nil, {mapper.PerOutput()}} {
		to := make(chan mapstreamsdk.Message, 1)
		mapper.WrapStream(h, throttletest.New(), opts...).MapStream(t.Context(), nil,
			mapstreamsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil), to)
		require.Equal(t, nack, <-to)
	}
}

func TestStreamPerOutputTheHandlerIsHeldBackUntilThereAreTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens))
		written := 0
		h := &streamHandler{do: func(_ context.Context, write func(string)) {
			for ; written < 5; written++ {
				write(strconv.Itoa(written))
			}
		}}
		done := callStream(t.Context(), mapper.WrapStream(h, l, mapper.PerOutput()))
		for passed := range 5 {
			time.Sleep(30 * 24 * time.Hour) // virtual
			synctest.Wait()
			require.Equal(t, min(passed+1, 5), written, "one output waits for its token, the next for that")
			require.Equal(t, passed, l.Used())
			tokens <- struct{}{}
		}
		require.Equal(t, ended("0 1 2 3 4"), <-done)
	})
}

func TestStreamPerOutputATokenForAnOutputThatIsNotSentIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttletest.New()
		ctx, cancel := context.WithCancel(t.Context())
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			mapper.WrapStream(writing("a b"), l, mapper.PerOutput()).MapStream(ctx, nil,
				mapstreamsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil), make(chan mapstreamsdk.Message)) // nobody reads
		}()
		synctest.Wait()
		require.Equal(t, 1, l.Used())
		cancel()
		<-exited
		synctest.Wait()
		require.Zero(t, l.Used())
	})
}

func TestStreamPerOutputARefusalEndsTheHandlersContextAndFailsTheStream(t *testing.T) {
	tooLarge := &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1000}
	synctest.Test(t, func(t *testing.T) {
		var cause error
		h := &streamHandler{do: func(ctx context.Context, write func(string)) {
			write("a")
			write("b")
			<-ctx.Done()
			cause = context.Cause(ctx)
			write("c") // thrown away
		}}
		l := throttletest.New(throttletest.Grant(), throttletest.Deny(tooLarge))
		require.Equal(t, streamOutcome{sent: "a", panicked: tooLarge}, <-callStream(t.Context(), mapper.WrapStream(h, l, mapper.PerOutput())))
		require.Equal(t, tooLarge, cause)
	})
}

// A panicker is a limiter with a bug.
type panicker struct{ throttle.Limiter }

func (panicker) Acquire(context.Context, int) (throttle.Permit, error) { panic("mine") }

func TestStreamPerOutputAPanicOfTheLimiterFailsTheStreamAndNotTheProcess(t *testing.T) {
	require.Equal(t, streamOutcome{panicked: "mine"}, <-callStream(t.Context(), mapper.WrapStream(writing("a b"), panicker{}, mapper.PerOutput())))
}

func TestStreamDirectTheHandlerHasTheCallersChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens), throttletest.Deny(throttled()))
		to := make(chan mapstreamsdk.Message, 1)
		calls := 0
		m := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(
			func(ctx context.Context, _ []string, _ mapstreamsdk.Datum, got chan<- mapstreamsdk.Message) {
				calls++
				require.Equal(t, (chan<- mapstreamsdk.Message)(to), got)
				require.Equal(t, t.Context(), ctx)
				close(got)
			}), l, mapper.Direct(), mapper.WithMaxWait(2*time.Hour), mapper.OnDenied(mapper.Drop()))
		d := mapstreamsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil)
		go m.MapStream(t.Context(), nil, d, to)
		time.Sleep(time.Hour)
		require.Zero(t, calls, "it waits for its token all the same")
		tokens <- struct{}{}
		_, open := <-to
		require.False(t, open)
		require.Equal(t, 1, calls)
		require.Equal(t, ended(mapsdk.DROP), <-callStream(t.Context(), m), "and is denied all the same")
	})
}

// A handler that has closed its channel and not returned when the context ends may
// have given up as well.
func TestStreamAHandlerThatOutlivesItsContextEndsNoAnswer(t *testing.T) {
	for _, opts := range [][]mapper.StreamOption{nil, {mapper.PerOutput()}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			done := callStream(ctx, mapper.WrapStream(mapstreamsdk.MapStreamerFunc(
				func(ctx context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
					to <- mapstreamsdk.NewMessage([]byte("a"))
					close(to)
					<-ctx.Done()
				}), throttletest.New(), opts...))
			synctest.Wait()
			require.Empty(t, done)
			cancel()
			require.Equal(t, streamOutcome{sent: "a"}, <-done)
		})
	}
}

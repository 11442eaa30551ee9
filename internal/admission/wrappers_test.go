package admission_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// What every wrapper promises: each promise is tried with each kind of handler. What a kind has besides stands in the tests of its
// package. A call sends one message.

// A handled is a handler of any kind, which answers "handled".
type handled struct {
	calls int
	do    func() // nil: nothing
}

func (h *handled) run() {
	h.calls++
	if h.do != nil {
		h.do()
	}
}

// options are those that all kinds have.
type options struct {
	cost func() int // nil: without WithCost
	drop bool       // OnDenied(Drop()), after an hour
}

// A wrapped is a wrapper that has been called once its function returns: with the answer to its message, or without one.
type wrapped = func(ctx context.Context) (answer string)

// A kind of handler.
type kind struct {
	name string
	wrap func(l throttle.Limiter, h *handled, o options) wrapped
	// itself tells whether a wrapper is the handler itself.
	itself func(l throttle.Limiter) bool
	// fails is what a sink answers where the others end the call: one message never ends its batch.
	fails bool
	// reads: a source, which asks nobody for more than the time of a Read.
	reads bool
}

func mapOptions(o options) (opts []mapper.Option) {
	if o.cost != nil {
		opts = append(opts, mapper.WithCost(func([]string, mapsdk.Datum) int { return o.cost() }))
	}
	if o.drop {
		opts = append(opts, mapper.WithMaxWait(time.Hour), mapper.OnDenied(mapper.Drop()))
	}
	return opts
}

func mapKind() kind {
	wrap := func(l throttle.Limiter, h *handled, o options) wrapped {
		w := mapper.Wrap(mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages {
			h.run()
			return mapsdk.Messages{mapsdk.NewMessage([]byte("handled"))}
		}), l, mapOptions(o)...)
		return func(ctx context.Context) string {
			out := w.Map(ctx, nil, mapsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, nil, nil))
			return string(out[0].Value()) + strings.Join(out[0].Tags(), "")
		}
	}
	h := struct{ mapsdk.Mapper }{}
	return kind{name: "map", wrap: wrap, itself: func(l throttle.Limiter) bool { return mapper.Wrap(&h, l, mapper.ExemptDropped()) == mapsdk.Mapper(&h) }}
}

func batchKind() kind {
	wrap := func(l throttle.Limiter, h *handled, o options) wrapped {
		w := mapper.WrapBatch(batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) (out batchmapsdk.BatchResponses) {
			for d := range in {
				h.run()
				out = out.Append(batchmapsdk.NewBatchResponse(d.Id()).Append(batchmapsdk.NewMessage([]byte("handled"))))
			}
			return out
		}), l, mapOptions(o)...)
		return func(ctx context.Context) string {
			in := make(chan batchmapsdk.Datum, 1)
			in <- batchmapsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, "id", nil)
			close(in)
			m := w.BatchMap(ctx, in).Items()[0].Items()[0]
			return string(m.Value()) + strings.Join(m.Tags(), "")
		}
	}
	h := struct{ batchmapsdk.BatchMapper }{}
	return kind{
		name: "batch map", wrap: wrap,
		itself: func(l throttle.Limiter) bool {
			return mapper.WrapBatch(&h, l, mapper.ExemptDropped()) == batchmapsdk.BatchMapper(&h)
		},
	}
}

func streamKind(name string, opts ...mapper.StreamOption) kind {
	wrap := func(l throttle.Limiter, h *handled, o options) wrapped {
		all := slices.Clip(opts)
		for _, opt := range mapOptions(o) {
			all = append(all, opt)
		}
		w := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(func(_ context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
			defer close(to)
			h.run()
			to <- mapstreamsdk.NewMessage([]byte("handled"))
		}), l, all...)
		return func(ctx context.Context) (answer string) {
			to := make(chan mapstreamsdk.Message, 1)
			w.MapStream(ctx, nil, mapstreamsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil), to)
			for m := range to {
				answer += string(m.Value()) + strings.Join(m.Tags(), "")
			}
			return answer
		}
	}
	h := struct{ mapstreamsdk.MapStreamer }{}
	return kind{name: name, wrap: wrap, itself: func(l throttle.Limiter) bool {
		return mapper.WrapStream(&h, l, opts...) == mapstreamsdk.MapStreamer(&h)
	}}
}

func transformKind() kind {
	wrap := func(l throttle.Limiter, h *handled, o options) wrapped {
		var opts []sourcer.TransformerOption
		if o.cost != nil {
			opts = append(opts, sourcer.WithCost(func([]string, transformsdk.Datum) int { return o.cost() }))
		}
		if o.drop {
			opts = append(opts, sourcer.WithMaxWait(time.Hour), sourcer.OnDenied(sourcer.Drop()))
		}
		w := sourcer.WrapTransformer(transformsdk.SourceTransformFunc(func(context.Context, []string, transformsdk.Datum) transformsdk.Messages {
			h.run()
			return transformsdk.Messages{transformsdk.NewMessage([]byte("handled"), time.Time{})}
		}), l, opts...)
		return func(ctx context.Context) string {
			out := w.Transform(ctx, nil, transformsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, nil, nil))
			return string(out[0].Value()) + strings.Join(out[0].Tags(), "")
		}
	}
	h := struct{ transformsdk.SourceTransformer }{}
	return kind{name: "transformer", wrap: wrap, itself: func(l throttle.Limiter) bool {
		return sourcer.WrapTransformer(&h, l, sourcer.ExemptDropped()) == transformsdk.SourceTransformer(&h)
	}}
}

type sinkDatum struct{ sinksdk.Datum }

func (sinkDatum) ID() string { return "id" }

func sinkKind(name string, more ...sinker.Option) kind {
	wrap := func(l throttle.Limiter, h *handled, o options) wrapped {
		opts := slices.Clip(more)
		if o.cost != nil {
			opts = append(opts, sinker.WithCost(func(sinksdk.Datum) int { return o.cost() }))
		}
		if o.drop {
			opts = append(opts, sinker.WithMaxWait(time.Hour), sinker.OnDenied(sinker.Drop()))
		}
		w := sinker.Wrap(sinksdk.SinkerFunc(func(_ context.Context, in <-chan sinksdk.Datum) (out sinksdk.Responses) {
			for d := range in {
				h.run()
				out = append(out, sinksdk.ResponseOK(d.ID()))
			}
			return out
		}), l, opts...)
		return func(ctx context.Context) string {
			in := make(chan sinksdk.Datum, 1)
			in <- sinkDatum{}
			close(in)
			r := w.Sink(ctx, in)[0]
			if r.Success {
				return "handled"
			}
			return r.Err
		}
	}
	h := struct{ sinksdk.Sinker }{}
	return kind{name: name, fails: true, wrap: wrap, itself: func(l throttle.Limiter) bool { return sinker.Wrap(&h, l, more...) == sinksdk.Sinker(&h) }}
}

// readFor is the time that a Read of these tests has.
const readFor = 10_000 * time.Hour

type oneRead struct{}

func (oneRead) Count() uint64          { return 1 }
func (oneRead) TimeOut() time.Duration { return readFor }

// A spring is a source with one message for each Read.
type spring struct {
	sourcesdk.Sourcer
	*handled
}

func (s spring) Read(_ context.Context, _ sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	s.run()
	out <- sourcesdk.NewMessage([]byte("handled"), sourcesdk.Offset{}, time.Time{})
}

func sourceKind() kind {
	wrap := func(l throttle.Limiter, h *handled, o options) wrapped {
		var opts []sourcer.Option
		if o.cost != nil {
			opts = append(opts, sourcer.WithReadCost(func(sourcesdk.Message) int { return o.cost() }))
		}
		w := sourcer.Wrap(spring{handled: h}, l, opts...)
		return func(ctx context.Context) string {
			out := make(chan sourcesdk.Message, 1)
			w.Read(ctx, oneRead{}, out)
			close(out)
			m, ok := <-out
			if !ok {
				return ""
			}
			return string(m.Value())
		}
	}
	h := &struct{ sourcesdk.Sourcer }{}
	return kind{name: "source", reads: true, wrap: wrap, itself: func(l throttle.Limiter) bool { return sourcer.Wrap(h, l) == sourcesdk.Sourcer(h) }}
}

// An ending is how a call ended: with an answer, a panic or neither.
type ending struct {
	answer   string
	panicked any
}

// start calls a wrapper in a goroutine of its own, which it may end.
func start(ctx context.Context, w wrapped) <-chan ending {
	done := make(chan ending, 1)
	go func() {
		var e ending
		defer func() {
			e.panicked = recover()
			done <- e
		}()
		e.answer = w(ctx)
	}()
	return done
}

var answered = ending{answer: "handled"}

// refused is how a call ends for a reason that is no denial.
func (k kind) refused(t *testing.T, e ending, why error) {
	t.Helper()
	if k.fails {
		words := strings.Fields(why.Error()) // a limiter may say it in its own words
		require.Regexp(t, "^not handled: .*"+words[len(words)-1]+"$", e.answer)
		return
	}
	err, ok := e.panicked.(error)
	require.True(t, ok, "ended with %+v", e)
	require.ErrorIs(t, err, why)
}

// left is how a call ends whose context was cancelled.
func (k kind) left(t *testing.T, e ending, cause error) {
	t.Helper()
	if k.fails {
		require.Equal(t, ending{answer: "not handled: " + cause.Error()}, e)
		return
	}
	require.Equal(t, ending{}, e, "no answer")
}

type noLimit struct{ throttle.Limiter }

func (noLimit) Unlimited() bool { return true }

var promises = map[string]func(t *testing.T, k kind){
	"without a limit the handler itself is returned": func(t *testing.T, k kind) {
		none, err := throttle.New(throttle.Limit{})
		require.NoError(t, err)
		for name, l := range map[string]throttle.Limiter{"nil": nil, "says so": noLimit{}, "no max": none} {
			require.True(t, k.itself(l), name)
		}
		require.False(t, k.itself(throttletest.New()))
	},
	"a message draws what it costs, before it is handled": func(t *testing.T, k kind) {
		costs := map[string]func() int{"default": nil}
		for _, n := range []int{7, 0, -1} {
			costs[fmt.Sprint(n)] = func() int { return n }
		}
		for name, cost := range costs {
			l, want := throttletest.New(), 1
			if cost != nil {
				want = max(cost(), 0)
			}
			h := &handled{do: func() { require.True(t, k.reads || k.name == perOutput || l.Used() == want, name) }}
			require.Equal(t, answered, <-start(t.Context(), k.wrap(l, h, options{cost: cost})), name)
			require.Equal(t, want, l.Used(), name)
			if want == 0 && !k.reads { // which knows it later
				require.Empty(t, l.Draws(), name)
			}
			require.Equal(t, 1, h.calls, name)
		}
	},
	"what costs nothing never waits": func(t *testing.T, k kind) {
		if k.reads { // knows the cost when it has read
			return
		}
		w := k.wrap(throttletest.New(throttletest.Block()), &handled{}, options{cost: func() int { return 0 }})
		require.Equal(t, answered, <-start(t.Context(), w))
	},
	"a wait has no limit of its own": func(t *testing.T, k kind) {
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens))
		done := start(t.Context(), k.wrap(l, &handled{}, options{}))
		time.Sleep(30 * 24 * time.Hour)
		require.Equal(t, 1, l.Waiting())
		close(tokens)
		require.Equal(t, answered, <-done)
	},
	"a cancelled wait ends without an answer of the handler": func(t *testing.T, k kind) {
		for _, o := range []options{{}, {drop: true}} {
			for _, cause := range []error{context.Canceled, errors.New("sibling failed")} {
				if k.name == perOutput && o.drop {
					continue // not allowed
				}
				l, h := throttletest.New(throttletest.Block()), &handled{}
				ctx, cancel := context.WithCancelCause(t.Context())
				done := start(ctx, k.wrap(l, h, o))
				synctest.Wait()
				require.Empty(t, done)
				cancel(cause)
				k.left(t, <-done, cause)
				require.True(t, h.calls == 0 || k.name == perOutput)
				require.Zero(t, l.Used())
			}
		}
	},
	"tokens that come after the end of the context are given back": func(t *testing.T, k kind) {
		l, h := throttletest.New(), &handled{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		k.left(t, <-start(ctx, k.wrap(l, h, options{})), context.Canceled)
		require.True(t, h.calls == 0 || k.name == perOutput)
		require.Zero(t, l.Used())
	},
	"a deadline of another wrapper is no denial": func(t *testing.T, k kind) {
		if k.reads { // its context has none
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h := &handled{}
		w := k.wrap(throttletest.New(throttletest.Block()), h, options{drop: k.name != perOutput})
		k.refused(t, <-start(ctx, w), context.DeadlineExceeded)
		require.True(t, h.calls == 0 || k.name == perOutput)
	},
	"what else the limiter says is no denial": func(t *testing.T, k kind) {
		if k.reads { // waits out its time
			return
		}
		try := func(refusal error, o options) {
			h := &handled{}
			k.refused(t, <-start(t.Context(), k.wrap(throttletest.New(throttletest.Deny(refusal)), h, o)), refusal)
			require.True(t, h.calls == 0 || k.name == perOutput)
		}
		try(errors.New("other"), options{drop: k.name != perOutput})
		try(errors.New("other"), options{})
		try(&throttle.Error{Reason: throttle.ReasonLimit, Cost: 1, RetryAfter: time.Second}, options{}) // nobody chose what to do
	},
	"a closed limiter leaves messages to their context": func(t *testing.T, k kind) {
		for _, o := range []options{{}, {drop: true}} {
			if k.name == perOutput && o.drop {
				continue
			}
			l, h := throttletest.New(throttletest.Block()), &handled{}
			w := k.wrap(l, h, o)
			ctx, cancel := context.WithCancel(t.Context())
			before := start(ctx, w)
			synctest.Wait()
			l.Close()
			after := start(ctx, w)
			time.Sleep(24 * time.Hour)
			require.Empty(t, before)
			require.Empty(t, after)
			cancel()
			k.left(t, <-before, context.Canceled)
			k.left(t, <-after, context.Canceled)
			require.True(t, h.calls == 0 || k.name == perOutput)
			if !k.reads { // whose Read has a time
				k.refused(t, <-start(context.Background(), w), throttle.ErrClosed)
			}
		}
	},
	"a panic of the handler goes on unchanged": func(t *testing.T, k kind) {
		mine, l := errors.New("mine"), throttletest.New()
		e := <-start(t.Context(), k.wrap(l, &handled{do: func() { panic(mine) }}, options{}))
		require.Equal(t, ending{panicked: mine}, e)
		require.Equal(t, k.reads || k.name == perOutput, l.Used() == 0, "what it took stays drawn")
	},
	"a panic of the cost function draws nothing": func(t *testing.T, k kind) {
		l, h := throttletest.New(), &handled{}
		e := <-start(t.Context(), k.wrap(l, h, options{cost: func() int { panic("cost") }}))
		require.Equal(t, "cost", e.panicked)
		if !k.reads { // what it has read counts as one
			require.Zero(t, h.calls)
			require.Empty(t, l.Draws())
		}
	},
}

const perOutput = "stream map, per output"

func TestWrappers(t *testing.T) {
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(log) })
	kinds := []kind{
		mapKind(), batchKind(), streamKind("stream map"), streamKind("stream map, direct", mapper.Direct()),
		streamKind(perOutput, mapper.PerOutput()), transformKind(), sourceKind(), sinkKind("sink"),
		sinkKind("sink, tags", sinker.WithTag(func(sinksdk.Datum) string { return "tag" })),
	}
	for promise, keep := range promises {
		for _, k := range kinds {
			t.Run(promise+"/"+k.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { keep(t, k) })
			})
		}
	}
}

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

// A streamOutcome is how a call of MapStream ended; see outcome.
type streamOutcome struct {
	sent     string // values and tags of the outputs, separated by spaces
	closed   bool   // the answer was ended
	returned bool
	panicked any
}

// callStream calls m with a message and reads its outputs as numaflow-go does.
func callStream(ctx context.Context, m mapstreamsdk.MapStreamer) <-chan streamOutcome {
	to, ended, done := make(chan mapstreamsdk.Message), make(chan streamOutcome, 1), make(chan streamOutcome, 1)
	go func() {
		var o streamOutcome
		defer func() {
			o.panicked = recover()
			ended <- o
		}()
		m.MapStream(ctx, []string{"key"}, mapstreamsdk.NewHandlerDatum([]byte("value"), time.Time{}, time.Time{}, nil), to)
		o.returned = true
	}()
	go func() {
		var sent []string
		var closed bool
		read := func(m mapstreamsdk.Message, ok bool) {
			if !ok {
				closed = true
				return
			}
			sent = append(sent, string(m.Value())+strings.Join(m.Tags(), ","))
		}
		for {
			from := to
			if closed {
				from = nil
			}
			select {
			case m, ok := <-from:
				read(m, ok)
			case o := <-ended:
				if !closed {
					select {
					case m, ok := <-to:
						read(m, ok)
					default:
					}
				}
				o.sent, o.closed = strings.Join(sent, " "), closed
				done <- o
				return
			}
		}
	}()
	return done
}

// ended is the outcome of a call that was answered to its end.
func ended(sent string) streamOutcome { return streamOutcome{sent: sent, closed: true, returned: true} }

// A streamHandler counts its calls; do gets the context and a function that
// writes an output.
type streamHandler struct {
	calls int
	do    func(ctx context.Context, write func(string))
}

func (h *streamHandler) MapStream(ctx context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
	defer close(to) // as the examples of numaflow-go do
	h.calls++
	if h.do != nil {
		h.do(ctx, func(value string) {
			if value == "DROP" {
				to <- mapstreamsdk.MessageToDrop()
				return
			}
			to <- mapstreamsdk.NewMessage([]byte(value))
		})
	}
}

// writing is a handler that writes these outputs.
func writing(values string) *streamHandler {
	return &streamHandler{do: func(_ context.Context, write func(string)) {
		for v := range strings.FieldsSeq(values) {
			write(v)
		}
	}}
}

func TestStreamADeniedMessageIsNotAnsweredOnceTheContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range []mapsdk.Messages{nil, {forward("x")}} {
			ctx, cancel := context.WithCancel(t.Context())
			deny := mapper.DenyFunc(func(context.Context, []string, mapsdk.Datum, *throttle.Error) mapsdk.Messages {
				cancel()
				return answer
			})
			m := mapper.WrapStream(writing("a"), throttletest.New(throttletest.Deny(nil)), mapper.WithMaxWait(time.Second), mapper.OnDenied(deny))
			o := <-callStream(ctx, m)
			require.False(t, o.closed, "the answer is never ended")
			require.False(t, o.returned)
			require.Nil(t, o.panicked)
		}
	})
}

func TestStreamTheHandlerIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		h := &streamHandler{do: func(_ context.Context, write func(string)) {
			for ; written < 10; written++ {
				write(strconv.Itoa(written))
			}
		}}
		to := make(chan mapstreamsdk.Message)
		go mapper.WrapStream(h, throttletest.New()).MapStream(t.Context(), nil, mapstreamsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil), to)
		for read := range 10 {
			synctest.Wait()
			require.Equal(t, min(read+2, 10), written, "one output is on its way and one in hand, the next waits")
			require.Equal(t, strconv.Itoa(read), string((<-to).Value()))
		}
		_, open := <-to
		require.False(t, open)
	})
}

// A handler may leave its outputs to a goroutine that closes the channel later.
func TestStreamTheAnswerEndsWhenTheHandlersChannelIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(
			func(_ context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
				go func() {
					defer close(to)
					time.Sleep(time.Hour)
					to <- mapstreamsdk.NewMessage([]byte("late"))
				}()
			}), throttletest.New())
		require.Equal(t, ended("late"), <-callStream(t.Context(), m))
	})
}

// Whether the handler returns before its outputs are passed on or after: one goroutine does it.
func TestStreamOutputsOfAHandlerThatHasReturnedKeepTheirOrder(t *testing.T) {
	var want strings.Builder
	for i := range 500 {
		want.WriteString(strconv.Itoa(i) + " ")
	}
	m := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(
		func(_ context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
			go func() {
				defer close(to)
				for v := range strings.FieldsSeq(want.String()) {
					to <- mapstreamsdk.NewMessage([]byte(v))
				}
			}()
		}), throttletest.New())
	for range 20 {
		require.Equal(t, ended(strings.TrimSpace(want.String())), <-callStream(t.Context(), m))
	}
}

func TestStreamWithoutACloseTheMessageIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(
			func(_ context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
				to <- mapstreamsdk.NewMessage([]byte("a"))
			}), throttletest.New())
		ctx, cancel := context.WithCancel(t.Context())
		done := callStream(ctx, m)
		time.Sleep(time.Hour)
		require.Empty(t, done)
		cancel()
		require.Equal(t, streamOutcome{sent: "a"}, <-done)
	})
}

// A handler that gives up when its context ends closes its channel as always.
func TestStreamAHandlerThatGaveUpEndsNoAnswer(t *testing.T) {
	for _, opts := range [][]mapper.StreamOption{nil, {mapper.PerOutput()}} {
		synctest.Test(t, func(t *testing.T) {
			h := &streamHandler{do: func(ctx context.Context, write func(string)) {
				write("a")
				<-ctx.Done()
			}}
			ctx, cancel := context.WithCancel(t.Context())
			done := callStream(ctx, mapper.WrapStream(h, throttletest.New(), opts...))
			synctest.Wait()
			cancel()
			require.Equal(t, streamOutcome{sent: "a"}, <-done)
		})
		// While an output is on its way the end and the close may be seen at once.
		for range 2000 {
			ctx, cancel := context.WithCancel(t.Context())
			h := &streamHandler{do: func(_ context.Context, write func(string)) {
				write("a")
				cancel()
			}}
			o := <-callStream(ctx, mapper.WrapStream(h, throttletest.New(), opts...))
			require.False(t, o.closed)
			require.False(t, o.returned)
			require.Nil(t, o.panicked)
		}
	}
}

func TestStreamAHandlerThatWritesAfterTheEndIsNotStuck(t *testing.T) {
	for name, limiter := range map[string]func() *throttletest.Limiter{
		"with tokens": func() *throttletest.Limiter { return throttletest.New() },
		"without":     func() *throttletest.Limiter { return throttletest.New(throttletest.Grant(), throttletest.Block()) },
	} {
		for _, opts := range [][]mapper.StreamOption{nil, {mapper.PerOutput()}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
					h := &streamHandler{do: func(ctx context.Context, write func(string)) {
						write("a")
						<-ctx.Done()
						for range 100 {
							write("after")
						}
					}}
					ctx, cancel := context.WithCancel(t.Context())
					l := limiter()
					done := callStream(ctx, mapper.WrapStream(h, l, opts...))
					synctest.Wait()
					cancel()
					require.Equal(t, streamOutcome{sent: "a"}, <-done)
					require.Equal(t, 1, l.Used(), "nothing is drawn for what is not sent")
				})
			})
		}
	}
}

func TestStreamAPanicOfTheHandlerEndsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []mapper.StreamOption
		script []throttletest.Step
		write  string
		used   int
	}{
		"before any output": {nil, nil, "", 1},
		"after an output":   {nil, nil, "a b", 1},
		"per output":        {[]mapper.StreamOption{mapper.PerOutput()}, nil, "a b", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
				h := &streamHandler{do: func(_ context.Context, write func(string)) {
					for v := range strings.FieldsSeq(c.write) {
						write(v)
					}
					synctest.Wait()
					panic("mine")
				}}
				l := throttletest.New(c.script...)
				o := <-callStream(t.Context(), mapper.WrapStream(h, l, append(c.opts, mapper.ExemptDropped())...))
				require.Equal(t, streamOutcome{sent: c.write, panicked: "mine"}, o)
				require.Equal(t, c.used, l.Used(), "the tokens stay drawn")
			})
		})
	}
}

// Nor does anything of the wrapper stay behind, which would keep the bubble from its end: the context goes on.
func TestStreamAPanicWithoutACloseLeavesNothingBehind(t *testing.T) {
	for name, working := range map[string]time.Duration{"at once": 0, "later": time.Second} {
		for _, opts := range [][]mapper.StreamOption{nil, {mapper.PerOutput()}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(
						func(context.Context, []string, mapstreamsdk.Datum, chan<- mapstreamsdk.Message) {
							time.Sleep(working)
							panic("mine")
						}), throttletest.New(), opts...)
					require.Equal(t, streamOutcome{panicked: "mine"}, <-callStream(context.Background(), m))
				})
			})
		}
	}
}

// The handler panics in another goroutine's way: while its output waits for a token.
func TestStreamAPanicEndsTheWaitOfAnOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
		l := throttletest.New(throttletest.Block())
		h := &streamHandler{do: func(_ context.Context, write func(string)) {
			write("a")
			synctest.Wait()
			require.Equal(t, 1, l.Waiting())
			panic("mine")
		}}
		require.Equal(t, streamOutcome{panicked: "mine"}, <-callStream(t.Context(), mapper.WrapStream(h, l, mapper.PerOutput())))
		synctest.Wait()
		require.Zero(t, l.Waiting())
	})
}

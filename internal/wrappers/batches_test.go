package wrappers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestBatches(t *testing.T) { try(t, batchPromises) }

func batched(k *kind) bool { return k.batches }
func ordered(k *kind) bool { return k.batches && !k.lanes }

// plain kinds have no tags.
func plain(k *kind) bool { return k.name == "batch map" || k.name == "sink" }

func named(ids string) (all []message) {
	for id := range strings.FieldsSeq(ids) {
		all = append(all, message(id))
	}
	return all
}

func numbered(n int) []message {
	ids := make([]message, n)
	for i := range ids {
		ids[i] = message(fmt.Sprint(i))
	}
	return ids
}

// within bounds the waits of a batch together.
func (k *kind) within(d time.Duration, onDenied string) options {
	if k.sink {
		return options{budget: d, onDenied: onDenied}
	}
	return options{maxWait: d, onDenied: onDenied}
}

// unfinished is how a batch ends that the handler has not read to its end: a batch map fails the stream, a sink answers for each message.
func (k *kind) unfinished(t *testing.T, e ending, handled, all int) {
	t.Helper()
	if !k.sink {
		require.ErrorContains(t, e.failed(t), "returned before it had read the whole batch")
		return
	}
	require.Len(t, e.answers, all)
	texts := e.texts()
	require.Equal(t, slices.Repeat([]string{"handled"}, handled), texts[:handled])
	for _, text := range texts[handled:] {
		require.Equal(t, "not handled: the handler returned before it took this message", text)
	}
}

var batchPromises = map[string]promise{
	"messages reach the handler as they are admitted": {batched, func(t *testing.T, k *kind) {
		tokens := make(chan struct{})
		l, h := throttletest.New(throttletest.GrantOn(tokens)), &handler{}
		done := k.start(t.Context(), k.wrap(k.bare(h), l, options{}), "a", "b", "c")
		for i := range 3 {
			time.Sleep(30 * 24 * time.Hour)
			require.Equal(t, []string{"a", "b", "c"}[:i], append([]string{}, h.Taken()...))
			require.Equal(t, 1, l.Waiting(), "one after the other")
			tokens <- struct{}{}
			synctest.Wait()
		}
		require.Equal(t, answered("handled", "handled", "handled"), <-done)
	}},
	"an empty batch is the handler's, too": {batched, func(t *testing.T, k *kind) {
		l, ended := throttletest.New(), 0
		e := <-k.start(t.Context(), k.wrap(k.bare(&handler{end: func() { ended++ }}), l, options{}))
		require.True(t, e.returned)
		require.Empty(t, e.answers)
		require.Empty(t, l.Draws())
		require.Equal(t, 1, ended)
	}},
	"a message that is denied is answered in its place, and the others are handled": {ordered, func(t *testing.T, k *kind) {
		deny := throttletest.Deny(throttled())
		for _, c := range []struct {
			script []throttletest.Step
			denied string
		}{
			{[]throttletest.Step{grant, deny, grant, deny, grant}, "b d"},
			{[]throttletest.Step{deny, deny, grant}, "a b"},
			{[]throttletest.Step{grant, grant, grant, grant, deny}, "e"},
			{[]throttletest.Step{deny}, "a b c d e"},
		} {
			for action, denied := range k.actions("throttled") {
				h, o := &handler{}, second(action)
				o.deny = func(message, *throttle.Error) {}
				e := <-k.start(t.Context(), k.wrap(k.bare(h), throttletest.New(c.script...), o), named("a b c d e")...)
				var taken, want []string
				for _, id := range named("a b c d e") {
					text := "handled"
					if strings.Contains(c.denied, string(id)) {
						text = strings.NewReplacer("blue:7", string(id), "blue", "").Replace(denied)
					} else {
						taken = append(taken, string(id))
					}
					want = append(want, text)
				}
				require.Equal(t, want, e.texts(), action)
				require.Equal(t, taken, h.Taken())
			}
		}
	}},
	"one message at most holds tokens for a busy handler": {batched, func(t *testing.T, k *kind) {
		tokens, gate, used := make(chan struct{}), make(chan struct{}), 2
		l := throttletest.New(throttletest.GrantOn(tokens))
		h := &handler{do: func(context.Context, message) { <-gate }}
		done := k.start(t.Context(), k.wrap(k.bare(h), l, options{}), named("x:1 y:1 x:2 y:2 x:3 y:3")...)
		synctest.Wait()
		close(tokens)
		synctest.Wait()
		require.Len(t, h.Taken(), 1)
		if k.lanes {
			used = 3 // one of each tag is ready
		}
		require.Equal(t, used, l.Used())
		close(gate)
		require.Len(t, (<-done).answers, 6)
		require.Equal(t, 6, l.Used())
	}},
	"the messages of a batch wait together for so long": {batched, func(t *testing.T, k *kind) {
		h := &handler{}
		w := k.wrap(k.bare(h), throttletest.New(grant, block), k.within(time.Second, "drop"))
		began := time.Now()
		require.Len(t, (<-k.start(t.Context(), w, named("x:1 x:2 y:1 x:3 y:2")...)).answers, 5)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, []string{"x:1"}, h.Taken())
		require.Len(t, (<-k.start(t.Context(), w, "x:4")).answers, 1)
		require.Equal(t, 2*time.Second, time.Since(began), "the next batch has a time of its own")
	}},
	"tokens at hand are taken when that time is over": {ordered, func(t *testing.T, k *kind) {
		h, began := &handler{}, time.Now()
		w := k.wrap(k.bare(h), throttletest.New(block, grant, block, grant), k.within(time.Second, "drop"))
		require.Len(t, (<-k.start(t.Context(), w, named("a b c d")...)).answers, 4)
		require.Equal(t, []string{"b", "d"}, h.Taken())
		require.Equal(t, time.Second, time.Since(began))
	}},
	"time in which the handler is busy does not count": {batched, func(t *testing.T, k *kind) {
		l, err := throttle.New(throttle.Limit{Max: 10, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		time.Sleep(time.Second)
		h := &handler{do: func(context.Context, message) { time.Sleep(time.Hour) }}
		e := <-k.start(t.Context(), k.wrap(k.bare(h), l, k.within(time.Second, "nack")), numbered(8)...)
		require.Equal(t, answered(slices.Repeat([]string{"handled"}, 8)...), e)
	}},
	"a handler that returns early": {batched, func(t *testing.T, k *kind) {
		waits := []throttletest.Step{grant, grant, block}
		free := func(id message) int { return map[bool]int{true: 0, false: 1}[id == "x:3"] }
		for name, c := range map[string]struct {
			script []throttletest.Step
			o      options
		}{
			"tokens at hand": {nil, options{}}, "waiting": {waits, options{}}, "waiting, drop": {waits, k.within(time.Hour, "drop")},
			"the next one costs nothing": {nil, options{cost: free}},
		} {
			l := throttletest.New(c.script...)
			h, began := &handler{quits: true, most: 2, end: func() { time.Sleep(time.Second) }}, time.Now()
			e := <-k.start(t.Context(), k.wrap(k.bare(h), l, c.o), named("x:1 x:2 x:3 y:1 x:4")...)
			k.unfinished(t, e, 2, 5)
			require.Equal(t, time.Second, time.Since(began), name)
			require.Equal(t, 2, l.Used(), "what was not handed on was given back: %s", name)
			require.Zero(t, l.Waiting(), name)
		}
		h := &handler{quits: true, most: 2}
		require.Equal(t, answered("handled", "handled"), <-k.start(t.Context(), k.wrap(k.bare(h), throttletest.New(), options{}), "x:1", "x:2"),
			"it need not look for the end")
	}},
	"a panic of the handler does not wait for the rest of the batch, which is read all the same": {batched, func(t *testing.T, k *kind) {
		mine := errors.New("mine")
		for name, end := range map[string]func(){"panic": func() { panic(mine) }, "Goexit": runtime.Goexit} {
			for _, script := range [][]throttletest.Step{nil, {grant, block}} {
				l, in, gate := throttletest.New(script...), make(chan message), make(chan struct{})
				var ctx context.Context
				h := &handler{quits: true, most: 1, end: func() { <-gate; end() }}
				h.do = func(got context.Context, _ message) { ctx = got } //nolint:fatcontext // kept for the test
				done := k.feed(t.Context(), k.wrap(k.bare(h), l, options{}), in)
				in <- "x:1"
				in <- "x:2"
				synctest.Wait()
				close(gate)
				e := <-done
				require.Equal(t, map[bool]any{true: mine, false: nil}[name == "panic"], e.panicked, "unchanged")
				require.False(t, e.returned)
				if !k.sink {
					require.Error(t, ctx.Err())
				}
				in <- "x:3"
				in <- "y:1"
				close(in)
				synctest.Wait()
				require.Equal(t, 1, l.Used(), "what it took stays drawn, the rest is given back")
				require.Zero(t, l.Waiting())
			}
		}
	}},
	"a cancelled wait ends the batch": {batched, func(t *testing.T, k *kind) {
		all := []options{{}}
		for action := range k.actions("") {
			all = append(all, options{maxWait: time.Hour, onDenied: action})
		}
		for _, o := range all {
			cause := errors.New("the end")
			ctx, cancel := context.WithCancelCause(t.Context())
			l, h, in := throttletest.New(grant, block), &handler{}, make(chan message)
			done := k.feed(ctx, k.wrap(k.bare(h), l, o), in)
			in <- "a"
			synctest.Wait()
			in <- "b"
			synctest.Wait()
			cancel(cause)
			synctest.Wait()
			if k.sink {
				require.Empty(t, done, "its channel is read to the end")
			}
			in <- "c"
			close(in)
			k.left(t, <-done, cause, 2)
			require.Equal(t, []string{"a"}, h.Taken())
			require.Equal(t, 1, l.Used())
		}
	}},
	"a context that ends while the handler is busy": {batched, func(t *testing.T, k *kind) {
		ctx, cancel := context.WithCancel(t.Context())
		l := throttletest.New()
		h := &handler{do: func(ctx context.Context, _ message) {
			<-ctx.Done()
			time.Sleep(time.Second)
		}}
		done := k.start(ctx, k.wrap(k.bare(h), l, options{}), "a", "b", "c")
		synctest.Wait()
		require.Equal(t, 2, l.Used(), "the second is ready")
		cancel()
		k.left(t, <-done, context.Canceled, 2)
		require.Equal(t, 1, l.Used())
	}},
	"tokens that come with the end of the context are given back": {batched, func(t *testing.T, k *kind) {
		for range 30 { // the handler is ready for the message, too
			ctx, cancel := context.WithCancel(t.Context())
			l, h := throttletest.New(), &handler{} // grants although the context has ended
			o := options{cost: func(id message) int {
				if id == "b" {
					synctest.Wait()
					cancel()
				}
				return 1
			}}
			k.left(t, <-k.start(ctx, k.wrap(k.bare(h), l, o), "a", "b", "c"), context.Canceled, 2)
			require.Equal(t, []string{"a"}, h.Taken())
			require.Equal(t, 1, l.Used())
		}
	}},
	"a channel that closes with the context ends no batch": {batched, func(t *testing.T, k *kind) {
		ctx, cancel := context.WithCancel(t.Context())
		in := make(chan message)
		done := k.feed(ctx, k.wrap(k.bare(&handler{}), throttletest.New(), options{}), in)
		in <- "a"
		synctest.Wait()
		cancel()
		close(in)
		k.left(t, <-done, context.Canceled, 0)
	}},
	"a batch that waits when its limiter is closed is not over for the handler": {batched, func(t *testing.T, k *kind) {
		l, over := throttletest.New(grant, block), 0
		h := &handler{end: func() { over++ }} // one that collects its batch makes its call now, for an answer that nobody gets
		ctx, cancel := context.WithCancel(t.Context())
		done := k.start(ctx, k.wrap(k.bare(h), l, options{}), "a", "b")
		synctest.Wait()
		l.Close()
		time.Sleep(time.Hour)
		require.Empty(t, done)
		require.Zero(t, over)
		cancel()
		k.left(t, <-done, context.Canceled, 1)
		require.Equal(t, []string{"a"}, h.Taken())
	}},
	"a function of the user that panics or exits fails the stream": {batched, func(t *testing.T, k *kind) {
		mine := errors.New("mine")
		for name, end := range map[string]func(){"panic": func() { panic(mine) }, "Goexit": runtime.Goexit} {
			second := func(id message) {
				if id == "x:2" {
					end()
				}
			}
			for what, o := range map[string]options{
				"cost": {cost: func(id message) int { second(id); return 1 }},
				"tag":  {tag: func(id message) string { second(id); return "" }},
				"deny": {maxWait: time.Second, onDenied: "func", deny: func(id message, _ *throttle.Error) { second(id) }},
			} {
				l := throttletest.New()
				if what == "deny" {
					l = throttletest.New(throttletest.Deny(nil))
				}
				e := <-k.start(t.Context(), k.wrap(k.bare(&handler{}), l, o), named("x:1 x:2 x:3 y:1")...)
				require.False(t, e.returned, what)
				switch {
				case name == "panic":
					require.Equal(t, mine, e.panicked, what)
				case k.sink:
					require.Nil(t, e.panicked, what)
				default:
					require.ErrorContains(t, e.failed(t), "ended its goroutine")
				}
				require.LessOrEqual(t, l.Used(), 2, what)
			}
		}
	}},
	"batches at once do not disturb each other": {batched, func(t *testing.T, k *kind) {
		l := throttletest.New()
		h := &handler{outputs: func(id message) []output { return []output{{value: string(id)}} }}
		w := k.wrap(k.bare(h), l, k.within(time.Second, "drop"))
		var calls []<-chan ending
		for i := range 20 {
			var ids []message
			for n := range 50 {
				ids = append(ids, message(fmt.Sprintf("%d:%d", i, n)))
			}
			calls = append(calls, k.start(t.Context(), w, ids...))
		}
		for i, done := range calls {
			e := <-done
			require.Len(t, e.answers, 50)
			if !k.sink {
				require.Equal(t, fmt.Sprintf("%d:49", i), e.answers[49].text)
			}
		}
		require.Equal(t, 20*50, l.Used())
	}},
	"a few messages are ahead of a busy handler": {plain, func(t *testing.T, k *kind) {
		for name, c := range map[string]struct {
			o    options
			want []int64 // in the first batch, and in one after it has taken two milliseconds for each message
		}{
			"a token each":     {options{}, []int64{10 + 1, 5 + 1}},
			"a cost of theirs": {options{cost: func(message) int { return 1 }}, []int64{1, 1}},
			"tags":             {options{tag: func(message) string { return "" }}, []int64{1, 1}},
		} {
			th, h := fast(t), &handler{}
			w := k.warm(t, h, th, c.o)
			batch := 0
			h.begin = func() {
				time.Sleep(time.Second)
				require.Equal(t, c.want[batch], inUse(th)-int64(500*batch), name)
			}
			for batch = range c.want {
				require.Len(t, (<-k.start(t.Context(), w, numbered(500)...)).answers, 500)
			}
			require.EqualValues(t, 1000, inUse(th))
		}
	}},
	"what was ahead is taken back, however the handler ends": {plain, func(t *testing.T, k *kind) {
		for name, end := range map[string]func(){"returns": nil, "panics": func() { panic("end") }, "exits": runtime.Goexit} {
			for _, taken := range []int{0, 1, 3, 10, 11, 25} {
				for _, size := range []int{0, 1, 3, 10, 11, 12, 13, 30} {
					if size < taken {
						continue
					}
					th, h := fast(t), &handler{}
					w := k.warm(t, h, th, options{})
					h.begin, h.quits, h.most, h.end = synctest.Wait, true, taken, end
					e := <-k.start(t.Context(), w, numbered(size)...)
					require.EqualValues(t, taken, inUse(th), "%s after %d of %d", name, taken, size)
					switch {
					case name != "returns":
						require.Equal(t, map[bool]any{true: "end", false: nil}[name == "panics"], e.panicked)
					case taken < size:
						k.unfinished(t, e, taken, size)
					default:
						require.Len(t, e.answers, size)
					}
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		th, h := fast(t), &handler{}
		w := k.warm(t, h, th, options{})
		h.quits, h.most, h.end = true, 1, func() { synctest.Wait(); cancel() }
		k.left(t, <-k.start(ctx, w, numbered(30)...), context.Canceled, 29)
		require.EqualValues(t, 1, inUse(th), "the end of the context")
	}},
}

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
func (k *kind) warm(t *testing.T, h *handler, th *throttle.Throttle, o options) any {
	t.Helper()
	w := k.wrap(k.bare(h), th, o)
	require.Equal(t, answered("handled"), <-k.start(t.Context(), w, "first"))
	return w
}

// inUse returns the tokens granted since then, less those given back.
func inUse(th *throttle.Throttle) int64 {
	synctest.Wait()
	st := th.Status()
	return st.Granted - st.Returned - 1
}

package wrappers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A promise is tried with each kind that makes it, in virtual time.
type promise struct {
	by   func(k *kind) bool
	keep func(t *testing.T, k *kind)
}

func every(*kind) bool        { return true }
func drawing(k *kind) bool    { return !k.source } // for messages that have come
func denying(k *kind) bool    { return !k.source && !k.outputs }
func calling(k *kind) bool    { return drawing(k) && !k.batches && !k.sink && !k.outputs } // one call of the handler for each message
func forwarding(k *kind) bool { return denying(k) && !k.sink && k.name != "stream map, direct" }

func try(t *testing.T, promises map[string]promise) {
	t.Helper()
	for name, p := range promises {
		t.Run(name, func(t *testing.T) {
			for _, k := range kinds(p.by) {
				t.Run(k.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { p.keep(t, k) }) // fails if a goroutine is left
				})
			}
		})
	}
}

func TestWrappers(t *testing.T) { try(t, promises) }

var (
	grant, block = throttletest.Grant(), throttletest.Block()
	errOther     = errors.New("other")
)

// throttled is the error of a limiter whose next token takes 2 s.
func throttled() *throttle.Error {
	return &throttle.Error{Reason: throttle.ReasonLimit, Limit: "calls", Cost: 1, RetryAfter: 2 * time.Second}
}

func tooLarge() *throttle.Error {
	return &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1e12, Largest: 10}
}

// refused is how a call ends for a reason that is no denial.
func (k *kind) refused(t *testing.T, e ending, why error) {
	t.Helper()
	if k.sink {
		words := strings.Fields(why.Error()) // a limiter may say it in its own words
		require.Regexp(t, "^not handled: .*"+words[len(words)-1]+"$", e.answers[0].text)
		return
	}
	require.ErrorIs(t, e.failed(t), why)
}

// left is how a call ends whose context was cancelled, after these answers of the handler.
func (k *kind) left(t *testing.T, e ending, cause error, unhandled int) {
	t.Helper()
	switch {
	case k.sink:
		texts := e.texts()
		for _, text := range texts[len(texts)-unhandled:] {
			require.Equal(t, "not handled: "+cause.Error(), text)
		}
	case k.source:
		require.Empty(t, e.answers)
	default:
		require.Equal(t, ending{}, e, "no answer")
	}
}

// unseen requires that the handler has seen no message. With a token for each output it sees one at once.
func (k *kind) unseen(t *testing.T, h *handler) {
	t.Helper()
	require.True(t, k.outputs || len(h.Taken()) == 0)
}

// bounds returns options without and with an action.
func (k *kind) bounds() []options {
	if !denying(k) {
		return []options{{}}
	}
	return []options{{}, {maxWait: time.Hour, onDenied: "drop"}}
}

type noLimit struct{ throttle.Limiter }

func (noLimit) Unlimited() bool { return true }

// shown is a limiter of another package that shows the one it draws from.
type shown struct{ throttle.Limiter }

func (s shown) Unwrap() throttle.Limiter { return s.Limiter }

var promises = map[string]promise{
	"without a limit the handler itself is returned": {every, func(t *testing.T, k *kind) {
		none, err := throttle.New(throttle.Limit{})
		require.NoError(t, err)
		bare := k.bare(&handler{})
		for name, l := range map[string]throttle.Limiter{"nil": nil, "says so": noLimit{}, "no max": none} {
			require.Same(t, bare, k.wrap(bare, l, options{}), name)
		}
		require.NotEqual(t, bare, k.wrap(bare, throttletest.New(), options{}))
	}},
	"message and answer pass unchanged": {drawing, func(t *testing.T, k *kind) {
		h := &handler{outputs: func(message) []output {
			return []output{{"x", []string{"k", "l"}, []string{"t"}}, {value: "y"}}
		}}
		e := <-k.start(context.WithValue(t.Context(), contextKey{}, "v"), k.wrap(k.bare(h), throttletest.New(), options{}), "blue:7")
		meta := map[bool]string{true: "meta", false: "none"}[k.sink || k.name == "map" || k.name == "transformer"]
		require.Equal(t, []string{"blue:7 [key blue] map[cost:7 tag:blue] true " + meta + " v\n"}, h.seen)
		if k.sink {
			require.Equal(t, answered("handled"), e)
		} else {
			require.Equal(t, answered("x/k,l#t y"), e)
		}
	}},
	"a call in flight ends with its handler": {calling, func(t *testing.T, k *kind) {
		slots, err := throttle.NewInFlight(2)
		require.NoError(t, err)
		defer slots.Close()
		for range 5 {
			require.Equal(t, answered("handled"), k.one(t, slots, &handler{}, options{}))
		}
	}},
	"slots that it could not give back are refused at once": {func(k *kind) bool { return !calling(k) }, func(t *testing.T, k *kind) {
		slots, err := throttle.NewInFlight(2, throttle.WithName("calls"), throttle.WithQuotas(throttle.Quotas{}))
		require.NoError(t, err)
		defer slots.Close()
		tokens := throttletest.New()
		for name, l := range map[string]throttle.Limiter{
			"alone": slots, "of a tag": slots.ForTag("acme"), "one for each call": throttle.PerCall(slots), "beside tokens": throttle.All(tokens, slots),
			"of a tag, beside tokens": throttle.ForTags(throttle.All(tokens, slots), "acme"), "shown by another": shown{slots},
		} {
			why := func() (err error) {
				defer func() { err, _ = recover().(error) }()
				k.wrap(k.bare(&handler{}), l, options{})
				return nil
			}()
			require.ErrorContains(t, why, `the limiter counts calls in flight ("calls"), allowed: limits of tokens`, name)
		}
	}},
	"a message draws what it costs, before it is handled": {every, func(t *testing.T, k *kind) {
		for _, cost := range []int{1, 7, 0, -1} {
			l, o, want := throttletest.New(), options{}, max(cost, 0)
			if cost != 1 {
				o.cost = func(message) int { return cost }
			}
			h := &handler{do: func(context.Context, message) { require.True(t, k.source || k.outputs || l.Used() == want, cost) }}
			require.Equal(t, answered("handled"), k.one(t, l, h, o))
			require.Equal(t, []string{"a"}, h.Taken())
			require.Equal(t, want, l.Used(), cost)
			if !k.source { // which knows it later
				method := map[bool]throttletest.Method{false: throttletest.Acquire, true: throttletest.TryAcquire}[k.lanes]
				require.Equal(t, []throttletest.Draw{{Method: method, Cost: want, Granted: want, Used: want, Settled: calling(k)}}, l.Draws())
			}
		}
	}},
	"ready-made costs and tags": {drawing, func(t *testing.T, k *kind) {
		for _, c := range []struct {
			id   message
			o    options
			cost int
			tag  string
		}{
			{"blue:7", options{costs: "bytes/2"}, 3, ""},
			{"b", options{costs: "bytes/2"}, 1, ""},
			{"blue:7", options{costs: "header cost"}, 7, ""},
			{"blue:4.2", options{costs: "header cost"}, 5, ""},
			{"blue:many", options{costs: "header cost"}, 1<<31 - 1, ""},
			{"b", options{costs: "header cost"}, 1, ""},
			{"blue:7", options{tags: "header tag"}, 1, "blue"},
			{"blue:7", options{tags: "key 1"}, 1, "blue"},
			{"b", options{tags: "key 1"}, 1, ""},
			{"blue:7", options{tag: func(id message) string { return string(id) }}, 1, "blue:7"},
			{"blue:7", options{tags: "key 1", cost: func(message) int { return 0 }}, 0, "blue"},
		} {
			if k.tags() {
				c.o.tags, c.o.tag, c.tag = "", nil, c.id.tag()
			}
			whole, of := throttletest.New(), throttletest.New()
			l := tagged{whole, map[string]throttle.Limiter{c.tag: of}}
			require.Equal(t, answered("handled"), <-k.start(t.Context(), k.wrap(k.bare(&handler{}), l, c.o), c.id))
			if c.tag == "" {
				of = whole
			}
			require.Equal(t, c.cost, of.Used(), "%s %+v", c.id, c.o)
			require.NotEmpty(t, of.Draws(), "also a message that costs nothing waits for its tag")
		}
	}},
	"a wait has no limit of its own": {every, func(t *testing.T, k *kind) {
		tokens := make(chan struct{})
		for _, o := range []options{{}, {cost: func(message) int { return 0 }}} {
			l := throttletest.New(throttletest.GrantOn(tokens))
			done := k.start(t.Context(), k.wrap(k.bare(&handler{}), l, o), "a")
			time.Sleep(30 * 24 * time.Hour)
			require.Equal(t, 1, l.Waiting())
			close(tokens)
			require.Equal(t, answered("handled"), <-done)
			tokens = make(chan struct{})
		}
	}},
	"a cancelled wait ends without an answer of the handler": {every, func(t *testing.T, k *kind) {
		for _, o := range k.bounds() {
			for _, cause := range []error{context.Canceled, errors.New("sibling failed")} {
				l, h := throttletest.New(block), &handler{}
				ctx, cancel := context.WithCancelCause(t.Context())
				done := k.start(ctx, k.wrap(k.bare(h), l, o), "a")
				synctest.Wait()
				require.Empty(t, done)
				cancel(cause)
				k.left(t, <-done, cause, 1)
				k.unseen(t, h)
				require.Zero(t, l.Used())
			}
		}
	}},
	"tokens that come after the end of the context are given back": {every, func(t *testing.T, k *kind) {
		l, h := throttletest.New(), &handler{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		k.left(t, <-k.start(ctx, k.wrap(k.bare(h), l, options{}), "a"), context.Canceled, 1)
		k.unseen(t, h)
		require.Zero(t, l.Used())
		require.True(t, !k.sink || len(l.Draws()) == 0, "a sink knows it")
	}},
	"a deadline of another wrapper is no denial": {drawing, func(t *testing.T, k *kind) {
		for _, o := range k.bounds() {
			h := &handler{}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			k.refused(t, <-k.start(ctx, k.wrap(k.bare(h), throttletest.New(block), o), "a"), context.DeadlineExceeded)
			k.unseen(t, h)
			cancel()

			l, err := throttle.New(throttle.Limit{Max: 1, Per: 10 * time.Second}) // it refuses ahead of time
			require.NoError(t, err)
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			e := <-k.start(ctx, k.wrap(k.bare(h), l, o), "a")
			cancel()
			require.NoError(t, l.Close())
			if k.sink {
				require.Contains(t, e.answers[0].text, "not handled: ")
			} else {
				require.ErrorIs(t, e.failed(t), throttle.ErrThrottled)
			}
		}
	}},
	"what else the limiter says is no denial": {drawing, func(t *testing.T, k *kind) {
		all := []options{{}}
		if denying(k) {
			all = append(all, options{maxWait: time.Hour, onDenied: "drop"}, options{maxWait: time.Hour, onDenied: "nack"},
				options{maxWait: time.Hour, onDenied: "func"})
		}
		for _, o := range all {
			var log bytes.Buffer
			h := &handler{}
			o.log = slog.New(slog.NewTextHandler(&log, nil))
			k.refused(t, k.one(t, throttletest.New(throttletest.Deny(errOther)), h, o), errOther)
			k.unseen(t, h)
			require.Contains(t, log.String(), "error=other")
		}
		nobodys := throttled() // for without a bound nobody chose what to do
		k.refused(t, k.one(t, throttletest.New(throttletest.Deny(nobodys)), &handler{}, options{}), nobodys)
	}},
	"a closed limiter leaves messages to their context": {every, func(t *testing.T, k *kind) {
		for _, o := range k.bounds() {
			var log bytes.Buffer
			o.log = slog.New(slog.NewTextHandler(&log, nil))
			l, h := throttletest.New(block), &handler{}
			w := k.wrap(k.bare(h), l, o)
			ctx, cancel := context.WithCancel(t.Context())
			before := k.start(ctx, w, "a")
			synctest.Wait()
			l.Close()
			after := k.start(ctx, w, "a")
			time.Sleep(24 * time.Hour)
			require.Empty(t, before)
			require.Empty(t, after)
			cancel()
			k.left(t, <-before, context.Canceled, 1)
			k.left(t, <-after, context.Canceled, 1)
			k.unseen(t, h)
			require.Equal(t, 1, strings.Count(log.String(), "limiter closed"), "said once, not for each message")
			if !k.source { // whose Read has a time
				k.refused(t, <-k.start(context.Background(), w, "a"), throttle.ErrClosed)
			}
		}
	}},
	"a panic of the handler goes on unchanged": {every, func(t *testing.T, k *kind) {
		mine, l := errors.New("mine"), throttletest.New()
		e := k.one(t, l, &handler{do: func(context.Context, message) { panic(mine) }}, options{exempt: forwarding(k)})
		require.Equal(t, ending{panicked: mine}, e)
		require.Equal(t, k.source || k.outputs, l.Used() == 0, "what it took stays drawn")
	}},
	"a panic of a function of the user draws nothing": {every, func(t *testing.T, k *kind) {
		panics := func() { panic("mine") }
		all := []options{{cost: func(message) int { panics(); return 1 }}}
		if drawing(k) {
			all = append(all, options{tag: func(message) string { panics(); return "" }})
		}
		if denying(k) {
			all = append(all, options{maxWait: time.Second, onDenied: "func", deny: func(message, *throttle.Error) { panics() }})
		}
		for _, o := range all {
			l, h := throttletest.New(), &handler{}
			if o.deny != nil {
				l = throttletest.New(throttletest.Deny(nil))
			}
			require.Equal(t, ending{panicked: "mine"}, k.one(t, l, h, o))
			if !k.source { // what it has read counts as one
				require.Empty(t, h.Taken())
				require.Zero(t, l.Used())
			}
		}
	}},
	"messages come at the rate of a throttle": {drawing, func(t *testing.T, k *kind) {
		l, err := throttle.New(throttle.Limit{Max: 10, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		w, began := k.wrap(k.bare(&handler{}), l, options{}), time.Now()
		for range 3 {
			require.Len(t, (<-k.start(t.Context(), w, numbered(10)...)).answers, 10)
		}
		require.InDelta(t, 2.9, time.Since(began).Seconds(), 0.11)
	}},
}

// A tagged limiter has a limiter for some tags.
type tagged struct {
	throttle.Limiter
	of map[string]throttle.Limiter
}

func (l tagged) ForTag(tag string) throttle.Limiter {
	if of, ok := l.of[tag]; ok {
		return of
	}
	return l.Limiter
}

package wrappers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
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
	other        = errors.New("other")
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
		require.Equal(t, []string{"blue:7 [key blue] map[cost:7 tag:blue] true v\n"}, h.seen)
		if k.sink {
			require.Equal(t, answered("handled"), e)
		} else {
			require.Equal(t, answered("x/k,l#t y"), e)
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
			switch {
			case k.source: // knows it later
			case want == 0:
				require.Empty(t, l.Draws())
				require.Equal(t, answered("handled"), k.one(t, throttletest.New(block), &handler{}, o), "it never waits")
			default:
				method := map[bool]throttletest.Method{false: throttletest.Acquire, true: throttletest.TryAcquire}[k.lanes]
				require.Equal(t, []throttletest.Draw{{Method: method, Cost: want, Granted: want, Used: want}}, l.Draws())
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
		}
		free := options{cost: func(message) int { return 0 }, tag: func(message) string { panic("asked") }}
		if !k.sink {
			require.Equal(t, answered("handled"), k.one(t, throttletest.New(), &handler{}, free), "a free message is not asked for its tag")
		}
	}},
	"a wait has no limit of its own": {every, func(t *testing.T, k *kind) {
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens))
		done := k.start(t.Context(), k.wrap(k.bare(&handler{}), l, options{}), "a")
		time.Sleep(30 * 24 * time.Hour)
		require.Equal(t, 1, l.Waiting())
		close(tokens)
		require.Equal(t, answered("handled"), <-done)
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
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			h := &handler{}
			k.refused(t, <-k.start(ctx, k.wrap(k.bare(h), throttletest.New(block), o), "a"), context.DeadlineExceeded)
			k.unseen(t, h)
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
			k.refused(t, k.one(t, throttletest.New(throttletest.Deny(other)), h, o), other)
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
	"a denied message is answered as chosen, and the handler never sees it": {denying, func(t *testing.T, k *kind) {
		for action, want := range k.actions("throttled") {
			var why *throttle.Error
			o := second(action)
			o.deny = func(_ message, got *throttle.Error) { why = got }
			script := []throttletest.Step{throttletest.Deny(throttled()), throttletest.Deny(throttled()), grant}
			if !k.lanes { // where a message asks without waiting before it waits
				script = script[1:]
			}
			l, h := throttletest.New(script...), &handler{}
			w := k.wrap(k.bare(h), l, o)
			e := <-k.start(t.Context(), w, "blue:7")
			require.True(t, e.returned)
			a := e.answers[0]
			require.Equal(t, want, a.text, action)
			require.Empty(t, h.Taken())
			require.Zero(t, l.Used())
			if action == "nack" {
				require.GreaterOrEqual(t, a.delay, 2*time.Second)
				require.LessOrEqual(t, a.delay, 2501*time.Millisecond)
				require.NotEmpty(t, a.reason)
			}
			if action == "func" {
				require.Equal(t, throttled(), why)
			}
			require.Equal(t, answered("handled"), <-k.start(t.Context(), w, "a"), "the next one is handled")
		}
		e := k.one(t, throttletest.New(throttletest.Deny(nil)), &handler{}, second("nack"))
		require.GreaterOrEqual(t, e.answers[0].delay, 100*time.Millisecond, "not at once")
		require.LessOrEqual(t, e.answers[0].delay, 126*time.Millisecond)
	}},
	"a message waits no longer than it may": {denying, func(t *testing.T, k *kind) {
		for after, want := range map[time.Duration]string{time.Second - 1: "handled", time.Second + 1: "denied/key,"} {
			tokens := make(chan struct{})
			time.AfterFunc(after, func() { close(tokens) })
			o, began := second("func"), time.Now()
			o.deny = func(message, *throttle.Error) {}
			require.Equal(t, answered(want), k.one(t, throttletest.New(throttletest.GrantOn(tokens)), &handler{}, o))
			require.Equal(t, min(after, time.Second), time.Since(began))
			time.Sleep(time.Second)
		}
		l, err := throttle.New(throttle.Limit{Max: 1, Per: 10 * time.Second})
		require.NoError(t, err)
		defer l.Close()
		w, began := k.wrap(k.bare(&handler{}), l, second("nack")), time.Now()
		e := <-k.start(t.Context(), w, "a")
		require.Zero(t, time.Since(began), "the wait is known to be too long")
		require.InDelta(t, 11250, e.answers[0].delay.Milliseconds(), 1751)
		time.Sleep(e.answers[0].delay)
		require.Equal(t, answered("handled"), <-k.start(t.Context(), w, "a"), "delivered again, it is handled")
	}},
	"a cost that can never be granted is denied alone": {denying, func(t *testing.T, k *kind) {
		actions := k.actions("throttled")
		actions["wait"] = actions["nack"]
		if k.sink {
			actions["wait"] = "not handled: " + tooLarge().Error()
			actions["fail"] = "throttled (too_large)"
		}
		for action, want := range actions {
			o := second(action)
			o.deny = func(_ message, why *throttle.Error) { require.Equal(t, throttle.ReasonTooLarge, why.Reason) }
			if action == "wait" {
				o = options{}
			}
			var log bytes.Buffer
			o.log = slog.New(slog.NewTextHandler(&log, nil))
			script := []throttletest.Step{grant, throttletest.Deny(tooLarge()), throttletest.Deny(tooLarge()), grant}
			if !k.lanes {
				script = append(script[:1], script[2:]...)
			}
			h := &handler{}
			w := k.wrap(k.bare(h), throttletest.New(script...), o)
			var got []answer
			for _, id := range []message{"red:7", "blue:7", "red:8"} {
				e := <-k.start(t.Context(), w, id)
				require.True(t, e.returned, "%s: %+v", action, e)
				got = append(got, e.answers...)
			}
			require.Equal(t, []string{"handled", want, "handled"}, ending{answers: got}.texts(), action)
			require.Equal(t, []string{"red:7", "red:8"}, h.Taken())
			if want == "#nack" {
				require.GreaterOrEqual(t, got[1].delay, time.Minute, "not again and again")
			}
			require.Contains(t, log.String(), "can never be granted, allowed: at most 10")
			require.NotContains(t, log.String(), "blue", "nothing of the message")
		}
	}},
	"only drops are exempt": {func(k *kind) bool { return forwarding(k) || k.outputs }, func(t *testing.T, k *kind) {
		nack := output{tags: []string{"U+005C__NACK__"}}
		x := output{value: "x"}
		for _, c := range []struct {
			outputs []output
			exempt  bool
		}{
			{[]output{drop()}, true}, {[]output{drop(), drop()}, true}, {[]output{drop(), x}, false}, {[]output{x, drop()}, false},
			{[]output{x}, false}, {nil, false}, {[]output{nack}, false}, {[]output{drop(), nack}, false},
			{[]output{{"x", nil, append([]string{"t"}, drop().tags...)}}, true}, {[]output{{"x", nil, append(nack.tags, drop().tags...)}}, true},
		} {
			for _, exempt := range []bool{true, false} {
				l, want := throttletest.New(), 1
				switch {
				case k.outputs:
					for want = 0; want < len(c.outputs) && !(exempt && c.exempt); want++ {
					}
					if exempt && !c.exempt && strings.Contains(fmt.Sprint(c.outputs), "DROP") {
						want-- // each drop by itself
					}
				case exempt && c.exempt:
					want = 0
				}
				e := k.one(t, l, &handler{outputs: func(message) []output { return c.outputs }}, options{exempt: exempt})
				require.True(t, e.returned)
				require.Equal(t, want, l.Used(), "%v, exempt: %t", c.outputs, exempt)
			}
		}
		th := quotatest.New(t)
		budget := options{exempt: true, tag: func(message) string { return quotatest.Budget }}
		for range 3 * quotatest.Amount {
			require.True(t, k.one(t, th, &handler{outputs: func(message) []output { return []output{drop()} }}, budget).returned)
		}
		require.Empty(t, quotatest.Used(th), "it costs the tag nothing: neither its total nor its budget")
	}},
	"a denied message names its tag, the reason and the time": {denying, func(t *testing.T, k *kind) {
		th, h, began := quotatest.New(t), &handler{}, time.Now()
		var mu sync.Mutex
		var faults []error
		o := options{tags: "key 1", maxWait: time.Minute, onDenied: "func", deny: func(id message, why *throttle.Error) {
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, quotatest.Fault(why, id.tag()))
		}}
		w := k.wrap(k.bare(h), th, o)
		time.Sleep(time.Second)
		e := <-k.start(t.Context(), w, quotaMessages()...)
		require.Equal(t, time.Second, time.Since(began), "nobody waits for what a tag lacks")
		require.NoError(t, errors.Join(faults...))
		require.Len(t, faults, 20-5-quotatest.Amount)
		require.Len(t, e.answers, 20)
		require.Len(t, h.Taken(), 5+quotatest.Amount)
		require.Equal(t, map[string]int64{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, quotatest.Used(th))
	}},
	"a tag that is held back holds up no other, unless an order is promised": {drawing, func(t *testing.T, k *kind) {
		th, h := quotatest.New(t), &handler{}
		w := k.wrap(k.bare(h), th, options{tags: "key 1"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []<-chan ending
		if k.batches {
			all = append(all, k.start(ctx, w, quotaMessages()...))
		} else {
			for _, id := range quotaMessages() {
				all = append(all, k.start(ctx, w, id))
			}
		}
		time.Sleep(time.Hour)
		want := map[string]int64{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}
		if k.batches && (!k.sink || k.name == inOrder) {
			want = map[string]int64{quotatest.Free: 1, quotatest.Budget: 1}
		}
		require.Equal(t, want, quotatest.Used(th))
		require.True(t, k.outputs || int64(len(h.Taken())) == want[quotatest.Free]+want[quotatest.Budget])
		cancel()
		handled := 0
		for _, done := range all {
			for _, a := range (<-done).answers {
				if a.text == "handled" {
					handled++
				}
			}
		}
		require.LessOrEqual(t, handled, len(h.Taken()), "what waits has no answer, so that it comes again")
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
	"whatever a message makes of its tag, it draws for one": {func(k *kind) bool { return denying(k) && !k.tags() }, func(t *testing.T, k *kind) {
		for name, tag := range quotatest.Hostile() {
			th := quotatest.New(t)
			var denied []*throttle.Error
			o := options{maxWait: time.Second, onDenied: "func", tag: func(message) string { return tag }}
			o.deny = func(_ message, why *throttle.Error) { denied = append(denied, why) }
			w := k.wrap(k.bare(&handler{}), th, o)
			for range quotatest.Amount + 1 {
				require.True(t, (<-k.start(t.Context(), w, "a")).returned)
			}
			require.Len(t, denied, 1)
			require.Equal(t, throttle.ReasonBudget, denied[0].Reason)
			require.Empty(t, denied[0].Tag, "no error repeats it")
			require.Less(t, len(denied[0].Error()), 200)
			require.Equal(t, map[string]int64{"": quotatest.Amount}, quotatest.Used(th), name)
		}
	}},
	"wrong options are found when the handler is wrapped": {denying, func(t *testing.T, k *kind) {
		actions, bound := "Nack, Drop, Forward or DenyFunc", "WithMaxWait"
		if k.sink {
			actions, bound = "Nack, Fallback, Fail, Drop or DenyFunc", "WithMaxWait or WithBatchBudget"
		}
		faults := map[string]options{
			"": {}, "OnDenied is Wait, allowed with " + bound + ": " + actions: {maxWait: 1},
			"OnDenied is Nack, allowed without " + bound + ": Wait":     {onDenied: "nack"},
			"OnDenied is Drop, allowed without " + bound + ": Wait":     {onDenied: "drop"},
			"OnDenied is DenyFunc, allowed without " + bound + ": Wait": {onDenied: "func"},
			"WithMaxWait is -1s, allowed: 0 (no limit) or more":         {maxWait: -time.Second, onDenied: "nack"},
			"function of DenyFunc is nil, allowed: a function":          second("no func"),
		}
		if !k.sink {
			for _, tags := range []string{"", "a,", "U+005C__DROP__", "U+005C__NACK__"} {
				list := strings.Split(tags, ",")
				faults[fmt.Sprintf("tags of Forward are %q, allowed: one or more, none empty, \"U+005C__DROP__\" or \"U+005C__NACK__\"", list)] =
					second("forward " + tags)
			}
		}
		for fault, o := range faults {
			err := k.check(o)
			for _, l := range []throttle.Limiter{nil, throttletest.New()} { // also without a limit
				wrap := func() { k.wrap(k.bare(&handler{}), l, o) }
				if fault == "" {
					require.NoError(t, err)
					require.NotPanics(t, wrap)
					continue
				}
				require.ErrorContains(t, err, fault)
				require.PanicsWithError(t, err.Error(), wrap)
			}
		}
		for action := range k.actions("") {
			require.NoError(t, k.check(second(action)))
		}
		err := k.check(options{maxWait: -1, budget: -2})
		require.Len(t, strings.Split(err.Error(), "\n"), map[bool]int{false: 2, true: 3}[k.sink], "all at once: %s", err)
	}},
}

// actions are those that a kind has, with what they answer for the message blue:7.
func (k *kind) actions(failure string) map[string]string {
	if k.sink {
		return map[string]string{
			"nack": "#nack", "drop": "handled", "func": "denied/key,blue", "fallback": "fallback", "fail": failure + " (limit)",
		}
	}
	return map[string]string{"nack": "#nack", "drop": "#drop", "func": "denied/key,blue", "forward late,x": "blue:7/key,blue#late,x"}
}

// quotaMessages are five of each tag of package quotatest, in turn.
func quotaMessages() (all []message) {
	for i := range 5 {
		for _, tag := range []string{quotatest.Free, quotatest.Budget, quotatest.Total, quotatest.Paused} {
			all = append(all, message(fmt.Sprint(tag, ":", i)))
		}
	}
	return all
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

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
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestDenials(t *testing.T) { try(t, denials) }

// denials are the promises about messages without tokens, and about the options that lead there.
var denials = map[string]promise{
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
		nack := output{tags: []string{mapsdk.NACK}}
		x := output{value: "x"}
		for _, c := range []struct {
			outputs []output
			exempt  bool
		}{
			{[]output{drop()}, true},
			{[]output{drop(), drop()}, true},
			{[]output{drop(), x}, false},
			{[]output{x, drop()}, false},
			{[]output{x}, false},
			{nil, false},
			{[]output{nack}, false},
			{[]output{drop(), nack}, false},
			{[]output{{"x", nil, append([]string{"t"}, drop().tags...)}}, true},
			{[]output{{"x", nil, append(nack.tags, drop().tags...)}}, true},
		} {
			for _, exempt := range []bool{true, false} {
				l, want := throttletest.New(), 1
				if exempt && c.exempt {
					want = 0
				} else if k.outputs {
					want = len(c.outputs)
					if exempt && strings.Contains(fmt.Sprint(c.outputs), mapsdk.DROP) {
						want-- // each drop by itself
					}
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
			for _, tags := range []string{"", "a,", "U+005C__DROP__", mapsdk.NACK} {
				fault := fmt.Sprintf("tags of Forward are %q, allowed: one or more, none empty, %q or %q", strings.Split(tags, ","), mapsdk.DROP, mapsdk.NACK)
				faults[fault] = second("forward " + tags)
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

// actions returns the actions of a kind, and their answers for the message blue:7.
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

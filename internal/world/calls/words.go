package calls

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// actions are the commands without a result.
var actions = map[string]func(o *Order){
	"service": func(o *Order) {
		if o.service.begin(); len(o.Words) > 0 {
			o.Answer(o.Word(""))
		}
	},
	"limit": func(o *Order) {
		var l throttle.Limit
		o.Fill(&l, nil)
		opts := []throttle.Option{
			throttle.WithName(o.Value("name")), throttle.WithObserver(o.watcher), throttle.WithLogger(slog.New(slog.DiscardHandler)),
		}
		if d := o.Value("maxretryafter"); d != "" {
			opts = append(opts, throttle.WithMaxRetryAfter(o.Time(d)))
		}
		if o.More != "" {
			opts = append(opts, throttle.WithQuotas(o.Quotas()))
		}
		th, err := throttle.New(l, opts...)
		require.NoError(o.T, err, o.Line)
		o.add(o.Word("limit"), th)
	},
	"slots": func(o *Order) {
		s, err := throttle.NewInFlight(o.Count(""))
		require.NoError(o.T, err, o.Line)
		o.add("slots", s)
	},
	"script": func(o *Order) {
		var steps []throttletest.Step
		closed, name := o.Is("closed"), cmp.Or(o.Value("as"), "script")
		for _, w := range o.Rest() {
			reason, after, denies := strings.Cut(w, "/")
			step, ok := map[string]throttletest.Step{
				"grant": throttletest.Grant(), "block": throttletest.Block(), "deny": throttletest.Deny(nil), "pass": throttletest.GrantOn(o.gate),
			}[w]
			if denies {
				step, ok = throttletest.Deny(&throttle.Error{Reason: throttle.Reason(reason), RetryAfter: o.Time(after)}), true
			}
			require.True(o.T, ok, "%s: %s", o.Line, w)
			steps = append(steps, step)
		}
		if o.script = throttletest.New(steps...); closed {
			o.script.Close()
		}
		o.add(name, o.script)
	},
	"pass": func(o *Order) {
		for range o.Count("1") {
			o.gate <- struct{}{}
		}
	},
	"all": func(o *Order) {
		var parts []throttle.Limiter
		for _, w := range o.Rest() {
			name, perCall := strings.CutSuffix(w, "/call")
			l := o.limiter(name)
			if perCall {
				l = throttle.PerCall(l)
			}
			parts = append(parts, l)
		}
		o.add("all", throttle.All(parts...))
	},
	"listener": func(o *Order) {
		l := listener{Limiter: throttle.All(), name: "told", told: o.told, adapts: o.Is("adapts")}
		if o.add("listener", l); o.Is("tags") {
			o.add("listener", tagged{l})
		}
	},
	"late": func(o *Order) {
		l := late{Limiter: throttle.All(), by: o.Time(o.Word(""))}
		if o.limits[o.limit] != nil {
			l.Limiter = o.limits[o.limit]
		}
		o.add("late", l)
	},
	"none": func(o *Order) { o.add("none", nil) },
	"client": func(o *Order) {
		l, opts := o.Limiter(), o.options()
		o.Client(httpthrottle.NewTransport(&o.service, l, opts...))
	},
	"call": func(o *Order) { o.begin() },
	"cancel": func(o *Order) {
		name, why := o.Word(""), errors.New(o.Word("gone"))
		for _, c := range o.calls[name] {
			c.stop(why)
		}
	},
	"close": func(o *Order) { o.open().close() },
	"pause": func(o *Order) {
		tag, until := strings.Trim(o.Word(""), "-"), time.Now().Add(o.Time(o.Word("")))
		_, err := as[*throttle.Throttle](o, o.limits[o.limit]).Pause(o.T.Context(), until, "maintenance", throttle.PauseTag(tag))
		require.NoError(o.T, err, o.Line)
	},
}

// questions are the commands with a result.
var questions = map[string]func(o *Order) string{
	"get": func(o *Order) string {
		c := o.begin()
		<-c.done
		return o.ended(c)
	},
	"result": func(o *Order) string {
		return each(o.calls[o.Word("")], o.ended)
	},
	"read": func(o *Order) string {
		c := o.open()
		before := len(c.got)
		c.take(int(o.Number(o.Word("-1"))))
		words := []string{c.got[before:]}
		if c.read != nil {
			words = append(words, c.read.Error())
		}
		return strings.Join(append(words, took(time.Since(c.began))...), " ")
	},
	"write": func(o *Order) string {
		c, text := o.open(), o.Word("")
		_, err := as[io.Writer](o, c.res.Body).Write([]byte(text))
		require.NoError(o.T, err, o.Line)
		seen := o.service.attempts()
		return seen[len(seen)-1].answer.written
	},
	"got": func(o *Order) string {
		what := o.Word("text")
		if what == "text" {
			return o.last.got
		}
		if field, ok := strings.CutPrefix(what, "error."); ok {
			return cmp.Or(o.last.fault(field), "-")
		}
		return cmp.Or(o.last.res.Header.Get(what), "-")
	},
	"text":    func(o *Order) string { return fmt.Sprint(o.last.err) },
	"refusal": func(o *Order) string { return o.Tell(failure[*httpthrottle.RefusedError](o).Refusal) },
	"error":   func(o *Order) string { return o.Tell(*failure[*throttle.Error](o)) },
	"by": func(o *Order) string {
		by := failure[*throttle.Error](o).By()
		for name, l := range o.limits {
			if by != nil && l == by {
				return name
			}
		}
		return "none"
	},
	"times": func(o *Order) string {
		return each(o.service.attempts(), func(a *attempt) string { return a.at.String() })
	},
	"gaps": func(o *Order) string {
		all, from := o.service.attempts(), o.Count("0")+1
		var words []string
		for i := from; i < len(all); i++ {
			words = append(words, (all[i].at - all[i-1].at).String())
		}
		return strings.Join(words, " ")
	},
	"apart": func(o *Order) string {
		what, different := o.Word("at"), map[string]bool{}
		for _, a := range o.service.attempts() {
			different[a.field(what)] = true
		}
		return strconv.Itoa(len(different))
	},
	"sent": func(o *Order) string {
		what, size := o.Word(""), o.Is("length")
		return each(o.service.attempts(), func(a *attempt) string {
			if size {
				return strconv.Itoa(len(a.field(what)))
			}
			return cmp.Or(a.field(what), "-")
		})
	},
	"answers": func(o *Order) string {
		return each(o.service.attempts(), func(a *attempt) string {
			if a.answer == nil {
				return "none"
			}
			return a.answer.state()
		})
	},
	"draws":    func(o *Order) string { return tell(o, o.scripted().Draws()) },
	"used":     func(o *Order) string { return strconv.Itoa(o.scripted().Used()) },
	"waiting":  func(o *Order) string { return strconv.Itoa(o.scripted().Waiting()) },
	"refusals": func(o *Order) string { return tell(o, o.notes.refused) },
	"accepted": func(o *Order) string { return tell(o, o.notes.accepted) },
	"observed": func(o *Order) string { return tell(o, o.watcher.waits) },
	"over":     func(o *Order) string { return tell(o, o.watcher.ends) },
	"told":     func(o *Order) string { return cmp.Or(strings.Join(o.told.words, " "), "none") },
	"log": func(o *Order) string {
		what := o.Word("")
		return each(o.journal.lines, func(line map[string]string) string { return line[what] })
	},
	"stats": func(o *Order) string {
		return tell(o, as[interface{ WaitStats() []throttle.WaitStats }](o, o.named()).WaitStats())
	},
	"status": func(o *Order) string {
		l := o.named()
		if s, ok := l.(*throttle.InFlight); ok {
			return o.Tell(s.Status())
		}
		return o.Tell(as[*throttle.Throttle](o, l).Status())
	},
	"used-by": func(o *Order) string {
		tags := as[*throttle.Throttle](o, o.limits[o.limit]).Status().Tags
		return each(tags, func(s throttle.TagStatus) string { return fmt.Sprint(s.Tag, "=", s.Used) })
	},
	"take": func(o *Order) string {
		l := o.named()
		if _, ok := l.TryAcquire(1); !ok {
			return "no"
		}
		if _, ok := l.(*throttle.InFlight); ok {
			o.taken++
		}
		return "ok"
	},
}

// took returns a time as a word, if there is any.
func took(d time.Duration) []string {
	if d == 0 {
		return nil
	}
	return []string{d.Round(time.Microsecond).String()}
}

// each returns a word for each of some values, or none.
func each[T any](all []T, word func(T) string) string {
	words := make([]string, len(all))
	for i, one := range all {
		words[i] = word(one)
	}
	return cmp.Or(strings.Join(words, " "), "none")
}

// tell returns the same fields of some values.
func tell[T any](o *Order, all []T) string {
	paths := o.Rest()
	return each(all, func(one T) string {
		of := scenario.NewOrder(o.T, o.Line, "")
		of.Words = append(of.Words, paths...)
		return of.Tell(one)
	})
}

// as returns a value as a type that it must have.
func as[T any](o *Order, v any) T {
	is, ok := v.(T)
	require.True(o.T, ok, "%s: %T", o.Line, v)
	return is
}

// failure returns an error of the call that was looked at last.
func failure[E error](o *Order) E {
	e, ok := errors.AsType[E](o.last.err)
	require.True(o.T, ok, "%s: %v", o.Line, o.last.err)
	return e
}

// add makes a limiter known, and takes it for the next clients.
func (o *Order) add(name string, l throttle.Limiter) {
	o.limits[name], o.limit = l, name
}

// named returns the limiter that the next word names, or the newest.
func (o *Order) named() throttle.Limiter {
	if len(o.Words) > 0 && o.limits[o.Words[0]] != nil {
		return o.limits[o.Word("")]
	}
	return o.limits[o.limit]
}

// scripted returns the script that the next word names, or the newest.
func (o *Order) scripted() *throttletest.Limiter {
	if len(o.Words) > 0 {
		if s, ok := o.limits[o.Words[0]].(*throttletest.Limiter); ok {
			o.Word("")
			return s
		}
	}
	return o.script
}

// limiter returns the limiter of a name; nil for none.
func (o *Order) limiter(name string) throttle.Limiter {
	if name == "none" {
		return nil
	}
	require.Contains(o.T, o.limits, name, o.Line)
	return o.limits[name]
}

// begin begins a call in the background.
func (o *Order) begin() *call {
	client := o.Value("client")
	if o.clients[client] == nil {
		o.clients[client] = httpthrottle.NewTransport(&o.service, o.Limiter(), o.options()...)
	}
	c := o.newCall(o.clients[client])
	go c.do(o.clients[client])
	return c
}

// open returns the call whose answer the next word names.
func (o *Order) open() *call {
	all := o.calls[o.Word("")]
	require.NotEmpty(o.T, all, o.Line)
	c := all[len(all)-1]
	require.True(o.T, c.isOver() && c.res != nil, "%s: it has no answer", o.Line)
	return c
}

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
var actions = map[string]func(o *order){
	"service": func(o *order) {
		if o.service.begin(); len(o.Words) > 0 {
			o.answer(o.Word(""))
		}
	},
	"limit": func(o *order) {
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
	"slots": func(o *order) {
		s, err := throttle.NewInFlight(o.Count(""))
		require.NoError(o.T, err, o.Line)
		o.add("slots", s)
	},
	"script": func(o *order) {
		var steps []throttletest.Step
		closed := o.Is("closed")
		for _, w := range o.Rest() {
			steps = append(steps, map[string]throttletest.Step{
				"grant": throttletest.Grant(), "block": throttletest.Block(), "deny": throttletest.Deny(nil), "pass": throttletest.GrantOn(o.gate),
			}[w])
		}
		if o.script = throttletest.New(steps...); closed {
			o.script.Close()
		}
		o.add("script", o.script)
	},
	"pass": func(o *order) {
		for range o.Count("1") {
			o.gate <- struct{}{}
		}
	},
	"all": func(o *order) {
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
	"listener": func(o *order) {
		l := listener{Limiter: throttle.All(), name: "told", told: o.told, adapts: o.Is("adapts")}
		if o.add("listener", l); o.Is("tags") {
			o.add("listener", tagged{l})
		}
	},
	"late": func(o *order) {
		l := late{Limiter: throttle.All(), by: o.Time(o.Word(""))}
		if o.limits[o.limit] != nil {
			l.Limiter = o.limits[o.limit]
		}
		o.add("late", l)
	},
	"none": func(o *order) { o.add("none", nil) },
	"client": func(o *order) {
		limit, opts := cmp.Or(o.Value("limit"), o.limit, "none"), o.options()
		o.clients[o.Word("")] = httpthrottle.NewTransport(&o.service, o.limiter(limit), opts...)
	},
	"call": func(o *order) { o.begin() },
	"cancel": func(o *order) {
		name, why := o.Word(""), errors.New(o.Word("gone"))
		for _, c := range o.calls[name] {
			c.stop(why)
		}
	},
	"close": func(o *order) { o.open().close() },
	"pause": func(o *order) {
		tag, until := o.Word(""), time.Now().Add(o.Time(o.Word("")))
		_, err := as[*throttle.Throttle](o, o.limits[o.limit]).Pause(o.T.Context(), until, "maintenance", throttle.PauseTag(tag))
		require.NoError(o.T, err, o.Line)
	},
}

// questions are the commands with a result.
var questions = map[string]func(o *order) string{
	"get": func(o *order) string {
		c := o.begin()
		<-c.done
		return o.ended(c)
	},
	"result": func(o *order) string {
		return each(o.calls[o.Word("")], o.ended)
	},
	"read": func(o *order) string {
		c := o.open()
		before := len(c.got)
		c.take(int(o.Number(o.Word("-1"))))
		words := []string{c.got[before:]}
		if c.read != nil {
			words = append(words, c.read.Error())
		}
		return strings.Join(append(words, took(time.Since(c.began))...), " ")
	},
	"write": func(o *order) string {
		c, text := o.open(), o.Word("")
		_, err := as[io.Writer](o, c.res.Body).Write([]byte(text))
		require.NoError(o.T, err, o.Line)
		seen := o.service.attempts()
		return seen[len(seen)-1].answer.written
	},
	"text":    func(o *order) string { return fmt.Sprint(o.err) },
	"refusal": func(o *order) string { return o.Tell(failure[*httpthrottle.RefusedError](o).Refusal) },
	"error":   func(o *order) string { return o.Tell(*failure[*throttle.Error](o)) },
	"by": func(o *order) string {
		by := failure[*throttle.Error](o).By()
		for name, l := range o.limits {
			if by != nil && l == by {
				return name
			}
		}
		return "none"
	},
	"times": func(o *order) string {
		return each(o.service.attempts(), func(a *attempt) string { return a.at.String() })
	},
	"gaps": func(o *order) string {
		all, from := o.service.attempts(), o.Count("0")+1
		var words []string
		for i := from; i < len(all); i++ {
			words = append(words, (all[i].at - all[i-1].at).String())
		}
		return strings.Join(words, " ")
	},
	"apart": func(o *order) string {
		what, different := o.Word("at"), map[string]bool{}
		for _, a := range o.service.attempts() {
			different[a.field(what)] = true
		}
		return strconv.Itoa(len(different))
	},
	"sent": func(o *order) string {
		what, size := o.Word(""), o.Is("length")
		return each(o.service.attempts(), func(a *attempt) string {
			if size {
				return strconv.Itoa(len(a.field(what)))
			}
			return cmp.Or(a.field(what), "-")
		})
	},
	"answers": func(o *order) string {
		return each(o.service.attempts(), func(a *attempt) string {
			if a.answer == nil {
				return "none"
			}
			return a.answer.state()
		})
	},
	"draws":    func(o *order) string { return tell(o, o.script.Draws()) },
	"used":     func(o *order) string { return strconv.Itoa(o.script.Used()) },
	"waiting":  func(o *order) string { return strconv.Itoa(o.script.Waiting()) },
	"refusals": func(o *order) string { return tell(o, o.notes.refused) },
	"accepted": func(o *order) string { return tell(o, o.notes.accepted) },
	"observed": func(o *order) string { return tell(o, o.watcher.waits) },
	"over":     func(o *order) string { return tell(o, o.watcher.ends) },
	"told":     func(o *order) string { return cmp.Or(strings.Join(o.told.words, " "), "none") },
	"log": func(o *order) string {
		what := o.Word("")
		return each(o.journal.lines, func(line map[string]string) string { return line[what] })
	},
	"stats": func(o *order) string {
		return tell(o, as[interface{ WaitStats() []throttle.WaitStats }](o, o.named()).WaitStats())
	},
	"status": func(o *order) string {
		l := o.named()
		if s, ok := l.(*throttle.InFlight); ok {
			return o.Tell(s.Status())
		}
		return o.Tell(as[*throttle.Throttle](o, l).Status())
	},
	"used-by": func(o *order) string {
		tags := as[*throttle.Throttle](o, o.limits[o.limit]).Status().Tags
		return each(tags, func(s throttle.TagStatus) string { return fmt.Sprint(s.Tag, "=", s.Used) })
	},
	"take": func(o *order) string {
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
func tell[T any](o *order, all []T) string {
	paths := o.Rest()
	return each(all, func(one T) string {
		of := scenario.NewOrder(o.T, o.Line, "")
		of.Words = append(of.Words, paths...)
		return of.Tell(one)
	})
}

// as returns a value as a type that it must have.
func as[T any](o *order, v any) T {
	is, ok := v.(T)
	require.True(o.T, ok, "%s: %T", o.Line, v)
	return is
}

// failure returns an error of the call that was looked at last.
func failure[E error](o *order) E {
	e, ok := errors.AsType[E](o.err)
	require.True(o.T, ok, "%s: %v", o.Line, o.err)
	return e
}

// add makes a limiter known, and takes it for the next clients.
func (o *order) add(name string, l throttle.Limiter) {
	o.limits[name], o.limit = l, name
}

// named returns the limiter that the next word names, or the newest.
func (o *order) named() throttle.Limiter {
	if len(o.Words) > 0 && o.limits[o.Words[0]] != nil {
		return o.limits[o.Word("")]
	}
	return o.limits[o.limit]
}

// limiter returns the limiter of a name; nil for none.
func (o *order) limiter(name string) throttle.Limiter {
	if name == "none" {
		return nil
	}
	require.Contains(o.T, o.limits, name, o.Line)
	return o.limits[name]
}

// begin begins a call in the background.
func (o *order) begin() *call {
	name, client := o.Value("as"), o.Value("client")
	if o.clients[client] == nil {
		o.clients[client] = httpthrottle.NewTransport(&o.service, o.limiter(cmp.Or(o.limit, "none")), o.options()...)
	}
	c := o.newCall()
	o.calls[name], o.all = append(o.calls[name], c), append(o.all, c)
	go c.do(o.clients[client])
	return c
}

// open returns the call whose answer the next word names.
func (o *order) open() *call {
	all := o.calls[o.Word("")]
	require.NotEmpty(o.T, all, o.Line)
	return all[len(all)-1]
}

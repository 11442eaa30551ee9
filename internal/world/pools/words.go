package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// actions are the commands without a result.
var actions = map[string]func(o *order){
	"limit": func(o *order) {
		o.limit = throttle.Limit{}
		if o.limit = o.limits(); o.More != "" {
			q := o.Quotas()
			o.quotas = &q
		}
	},
	"pod": func(o *order) { o.join(o.Word("")) },
	"pods": func(o *order) {
		n := o.Count("")
		words, set := o.Rest(), o.Set
		for i := range n {
			next := &order{o.pool, scenario.NewOrder(o.T, o.Line, "")}
			next.Words = append(next.Words, words...)
			maps.Copy(next.Set, set)
			next.join(fmt.Sprint("p", i))
			require.Zero(o.T, len(next.Words)+len(next.Set), "%s: what are %v %v?", o.Line, next.Words, next.Set)
		}
		o.Set = nil
	},
	"callers": func(o *order) {
		name, how := o.Word(""), o.caller()
		o.crews[name] = o.newCrew(how, o.Count("1"))
	},
	"arrivals": func(o *order) {
		name, how := o.Word(""), o.caller()
		o.crews[name] = o.newArrivals(how, o.Number(o.Word("")))
	},
	"service": func(o *order) {
		name, rate := o.Word(""), o.Number(o.Word(""))
		if o.services[name] == nil {
			o.services[name] = &service{at: time.Now()}
		}
		o.services[name].can(rate, o.Is("overloaded"))
	},
	"file": func(o *order) {
		some, limit := o.who(o.Word("")), o.Count("")
		for _, one := range some {
			one.file.Change(limit)
		}
	},
	"mark": func(o *order) { o.mark = o.figures()()[0] },
	"stop": func(o *order) {
		word := o.Word("")
		if c, ok := o.crews[word]; ok {
			c.stop()
			return
		}
		for _, one := range o.who(word) {
			o.crews[one.name].stop()
		}
	},
	"kill": func(o *order) {
		o.each(func(one *pod) {
			o.crews[one.name].stop()
			one.line.Dead.Store(true)
			one.line.Deaf.Store(true)
			one.gone = true
		})
	},
	"leave": func(o *order) {
		o.each(func(one *pod) {
			o.crews[one.name].stop()
			one.gone = true
			require.NoError(o.T, one.limiter().Close(), o.Line)
		})
	},
	"leaves": func(o *order) {
		o.each(func(one *pod) {
			o.crews[one.name].stop()
			one.gone = true
			go func() { _ = one.limiter().Close() }()
		})
	},
	"cut":  func(o *order) { o.each(func(one *pod) { one.line.Cut.Store(true) }) },
	"hang": func(o *order) { o.each(func(one *pod) { one.line.Hang.Store(true) }) },
	"deaf": func(o *order) { o.each(func(one *pod) { one.line.Deaf.Store(true) }) },
	"mend": func(o *order) { o.each(func(one *pod) { one.line.Mend() }) },
	"store": func(o *order) {
		o.changed = true
		switch o.Word("") {
		case "forgets":
			o.store.Wipe()
			o.store.Skew(o.Time(o.Value("skew")))
		case "unsure":
			o.store.Forgets = true
		case "copies":
			o.failOver = o.store.Snapshot()
		case "returns":
			o.failOver()
		}
	},
	"settle": func(o *order) { o.permits[o.Word("")].Settle(o.Count("")) },
	"cancel": func(o *order) { o.permits[o.Word("")].Cancel() },
	"told": func(o *order) {
		some, d, reason := o.who(o.Word("")), o.Time(o.Word("")), strings.Join(o.Rest(), " ")
		for _, one := range some {
			one.limiter().RetryAfter(time.Now().Add(d), reason)
		}
	},
}

// figures are what pods have a number of.
var figures = map[string]func(p *pool, one *pod) float64{
	"share": func(_ *pool, one *pod) float64 { return one.m.View().Share.Fraction() },
	"ceiling": func(_ *pool, one *pod) float64 {
		st := one.rate.Status()
		return cmp.Or(st.Lease.Ceiling, float64(st.Limit.Max))
	},
	"granted":  func(p *pool, one *pod) float64 { return float64(p.crews[one.name].granted.Load()) },
	"inuse":    func(_ *pool, one *pod) float64 { return float64(one.slots.Status().InUse) },
	"tokens":   func(_ *pool, one *pod) float64 { return one.rate.Status().Tokens },
	"reserves": func(_ *pool, one *pod) float64 { return float64(one.line.Reserves.Load()) },
	"syncs":    func(_ *pool, one *pod) float64 { return float64(one.line.Syncs.Load()) },
	"inforce": func(_ *pool, one *pod) float64 {
		v := protocol.View(one.m.View())
		o := v.Overview()
		return float64(o.Max) / o.Per.Seconds()
	},
	"cuts":   func(_ *pool, one *pod) float64 { return float64(one.m.View().Cuts) },
	"part":   func(_ *pool, one *pod) float64 { return one.rate.Status().Backoff.Part },
	"pushed": func(_ *pool, one *pod) float64 { return float64(one.line.Pushed.Load()) },
}

// questions are the commands with a result; those of figures are added to them.
var questions = map[string]func(o *order) string{
	"total": func(o *order) string {
		sum := 0.0
		for _, f := range o.figures()() {
			sum += f
		}
		return rounded(sum)
	},
	"apart": func(o *order) string {
		all := o.figures()()
		return rounded(slices.Max(all) - slices.Min(all))
	},
	"gain": func(o *order) string {
		d, now := o.Time(o.Word("")), o.figures()
		before := now()
		time.Sleep(d)
		after := now()
		for i := range after {
			after[i] -= before[i]
		}
		return rounded(after...)
	},
	"above": func(o *order) string {
		all := o.figures()()
		for i := range all {
			all[i] -= o.mark
		}
		return rounded(all...)
	},
	"rate": func(o *order) string {
		d := o.Time(o.Word(""))
		all := o.drawn(d, o.Rest())
		for i := range all {
			all[i] /= d.Seconds()
		}
		return rounded(all...)
	},
	"drawn": func(o *order) string {
		names := o.Rest()
		if d, err := time.ParseDuration(names[0]); err == nil {
			return rounded(o.drawn(d, names[1:])...)
		}
		words := make([]string, len(names))
		for i, name := range names {
			words[i] = scenario.Rounded(o.count(name))
		}
		return strings.Join(words, " ")
	},
	"closest": func(o *order) string { return o.crews[o.Word("")].gap().String() },
	"view": func(o *order) string {
		some, paths := o.who(o.Word("")), o.Rest()
		return o.fields(some, paths, func(one *pod) any { return one.m.View() })
	},
	"status": func(o *order) string {
		some, paths := o.who(o.Word("")), o.Rest()
		return o.fields(some, paths, func(one *pod) any {
			if one.slots != nil {
				return one.slots.Status()
			}
			return one.rate.Status()
		})
	},
	"throttled": func(o *order) string {
		return o.tellEach(func(one *pod) string {
			th, ok := one.limiter().Throttled()
			if !ok {
				return "no"
			}
			return string(th.Reason)
		})
	},
	"take": func(o *order) string {
		as := o.Value("as")
		some, n := o.who(o.Word("")), o.Count("1")
		var words []string
		for _, one := range some {
			p, ok := one.limiter().TryAcquire(n)
			o.permits[as] = p
			words = append(words, map[bool]string{true: "ok", false: "no"}[ok])
		}
		return strings.Join(words, " ")
	},
	"get": func(o *order) string {
		one, tag := o.one()
		n, within, as := o.Count("1"), o.Value("within"), o.Value("as")
		ctx, cancel := context.WithCancel(o.T.Context())
		if within != "" {
			ctx, cancel = context.WithTimeout(o.T.Context(), o.Time(within))
		}
		defer cancel()
		began := time.Now()
		p, err := throttle.ForTags(one.limiter(), tag).Acquire(ctx, n)
		o.permits[as] = p
		return o.ended(err, time.Since(began))
	},
	"charge": func(o *order) string {
		one, tag := o.one()
		return o.ended(throttle.Charge(throttle.ForTags(one.limiter(), tag), o.Count("")), 0)
	},
	"pause":  pause,
	"resume": resume,
	"paused": func(o *order) string {
		word, tag := o.Word(""), o.Word("")
		some := o.who(word)
		var words []string
		for _, one := range some {
			p, ok := one.limiter().Paused(tag)
			switch {
			case !ok:
				words = append(words, "no")
			case p.Until.IsZero():
				words = append(words, "forever")
			default:
				words = append(words, time.Until(p.Until).Round(time.Microsecond).String())
			}
		}
		return strings.Join(words, " ")
	},
	"receipts": func(o *order) string { return o.Tell(o.receipts) },
	"newer":    func(o *order) string { return fmt.Sprint(o.receipts.Generation > o.earlier.Generation) },
	"now":      func(o *order) string { return fmt.Sprint(o.crews[o.Word("")].now.Load()) },
	"most":     func(o *order) string { return fmt.Sprint(o.crews[o.Word("")].most.Swap(0)) },
	"fair":     func(o *order) string { return scenario.Rounded(o.crews[o.Word("")].fair()) },
	"alike": func(o *order) string {
		got, index := o.crews[o.Word("")].alike()
		return rounded(float64(got), index)
	},
	"override": func(o *order) string {
		o.changed = true
		if len(o.Set) == 0 {
			return o.ended(protocol.ClearOverride(o.T.Context(), o.store, name0), 0)
		}
		var over protocol.Override
		o.Fill(&over, nil)
		return o.ended(protocol.SaveOverride(o.T.Context(), o.store, name0, over), 0)
	},
	"overridden": func(o *order) string {
		over, err := protocol.LoadOverride(o.T.Context(), o.store, name0)
		if err != nil {
			o.Rest()
			return o.ended(err, 0)
		}
		return o.TellIf(over != protocol.Override{}, over)
	},
	"clearfile": func(o *order) string {
		before, err := protocol.ClearFile(o.T.Context(), o.store, name0)
		return fmt.Sprint(o.ended(err, 0), " ", before.Max)
	},
	"filed": func(o *order) string {
		return o.tellEach(func(one *pod) string { return fmt.Sprint(one.file.Used().Max) })
	},
	"quota": func(o *order) string {
		tag := o.Word("")
		delete(o.meters, tag) // it has been judged by another total
		if len(o.Set) == 0 {
			return o.ended(protocol.SaveQuota(o.T.Context(), o.store, name0, tag, nil, false), 0)
		}
		q := o.Quota()
		return o.ended(protocol.SaveQuota(o.T.Context(), o.store, name0, tag, &q, false), 0)
	},
	"forgive": func(o *order) string {
		return o.ended(protocol.ForgiveDebt(o.T.Context(), o.store, name0, "a wrong number", "ann"), 0)
	},
}

// figures returns the figure that the next word names, of the pods of the word after it.
func (o *order) figures() func() []float64 {
	figure, some := figures[o.Word("")], o.who(o.Word(""))
	require.NotNil(o.T, figure, o.Line)
	return func() (all []float64) {
		for _, one := range some {
			all = append(all, figure(o.pool, one))
		}
		return all
	}
}

// fields tells the same fields of several pods.
func (o *order) fields(some []*pod, paths []string, of func(one *pod) any) string {
	var words []string
	for _, one := range some {
		o.Words = append([]string(nil), paths...)
		words = append(words, o.Tell(of(one)))
	}
	return strings.Join(words, " ")
}

// ended says what became of a call, and how long it took if that is not nothing.
func (o *order) ended(err error, took time.Duration) string {
	end := "ok"
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		end = string(e.Reason)
	} else if err != nil {
		end = err.Error()
	}
	if took > 0 {
		end += " " + took.Round(time.Microsecond).String()
	}
	return end
}

// drawn returns how many tokens or calls come from now on.
func (o *order) drawn(d time.Duration, names []string) []float64 {
	all := make([]float64, len(names))
	for i, name := range names {
		all[i] = -o.count(name)
	}
	time.Sleep(d)
	for i, name := range names {
		all[i] += o.count(name)
	}
	return all
}

// rounded returns numbers as words.
func rounded(all ...float64) string {
	words := make([]string, len(all))
	for i, f := range all {
		words[i] = scenario.Rounded(f)
	}
	return strings.Join(words, " ")
}

func pause(o *order) string {
	who, word, tag, wait := o.Word(""), o.Word(""), o.Value("tag"), o.Value("wait")
	until := time.Time{}
	if word != "" {
		until = time.Now().Add(o.Time(word))
	}
	const reason = "the service is down"
	var opts []throttle.PauseOption
	if tag != "" {
		opts = append(opts, throttle.PauseTag(tag))
	}
	if wait != "" {
		opts = append(opts, throttle.WaitForReceipts(o.Time(wait)))
	}
	began := time.Now()
	receipts, err := o.who(who)[0].limiter().Pause(o.T.Context(), until, reason, opts...)
	o.earlier, o.receipts = o.receipts, receipts
	return o.ended(err, time.Since(began))
}

func resume(o *order) string {
	who, tag := o.Word(""), o.Value("tag")
	var opts []throttle.PauseOption
	if tag != "" {
		opts = append(opts, throttle.PauseTag(tag))
	}
	return o.ended(o.who(who)[0].limiter().Resume(o.T.Context(), opts...), 0)
}

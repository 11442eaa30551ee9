package throttle

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// actions are the commands without a result. WHO is a limiter, and N a number of tokens, by default 1. FIELD=1 sets a field. Words in [] are
// optional.
//
//	limit [NAME] [FIELD=1] [share=1] [replicas=2] [name=llm] [tag=gold]: fields of Limit; with share it has a sharer
//	slots NAME N [share=1]; all NAME WHO WHO/call WHO*2: with PerCall and Weigh; quotas: other ones
//	settle P N; report P accepted; tell accepted [TAG]: ReportFor, a token; cancel NAME: the contexts of draws that wait, or a permit
//	loop NAME WHO [N] [callers=4] [every=10ms] [within=1s] [took=20ms] [service=S] [try] [upto]: draws again and again; stop NAME
//	service NAME RATE: it accepts so many calls a second
//	lease [WHO] [FIELD=1]: of Lease; until=5s from now; grant [TAG] [free] [FIELD=1]: of TagGrant and its Batch
//	away N 5s: NoteAway; paused [WHO] 5s: by a sharer; store [down] [next=5s]: of a limit with issued [up=1ms], which issues its tokens one by one
var actions = map[string]func(o *order){
	"limit": newLimit,
	"slots": newSlots,
	"all":   newAll,
	"quotas": func(o *order) {
		as[sharing.QuotaHolder](o.t, o.holder()).SetQuotas(o.quotas().WithDefaults(time.Second))
	},
	"settle": func(o *order) { name, n := o.word(""), o.count(""); o.permits(name, func(p Permit) { p.Settle(n) }) },
	"report": func(o *order) {
		name, what := o.word(""), outcomes[o.word("")]
		o.permits(name, func(p Permit) { p.Report(what) })
	},
	"tell": func(o *order) {
		o.limit().ReportFor(1, time.Now(), outcomes[o.word("")], o.rest()...)
	},
	"cancel": func(o *order) {
		for _, d := range o.draws[o.word("")] {
			if o.ended(d) == "waits" {
				d.cancel()
			}
			d.permit.Cancel()
		}
	},
	"loop": loop,
	"stop": func(o *order) { o.crews[o.word("")].stop() },
	"service": func(o *order) {
		name := o.word("")
		if o.services[name] == nil {
			o.services[name] = &service{at: time.Now(), level: 1e6}
		}
		o.services[name].can(o.number(o.word("")))
	},
	"lease": func(o *order) { h, l := o.holder(), limit.Lease{}; o.fill(&l); h.Lease(l) },
	"grant": func(o *order) {
		g := sharing.TagGrant{Tag: o.word(""), Needed: !o.is("free")}
		o.fill(&g)
		o.fill(&g.Batch)
		o.holder().GrantTags([]sharing.TagGrant{g})
	},
	"store": func(o *order) {
		o.clerk.mint.set(func(m *mint) {
			if m.down = o.is("down"); o.set["next"] != "" {
				m.next = time.Now().Add(o.time(o.value("next")))
			}
		})
	},
	"paused": func(o *order) { o.holder().SetPauses([]Paused{{Until: time.Now().Add(o.time(o.word("")))}}) },
	"away":   func(o *order) { o.limit().NoteAway(o.count(""), o.time(o.word(""))) },
}

// questions are the commands with a result. F are fields, in any case and with dots; by default all simple fields that are not zero.
//
//	take WHO,WHO [N] [as=P]: TryAcquire; as=P+ keeps earlier permits of that name; drain WHO: the number of single tokens at hand
//	get WHO [N] [within=1s] [upto] [fallback] [as=P]: Acquire or AcquireUpTo; ask NAME WHO [N] ..: the same in the background
//	call NAME: the result of ask; of several calls the number for each result; "overtaken" is out of order
//	rate 10s NAME NAME/refused: tokens per second of a loop from now on, or calls; p99 NAME: its waits since the last p99
//	status WHO F; by F: the status of Error.By; text: the text of that error; tag TAG F; throttled WHO F; holdup F
//	waits [WHO]: WaitStats, for each reason the waits, the refusals and the time
//	reported [WHO] 2s F: the report to the sharer; tagged TAG KEEP F: its part for a tag; pokes [WHO]: of the sharer
//	mint: slots that the store has issued, orders, returned slots
//	pause WHO [1m]; resume WHO; probe WHO; charge WHO N; forgive; close WHO
var questions = map[string]func(o *order) string{
	"take":  takeNow,
	"drain": drained,
	"get":   get,
	"ask":   ask,
	"call":  func(o *order) string { return o.reported(o.draws[o.word("")]...) },
	"rate":  rates,
	"p99": func(o *order) string {
		c := o.crews[o.word("")]
		defer c.forget()
		return c.p99().Round(time.Microsecond).String()
	},
	"status": func(o *order) string {
		if f, ok := o.limiter(o.word(o.main)).(*InFlight); ok {
			return o.tell(f.Status())
		}
		return o.tell(as[interface{ Status() Status }](o.t, o.last).Status())
	},
	"text": func(o *order) string { return o.refusal.Error() },
	"by":   func(o *order) string { return o.tell(as[interface{ Status() Status }](o.t, o.refusal.By()).Status()) },
	"tag":  func(o *order) string { return o.tell(statusOf(o.limit(), strings.Trim(o.word(""), "-"))) },
	"throttled": func(o *order) string {
		th, ok := as[interface{ Throttled() (Throttling, bool) }](o.t, o.limiter(o.word(o.main))).Throttled()
		return o.tellIf(ok, th)
	},
	"holdup":   func(o *order) string { h, ok := o.limit().HoldUp(); return o.tellIf(ok, h) },
	"waits":    waits,
	"reported": func(o *order) string { return o.tell(o.holder().Report(o.time(o.word("")))) },
	"tagged": func(o *order) string {
		tag, reports := o.word(""), o.holder().ReportTags(o.time(o.word("")))
		i := slices.IndexFunc(reports, func(r sharing.TagReport) bool { return r.Tag == tag })
		return o.tellIf(i >= 0, append(reports, sharing.TagReport{})[max(i, 0)])
	},
	"pokes": func(o *order) string { return fmt.Sprint(o.sharers[o.word(o.main)].pokes.Load()) },
	"mint": func(o *order) string {
		return fmt.Sprint(len(o.clerk.mint.issued()), o.clerk.mint.asked(), o.clerk.mint.returned())
	},
	"pause":   func(o *order) string { return o.pause(true) },
	"resume":  func(o *order) string { return o.pause(false) },
	"probe":   func(o *order) string { return o.failed(probe(o.limiter(o.word("")))) },
	"charge":  func(o *order) string { return o.failed(Charge(o.limiter(o.word("")), o.count("1"))) },
	"forgive": func(o *order) string { return fmt.Sprintf("%.4g", o.limit().ForgiveDebt()) },
	"close": func(o *order) string {
		return o.failed(as[interface{ Close() error }](o.t, o.limiter(o.word(o.main))).Close())
	},
}

var outcomes = map[string]Outcome{"accepted": OutcomeAccepted, "refused": OutcomeRefused, "overloaded": OutcomeOverloaded}

func (o *order) failed(err error) string {
	return o.ended(&drawing{result: result{err: err}})
}

func (o *order) options(name string) []Option {
	opts := []Option{WithName(o.value("name")), WithTag(o.value("tag")), WithLogger(slog.New(slog.DiscardHandler))}
	if share, ok := o.set["share"]; ok {
		o.sharers[name] = &script{first: limit.Lease{Share: fraction(o.number(share))}}
		opts = append(opts, WithSharer(o.sharers[name]))
	}
	if n := o.value("replicas"); n != "" {
		static, err := Replicas(int(o.number(n)))
		require.NoError(o.t, err)
		opts = append(opts, WithSharer(static))
	}
	o.value("share")
	return opts
}

func newLimit(o *order) {
	var l Limit
	o.fill(&l)
	issued := o.is("issued")
	name := o.word("limit")
	opts := o.options(name)
	if issued { // its tokens one by one
		o.clerk = &clerk{script: &script{first: limit.Lease{Issuing: true}}, mint: &mint{live: 1}, up: o.time(o.value("up"))}
		opts = append(opts, WithSharer(o.clerk))
	}
	if o.more != "" {
		opts = append(opts, WithQuotas(o.quotas()))
	}
	o.limits[name], o.main = whole(o.t, l, opts...), cmp.Or(o.main, name)
}

func newSlots(o *order) {
	name, n := o.word(""), o.count("")
	o.limits[name], o.main = flight(o.t, n, o.options(name)...), cmp.Or(o.main, name)
}

func newAll(o *order) {
	name, parts := o.word(""), []Limiter(nil)
	for len(o.words) > 0 {
		who, call := strings.CutSuffix(o.word(""), "/call")
		who, times, weighed := strings.Cut(who, "*")
		l := o.limiter(who)
		if call {
			l = PerCall(l)
		}
		if weighed {
			l = Weigh(l, func(n int) int { return int(float64(n) * o.number(times)) })
		}
		parts = append(parts, l)
	}
	o.limits[name] = All(parts...)
}

// quotas are those of the indented lines: a tag, a pattern or other, and fields of Quota; budget=3/hour/batch.
func (o *order) quotas() Quotas {
	q := Quotas{Tags: map[string]Quota{}}
	for line := range strings.Lines(o.more) {
		of, quota := newOrder(o.play, strings.Fields(line)), Quota{}
		if parts := append(strings.Split(of.value("budget"), "/"), ""); len(parts) > 2 {
			quota.Budgets = []Budget{{Amount: int64(o.number(parts[0])), Per: limit.Period(parts[1]), Then: limit.Then(parts[2])}}
		}
		name := of.word("")
		of.fill(&quota)
		switch {
		case name == "other":
			q.Other = quota
		case strings.Contains(name, "*"):
			q.Match = append(q.Match, QuotaPattern{Tag: name, Quota: quota})
		default:
			q.Tags[name] = quota
		}
		require.Zero(o.t, len(of.set)+len(of.words), "%s: %s", o.line, line)
	}
	return q
}

func takeNow(o *order) string {
	name, who, n, reported := o.as(), o.word(""), o.count("1"), []string(nil)
	for one := range strings.SplitSeq(who, ",") {
		p, ok := o.limiter(one).TryAcquire(n)
		o.draws[name] = append(o.draws[name], &drawing{result: result{permit: p}, n: n})
		reported = append(reported, map[bool]string{true: "ok", false: "no"}[ok])
	}
	return strings.Join(reported, " ")
}

func drained(o *order) string {
	l, n := o.limiter(o.word("")), 0
	for _, ok := l.TryAcquire(1); ok && n < 1e6; _, ok = l.TryAcquire(1) {
		n++
	}
	return fmt.Sprint(n)
}

// way takes the words that say how to draw, and returns a draw from the limiter that is named next.
func (o *order) way() func(ctx context.Context, n int) (Permit, error) {
	upTo, fallback, try := o.is("upto"), o.is("fallback"), o.is("try")
	switch l := o.limiter(o.word("")); {
	case upTo:
		return l.AcquireUpTo
	case fallback:
		return func(ctx context.Context, n int) (Permit, error) { return l.Acquire(withFallback(ctx), n) }
	case try:
		return func(_ context.Context, n int) (Permit, error) {
			p, ok := l.TryAcquire(n)
			return p, map[bool]error{false: ErrThrottled}[ok]
		}
	default:
		return l.Acquire
	}
}

// ask begins a draw in the background.
func ask(o *order) string {
	name, way, n := o.word(""), o.way(), o.count("1")
	d := &drawing{n: n, began: time.Now()}
	d.call = beginWith(way, n, o.time(o.value("within")))
	o.draws[name] = append(o.draws[name], d)
	return o.ended(d)
}

// get waits for a draw.
func get(o *order) string {
	name := o.as()
	o.words = slices.Insert(o.words, 0, name)
	ended := ask(o)
	if d := o.draws[name][len(o.draws[name])-1]; ended == "waits" {
		d.result = <-d.done
		ended = o.ended(d)
	}
	return ended
}

// as takes the name of a draw. It replaces the earlier draws of that name, unless a + follows the name.
func (o *order) as() string {
	name, more := strings.CutSuffix(o.value("as"), "+")
	if !more {
		delete(o.draws, name)
	}
	return name
}

// loop has callers that draw again and again, each at once or every so often.
func loop(o *order) {
	name, way := o.word(""), o.way()
	n, callers, s := o.count("1"), int(o.number(cmp.Or(o.value("callers"), "1"))), o.services[o.value("service")]
	every, within, took := o.time(o.value("every")), o.time(cmp.Or(o.value("within"), "9000h")), o.time(o.value("took"))
	ctx, stop := context.WithCancel(context.Background())
	c := &crew{stop: stop}
	draw := func() error {
		began := time.Now()
		call, done := context.WithTimeout(ctx, within)
		defer done()
		p, err := way(call, n)
		if err != nil {
			return err
		}
		c.granted.Add(int64(p.N()))
		c.waited(time.Since(began))
		if s != nil {
			outcome := s.take()
			defer map[Outcome]*atomic.Int64{OutcomeAccepted: &c.accepted, OutcomeRefused: &c.refused}[outcome].Add(1)
			defer p.Report(outcome)
		}
		time.Sleep(took)
		p.Settle(p.N())
		return nil
	}
	for range callers {
		go func() {
			for ctx.Err() == nil && (draw() == nil || every > 0) {
				time.Sleep(every)
			}
		}()
	}
	o.crews[name] = c
}

// counted is what a crew was granted, or its calls that were accepted or refused: NAME/refused.
func (o *order) counted(name string) float64 {
	name, what, _ := strings.Cut(name, "/")
	c := o.crews[name]
	return float64(map[string]*atomic.Int64{"": &c.granted, "accepted": &c.accepted, "refused": &c.refused}[what].Load())
}

func rates(o *order) string {
	d, names, before, reported := o.word(""), o.rest(), []float64(nil), []string(nil)
	for _, name := range names {
		before = append(before, o.counted(name))
	}
	time.Sleep(o.time(d))
	for i, name := range names {
		reported = append(reported, rounded((o.counted(name)-before[i])/o.number(d)))
	}
	return strings.Join(reported, " ")
}

func waits(o *order) string {
	who, stats, reported := o.word(o.main), []WaitStats(nil), []string(nil)
	if l, ok := o.limits[who]; ok {
		stats = as[interface{ WaitStats() []WaitStats }](o.t, l).WaitStats()
	} else {
		for _, s := range o.limit().TagWaitStats() {
			if s.Tag == strings.Trim(who, "-") {
				stats = s.Stats
			}
		}
	}
	for _, s := range stats {
		reported = append(reported, fmt.Sprintf("%s %d %d %s", s.Reason, s.Waits, s.Refusals, s.Time.Round(time.Microsecond)))
	}
	return cmp.Or(strings.Join(reported, " "), "none")
}

func (o *order) pause(on bool) string {
	who, opts := o.word(""), []PauseOption(nil)
	l, ok := o.limits[who].(interface {
		Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error)
		Resume(ctx context.Context, opts ...PauseOption) error
	})
	if !ok {
		l, opts = o.limit(), []PauseOption{PauseTag(who)}
	}
	if !on {
		return o.failed(l.Resume(o.t.Context(), opts...))
	}
	until := time.Time{}
	if d := o.word(""); d != "" {
		until = time.Now().Add(o.time(d))
	}
	_, err := l.Pause(o.t.Context(), until, "maintenance", opts...)
	return o.failed(err)
}

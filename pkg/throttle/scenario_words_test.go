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
	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
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
//	grant TAG N [others=2] [FIELD=1]: of slots, of TagSlotGrant
//	away N 5s: NoteAway; paused [WHO] 5s: by a sharer; store [down] [next=5s]: of a limit with issued [up=1ms], which issues its tokens one by one
var actions = map[string]func(o *order){
	"limit": newLimit,
	"slots": newSlots,
	"all":   newAll,
	"quotas": func(o *order) {
		as[sharing.QuotaHolder](o.T, o.holder()).SetQuotas(o.Quotas().WithDefaults(time.Second))
	},
	"settle": func(o *order) { name, n := o.Word(""), o.Count(""); o.permits(name, func(p Permit) { p.Settle(n) }) },
	"report": func(o *order) {
		name, what := o.Word(""), outcomes[o.Word("")]
		o.permits(name, func(p Permit) { p.Report(what) })
	},
	"tell": func(o *order) {
		o.limit().ReportFor(1, time.Now(), outcomes[o.Word("")], o.Rest()...)
	},
	"cancel": func(o *order) {
		for _, d := range o.draws[o.Word("")] {
			if o.ended(d) == "waits" {
				d.cancel()
			}
			d.permit.Cancel()
		}
	},
	"loop": loop,
	"stop": func(o *order) { o.crews[o.Word("")].stop() },
	"service": func(o *order) {
		name := o.Word("")
		if o.services[name] == nil {
			o.services[name] = &service{at: time.Now(), level: 1e6}
		}
		o.services[name].can(o.Number(o.Word("")))
	},
	"lease": func(o *order) { h, l := o.holder(), limit.Lease{}; o.Fill(&l, modes); h.Lease(l) },
	"grant": func(o *order) {
		if f, ok := o.limits[o.main].(*InFlight); ok {
			grantSlots(o, f)
			return
		}
		g := sharing.TagGrant{Tag: o.Word(""), Needed: !o.Is("free")}
		o.Fill(&g, modes)
		o.Fill(&g.Batch, modes)
		o.holder().GrantTags([]sharing.TagGrant{g})
	},
	"store": func(o *order) {
		o.clerk.mint.set(func(m *mint) {
			if m.down = o.Is("down"); o.Set["next"] != "" {
				m.next = time.Now().Add(o.Time(o.Value("next")))
			}
		})
	},
	"paused": func(o *order) { o.holder().SetPauses([]Paused{{Until: time.Now().Add(o.Time(o.Word("")))}}) },
	"away":   func(o *order) { o.limit().NoteAway(o.Count(""), o.Time(o.Word(""))) },
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
//	slotted TAG [turn=1] [rank=1] [live=2] F: the report on a tag of slots; wants is its demand
//	watched: the waits for slots that an Observer has been told of
//	mint: slots that the store has issued, orders, returned slots
//	pause WHO [1m]; resume WHO; probe WHO; charge WHO N; forgive; close WHO
var questions = map[string]func(o *order) string{
	"take":  takeNow,
	"drain": drained,
	"get":   get,
	"ask":   ask,
	"call":  func(o *order) string { return o.reported(o.draws[o.Word("")]...) },
	"rate":  rates,
	"p99": func(o *order) string {
		c := o.crews[o.Word("")]
		defer c.forget()
		return c.p99().Round(time.Microsecond).String()
	},
	"status": func(o *order) string {
		if f, ok := o.limiter(o.Word(o.main)).(*InFlight); ok {
			return o.Tell(f.Status())
		}
		return o.Tell(as[interface{ Status() Status }](o.T, o.last).Status())
	},
	"text": func(o *order) string { return o.refusal.Error() },
	"by":   func(o *order) string { return o.Tell(as[interface{ Status() Status }](o.T, o.refusal.By()).Status()) },
	"tag": func(o *order) string {
		if f, ok := o.limits[o.main].(*InFlight); ok {
			return o.Tell(tagStatus(f, strings.Trim(o.Word(""), "-")))
		}
		return o.Tell(statusOf(o.limit(), strings.Trim(o.Word(""), "-")))
	},
	"throttled": func(o *order) string {
		th, ok := as[interface{ Throttled() (Throttling, bool) }](o.T, o.limiter(o.Word(o.main))).Throttled()
		return o.TellIf(ok, th)
	},
	"holdup": func(o *order) string {
		h, ok := as[interface{ HoldUp() (Throttling, bool) }](o.T, o.limits[o.main]).HoldUp()
		return o.TellIf(ok, h)
	},
	"waits":    waits,
	"reported": func(o *order) string { return o.Tell(o.holder().Report(o.Time(o.Word("")))) },
	"tagged": func(o *order) string {
		tag, reports := o.Word(""), o.holder().ReportTags(o.Time(o.Word("")))
		i := slices.IndexFunc(reports, func(r sharing.TagReport) bool { return r.Tag == tag })
		return o.TellIf(i >= 0, append(reports, sharing.TagReport{})[max(i, 0)])
	},
	"slotted": slotted,
	"watched": func(o *order) string { return o.watched.taken() },
	"pokes":   func(o *order) string { return fmt.Sprint(o.sharers[o.Word(o.main)].pokes.Load()) },
	"mint": func(o *order) string {
		return fmt.Sprint(len(o.clerk.mint.issued()), o.clerk.mint.asked(), o.clerk.mint.returned())
	},
	"pause":   func(o *order) string { return o.pause(true) },
	"resume":  func(o *order) string { return o.pause(false) },
	"probe":   func(o *order) string { return o.failed(probe(o.limiter(o.Word("")))) },
	"charge":  func(o *order) string { return o.failed(Charge(o.limiter(o.Word("")), o.Count("1"))) },
	"forgive": func(o *order) string { return fmt.Sprintf("%.4g", o.limit().ForgiveDebt()) },
	"close": func(o *order) string {
		return o.failed(as[interface{ Close() error }](o.T, o.limiter(o.Word(o.main))).Close())
	},
}

var outcomes = map[string]Outcome{"accepted": OutcomeAccepted, "refused": OutcomeRefused, "overloaded": OutcomeOverloaded}

func (o *order) failed(err error) string {
	return o.ended(&drawing{result: result{err: err}})
}

func (o *order) options(name string) []Option {
	opts := []Option{WithName(o.Value("name")), WithTag(o.Value("tag")), WithLogger(slog.New(slog.DiscardHandler))}
	if share, ok := o.Set["share"]; ok {
		o.sharers[name] = &script{first: limit.Lease{Share: fraction(o.Number(share))}}
		opts = append(opts, WithSharer(o.sharers[name]))
	}
	if n := o.Value("replicas"); n != "" {
		static, err := Replicas(int(o.Number(n)))
		require.NoError(o.T, err)
		opts = append(opts, WithSharer(static))
	}
	o.Value("share")
	return opts
}

func newLimit(o *order) {
	var l Limit
	o.Fill(&l, modes)
	issued := o.Is("issued")
	name := o.Word("limit")
	opts := o.options(name)
	if issued { // its tokens one by one
		o.clerk = &clerk{script: &script{first: limit.Lease{Issuing: true}}, mint: &mint{live: 1}, up: o.Time(o.Value("up"))}
		opts = append(opts, WithSharer(o.clerk))
	}
	if o.More != "" {
		opts = append(opts, WithQuotas(o.Quotas()))
	}
	o.limits[name], o.main = whole(o.T, l, opts...), cmp.Or(o.main, name)
}

func newSlots(o *order) {
	name, n := o.Word(""), o.Count("")
	opts := append(o.options(name), WithObserver(&o.watched))
	if o.More != "" {
		opts = append(opts, WithQuotas(o.Quotas()))
	}
	o.limits[name], o.main = flight(o.T, n, opts...), cmp.Or(o.main, name)
}

func newAll(o *order) {
	name, parts := o.Word(""), []Limiter(nil)
	for len(o.Words) > 0 {
		who, call := strings.CutSuffix(o.Word(""), "/call")
		who, times, weighed := strings.Cut(who, "*")
		l := o.limiter(who)
		if call {
			l = PerCall(l)
		}
		if weighed {
			l = Weigh(l, func(n int) int { return int(float64(n) * o.Number(times)) })
		}
		parts = append(parts, l)
	}
	o.limits[name] = All(parts...)
}

func takeNow(o *order) string {
	name, who, n, reported := o.as(), o.Word(""), o.Count("1"), []string(nil)
	for one := range strings.SplitSeq(who, ",") {
		p, ok := o.limiter(one).TryAcquire(n)
		o.draws[name] = append(o.draws[name], &drawing{result: result{permit: p}, n: n})
		reported = append(reported, map[bool]string{true: "ok", false: "no"}[ok])
	}
	return strings.Join(reported, " ")
}

func drained(o *order) string {
	l, n := o.limiter(o.Word("")), 0
	for _, ok := l.TryAcquire(1); ok && n < 1e6; _, ok = l.TryAcquire(1) {
		n++
	}
	return fmt.Sprint(n)
}

// way takes the words that say how to draw, and returns a draw from the limiter that is named next.
func (o *order) way() func(ctx context.Context, n int) (Permit, error) {
	upTo, fallback, try := o.Is("upto"), o.Is("fallback"), o.Is("try")
	switch l := o.limiter(o.Word("")); {
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
	name, way, n := o.Word(""), o.way(), o.Count("1")
	d := &drawing{n: n, began: time.Now()}
	d.call = beginWith(way, n, o.Time(o.Value("within")))
	o.draws[name] = append(o.draws[name], d)
	return o.ended(d)
}

// get waits for a draw.
func get(o *order) string {
	name := o.as()
	o.Words = slices.Insert(o.Words, 0, name)
	ended := ask(o)
	if d := o.draws[name][len(o.draws[name])-1]; ended == "waits" {
		d.result = <-d.done
		ended = o.ended(d)
	}
	return ended
}

// as takes the name of a draw. It replaces the earlier draws of that name, unless a + follows the name.
func (o *order) as() string {
	name, more := strings.CutSuffix(o.Value("as"), "+")
	if !more {
		delete(o.draws, name)
	}
	return name
}

// loop has callers that draw again and again, each at once or every so often.
func loop(o *order) {
	name, way := o.Word(""), o.way()
	n, callers, s := o.Count("1"), int(o.Number(cmp.Or(o.Value("callers"), "1"))), o.services[o.Value("service")]
	every, within, took := o.Time(o.Value("every")), o.Time(cmp.Or(o.Value("within"), "9000h")), o.Time(o.Value("took"))
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
	d, names, before, reported := o.Word(""), o.Rest(), []float64(nil), []string(nil)
	for _, name := range names {
		before = append(before, o.counted(name))
	}
	time.Sleep(o.Time(d))
	for i, name := range names {
		reported = append(reported, scenario.Rounded((o.counted(name)-before[i])/o.Number(d)))
	}
	return strings.Join(reported, " ")
}

func waits(o *order) string {
	who, stats, reported := o.Word(o.main), []WaitStats(nil), []string(nil)
	if l, ok := o.limits[who]; ok {
		stats = as[interface{ WaitStats() []WaitStats }](o.T, l).WaitStats()
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

type pauser interface {
	Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error)
	Resume(ctx context.Context, opts ...PauseOption) error
}

func (o *order) pause(on bool) string {
	who, opts := o.Word(""), []PauseOption(nil)
	l, ok := o.limits[who].(pauser)
	if !ok {
		l, opts = as[pauser](o.T, o.limits[o.main]), []PauseOption{PauseTag(who)}
	}
	if !on {
		return o.failed(l.Resume(o.T.Context(), opts...))
	}
	until := time.Time{}
	if d := o.Word(""); d != "" {
		until = time.Now().Add(o.Time(d))
	}
	_, err := l.Pause(o.T.Context(), until, "maintenance", opts...)
	return o.failed(err)
}

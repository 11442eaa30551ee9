package throttle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A play is a scenario under way: what was made, by name.
type play struct {
	t          *testing.T
	line, more string
	main       string // the limit that is meant without a name
	limits     map[string]Limiter
	sharers    map[string]*script
	draws      map[string][]*drawing
	services   map[string]*service
	crews      map[string]*crew
	refusal    *Error // the last one
}

// A drawing is a draw of n tokens, and its result once that is known.
type drawing struct {
	*call
	result
	n     int
	began time.Time
}

// A crew draws again and again, and calls a service.
type crew struct {
	load
	accepted, refused atomic.Int64
	stop              func()
}

// actions are what scenarios can do. WHO is a limiter, N a number of tokens, 1 without it; FIELD=1 sets a field, and [] may be left out.
//
//	limit [NAME] [FIELD=1] [share=1] [replicas=2] [name=llm] [tag=gold]: fields of Limit; with share it has a sharer
//	slots NAME N [share=1]; all NAME WHO WHO/call WHO*2: with PerCall and Weigh; quotas: other ones
//	settle P N; report P accepted; tell accepted N [TAG]: ReportFor; cancel NAME: the contexts of draws that wait, or a permit
//	loop NAME WHO [N] [callers=4] [every=10ms] [within=1s] [took=20ms] [service=S] [try] [upto]: draws again and again; stop NAME
//	service NAME RATE: it accepts so many calls a second
//	lease [WHO] [FIELD=1]: of Lease; until=5s from now; grant [TAG] [free] [FIELD=1]: of TagGrant and its Lot
//	repay WHO N; away N 5s: NoteAway
var actions = map[string]func(o *order){
	"limit": newLimit,
	"slots": newSlots,
	"all":   newAll,
	"quotas": func(o *order) {
		as[sharing.QuotaHolder](o.t, o.holder()).SetQuotas(o.quotas().WithDefaults(time.Second))
	},
	"settle": func(o *order) { o.permits(o.word(""), func(p Permit) { p.Settle(int(o.number(o.words[0]))) }) },
	"report": func(o *order) { o.permits(o.word(""), func(p Permit) { p.Report(outcomes[o.words[0]]) }) },
	"tell": func(o *order) {
		l, what, n := o.limit(), outcomes[o.word("")], o.count("")
		l.ReportFor(n, time.Now(), what, o.words...)
	},
	"cancel": func(o *order) {
		for _, d := range o.draws[o.word("")] {
			if o.ended(d) == "waits" {
				d.call.cancel()
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
	"lease": func(o *order) { h, l := o.holder(), Lease{}; o.fill(&l); h.Lease(l) },
	"grant": func(o *order) {
		g := TagGrant{Tag: o.word(""), Needed: !o.is("free")}
		o.fill(&g)
		o.fill(&g.Lot)
		o.holder().GrantTags([]TagGrant{g})
	},
	"repay": func(o *order) { Repay(o.limiter(o.word("")), o.count("1")) },
	"away":  func(o *order) { o.limit().NoteAway(o.count(""), o.time(o.word(""))) },
}

// questions are what gives words. F are fields, in any case and with dots; without them it is all simple ones that are not zero.
//
//	take WHO,WHO [N] [as=P]: TryAcquire; as=P+ is one more; drain WHO: how many single tokens there are
//	get WHO [N] [within=1s] [upto] [fallback] [as=P]: Acquire, or AcquireUpTo; ask NAME WHO [N] ..: the same in the background
//	call NAME: what became of it; of several how many ended alike, and "overtaken" not in their order
//	rate 10s NAME NAME/refused: tokens of a loop per second from now on, or calls; p99 NAME: its waits since this was asked
//	status WHO F; by F: the status of who refused last, and text: its words; tag TAG F; throttled WHO F; holdup F; waits [WHO]: for each reason how many waited, how many were refused, and the time
//	reported [WHO] 2s F: what a sharer learns over a time; tagged TAG KEEP F: the same of a tag; pokes [WHO]
//	pause WHO [1m]; resume WHO; probe WHO; charge WHO N; forgive; close WHO
var questions = map[string]func(o *order) string{
	"take":  takeNow,
	"drain": drained,
	"get":   get,
	"ask":   ask,
	"call":  func(o *order) string { return o.told(o.draws[o.word("")]...) },
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
		i := slices.IndexFunc(reports, func(r TagReport) bool { return r.Tag == tag })
		return o.tellIf(i >= 0, append(reports, TagReport{})[max(i, 0)])
	},
	"pokes":   func(o *order) string { return fmt.Sprint(o.sharers[o.word(o.main)].pokes.Load()) },
	"pause":   func(o *order) string { return o.pause(true) },
	"resume":  func(o *order) string { return o.pause(false) },
	"probe":   func(o *order) string { return o.failed(Probe(o.limiter(o.word("")))) },
	"charge":  func(o *order) string { return o.failed(Charge(o.limiter(o.word("")), o.count("1"))) },
	"forgive": func(o *order) string { return fmt.Sprintf("%.4g", o.limit().ForgiveDebt()) },
	"close": func(o *order) string {
		return o.failed(as[interface{ Close() error }](o.t, o.limiter(o.word(o.main))).Close())
	},
}

var outcomes = map[string]Outcome{"accepted": Accepted, "refused": Refused, "overloaded": Overloaded}

func newPlay(t *testing.T) *play {
	t.Helper()
	return &play{
		t: t, limits: map[string]Limiter{}, sharers: map[string]*script{}, draws: map[string][]*drawing{}, services: map[string]*service{},
		crews: map[string]*crew{},
	}
}

func (p *play) end() {
	for _, c := range p.crews {
		c.stop()
	}
	for _, draws := range p.draws {
		for _, d := range draws {
			if d.call != nil {
				d.call.cancel()
			}
		}
	}
	time.Sleep(time.Minute) // for the calls under way
	for _, l := range p.limits {
		if th, ok := l.(*Throttle); ok && !th.Unlimited() && th.Status().Paused == nil {
			sound(p.t, th)
		}
	}
}

// play does the commands of a line, and returns what they give.
func (p *play) play(line string) string {
	times, every := 1, time.Duration(0)
	if head, rest, _ := strings.Cut(line, " "); len(head) > 1 && head[0] == 'x' && head[1] >= '0' && head[1] <= '9' {
		n, d, _ := strings.Cut(head[1:], "/")
		times, every, line = int(p.number(n)), p.time(d), rest
	}
	var words []string
	for range times {
		for command := range strings.SplitSeq(line, ";") {
			o := newOrder(p, strings.Fields(command))
			if after, ok := strings.CutPrefix(o.words[0], "+"); ok {
				time.Sleep(p.time(after))
				synctest.Wait()
				continue
			}
			name := o.word("")
			if do, ok := actions[name]; ok {
				do(o)
			} else {
				require.Contains(p.t, questions, name, p.line)
				words = append(words, strings.Fields(questions[name](o))...)
			}
			require.Empty(p.t, o.set, "%s: not a setting of %s", p.line, command)
		}
		time.Sleep(every)
	}
	synctest.Wait()
	for i := 0; i < len(words); i++ {
		n := 1
		for i+n < len(words) && words[i+n] == words[i] {
			n++
		}
		if _, isFigure := figure(words[i]); n > 1 && !isFigure {
			words = slices.Replace(words, i, i+n, fmt.Sprintf("%s*%d", words[i], n))
		}
	}
	return strings.Join(words, " ")
}

// An order is a command's words and settings. Both are taken from it.
type order struct {
	*play
	words []string
	set   map[string]string
	last  Limiter // that was named
}

func newOrder(p *play, words []string) *order {
	o := &order{play: p, set: map[string]string{}}
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			o.set[key] = value
		} else {
			o.words = append(o.words, w)
		}
	}
	return o
}

// word takes the next word.
func (o *order) word(without string) string {
	if len(o.words) == 0 {
		return without
	}
	defer func() { o.words = o.words[1:] }()
	return o.words[0]
}

// is takes a word that may stand anywhere.
func (o *order) is(word string) bool {
	before := len(o.words)
	o.words = slices.DeleteFunc(o.words, func(w string) bool { return w == word })
	return len(o.words) < before
}

// value takes a setting.
func (o *order) value(key string) string {
	defer delete(o.set, key)
	return o.set[key]
}

// count takes a number of tokens.
func (o *order) count(without string) int { return int(o.number(o.word(without))) }

func (p *play) number(word string) float64 {
	f, ok := figure(cmp.Or(word, "0"))
	require.True(p.t, ok, "%s: %q is no number", p.line, word)
	return f
}

func (p *play) time(word string) time.Duration { return time.Duration(p.number(word) * 1e9) }

// limiter returns the limiter of a name, or of tags.
func (o *order) limiter(who string) Limiter {
	base, tags, named := strings.Cut(who, ":")
	if o.last = o.limits[base]; o.last == nil {
		base, tags, named = o.main, who, true
	}
	require.Contains(o.t, o.limits, base, o.line)
	if o.last = o.limits[base]; named {
		o.last = ForTags(o.last, strings.Split(strings.ReplaceAll(tags, "-", ""), "+")...)
	}
	return o.last
}

// holder takes the name of a limiter, the first one without it, and returns it as a sharer sees it.
func (o *order) holder() Holder {
	l := o.limits[o.main]
	if len(o.words) > 0 && o.limits[o.words[0]] != nil {
		l = o.limits[o.word("")]
	}
	if f, ok := l.(*InFlight); ok {
		return slotHolder{f}
	}
	return rateHolder{as[*Throttle](o.t, l)}
}

func (o *order) limit() *Throttle { return as[rateHolder](o.t, o.holder()).Throttle }

// permits does something with the permits of draws.
func (o *order) permits(name string, do func(p Permit)) {
	o.told(o.draws[name]...)
	for _, d := range o.draws[name] {
		do(d.permit)
	}
}

// field returns a field of a struct by its name, with dots, in any case; or what its method of that name returns.
func field(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		if m := v.MethodByName(strings.ToUpper(name[:1]) + name[1:]); m.IsValid() {
			return m.Call(nil)[0]
		}
		if v = reflect.Indirect(v); v.Kind() == reflect.Struct {
			v = v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		}
	}
	return v
}

// fill sets the fields of v that settings and words name.
func (o *order) fill(v any) {
	for _, w := range slices.Clone(o.words) {
		if f := field(reflect.ValueOf(v), w); f.IsValid() && f.Kind() == reflect.Bool && o.is(w) {
			f.SetBool(true)
		}
	}
	for key := range o.set {
		f := field(reflect.ValueOf(v), key)
		if !f.IsValid() {
			continue
		}
		value := o.value(key)
		switch to := f.Addr().Interface().(type) {
		case *time.Duration:
			*to = o.time(value)
		case *time.Time:
			*to = time.Now().Add(o.time(value))
		case *Mode:
			*to = map[string]Mode{"scheduled": Scheduled{}, "onlyIfUsed": OnlyIfUsed{}, "goBackN": GoBackN{}}[value]
		default:
			if isShare(key) {
				value = fmt.Sprint(fraction(o.number(value)))
			}
			_, err := fmt.Sscan(value, to)
			require.NoError(o.t, err, "%s: %s", o.line, key)
		}
	}
}

// isShare tells fields that are fractions of the whole share.
func isShare(name string) bool {
	return slices.Contains([]string{"share", "even", "demand"}, strings.ToLower(name))
}

// tell returns the fields of v that the words name, or all simple ones that are not zero.
func (o *order) tell(v any) string {
	var told []string
	at := reflect.New(reflect.TypeOf(v))
	at.Elem().Set(reflect.ValueOf(v))
	for _, path := range o.words {
		f := field(at, path)
		require.True(o.t, f.IsValid(), "%s: no %s", o.line, path)
		told = append(told, oneWord(path[strings.LastIndex(path, ".")+1:], f))
	}
	for f, is := range at.Elem().Fields() {
		if len(o.words) == 0 && f.IsExported() && !is.IsZero() && is.Kind() != reflect.Struct && is.Kind() != reflect.Interface {
			told = append(told, strings.ToLower(f.Name)+"="+oneWord(f.Name, is))
		}
	}
	return strings.Join(told, " ")
}

func (o *order) tellIf(ok bool, v any) string {
	if !ok {
		return "none"
	}
	return o.tell(v)
}

// oneWord returns a value as one word.
func oneWord(name string, v reflect.Value) string {
	if p, ok := v.Interface().(*Paused); ok && p != nil {
		return time.Until(p.Until).Round(time.Microsecond).String()
	}
	d, isTime := v.Interface().(time.Duration)
	switch {
	case isTime:
		return d.Round(time.Microsecond).String()
	case v.Kind() == reflect.Pointer:
		return "none"
	case v.CanInt() && isShare(name):
		return strconv.FormatFloat(float64(v.Int())/float64(WholeShare), 'f', -1, 64)
	case v.CanFloat():
		return rounded(v.Float())
	}
	return cmp.Or(strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", "_"), "-")
}

func rounded(f float64) string {
	return cmp.Or(strings.TrimRight(strings.TrimRight(strconv.FormatFloat(f, 'f', 3, 64), "0"), "."), "0")
}

// told says of a draw that it waits, or what became of it and how long that took. Of several it counts those that ended alike.
func (p *play) told(draws ...*drawing) string {
	count, ends, last := map[string]int{}, []string(nil), time.Time{}
	for _, d := range draws {
		end := p.ended(d)
		if len(draws) == 1 {
			return end
		}
		if end, _, _ = strings.Cut(end, " "); end == "ok" && d.at.Before(last) {
			end = "overtaken"
		}
		last = d.at
		if count[end]++; count[end] == 1 {
			ends = append(ends, end)
		}
	}
	for i, end := range ends {
		ends[i] = fmt.Sprint(end, "=", count[end])
	}
	return strings.Join(ends, " ")
}

func (p *play) ended(d *drawing) string {
	if d.call != nil && d.at.IsZero() {
		if d.waits() {
			return "waits"
		}
		d.result = <-d.done
	}
	took := d.at.Sub(d.began).Round(time.Microsecond).String()
	e, ok := errors.AsType[*Error](d.err)
	switch {
	case d.err == nil && d.permit.N() == d.n:
		return "ok " + took
	case d.err == nil:
		return fmt.Sprintf("ok n=%d %s", d.permit.N(), took)
	case !ok:
		return strings.ReplaceAll(d.err.Error(), " ", "_") + " " + took
	}
	require.Zero(p.t, d.permit.N(), "a permit beside an error")
	require.Equal(p.t, e.Reason != ReasonClosed, errors.Is(d.err, ErrThrottled))
	p.refusal = e
	some := *e
	some.Reason, some.Cost = "", 0
	words := append([]string{string(e.Reason)}, strings.Fields((&order{play: p}).tell(some))...)
	if errors.Is(d.err, context.DeadlineExceeded) {
		words = append(words, "deadline")
	}
	return strings.Join(append(words, took), " ")
}

func (o *order) failed(err error) string {
	return o.ended(&drawing{result: result{err: err}})
}

func (o *order) options(name string) []Option {
	opts := []Option{WithName(o.value("name")), WithTag(o.value("tag")), WithLogger(slog.New(slog.DiscardHandler))}
	if share, ok := o.set["share"]; ok {
		o.sharers[name] = &script{first: Lease{Share: fraction(o.number(share))}}
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
	name := o.word("limit")
	opts := o.options(name)
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
	name, who, n, told := o.as(), o.word(""), o.count("1"), []string(nil)
	for one := range strings.SplitSeq(who, ",") {
		p, ok := o.limiter(one).TryAcquire(n)
		o.draws[name] = append(o.draws[name], &drawing{result: result{permit: p}, n: n})
		told = append(told, map[bool]string{true: "ok", false: "no"}[ok])
	}
	return strings.Join(told, " ")
}

func drained(o *order) string {
	l, n := o.limiter(o.word("")), 0
	for _, ok := l.TryAcquire(1); ok; _, ok = l.TryAcquire(1) {
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
		return func(ctx context.Context, n int) (Permit, error) { return l.Acquire(WithFallback(ctx), n) }
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

// as takes the name of a draw, which ends what had it before: not with a + behind it.
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
			defer map[Outcome]*atomic.Int64{Accepted: &c.accepted, Refused: &c.refused}[outcome].Add(1)
			defer p.Report(outcome)
		}
		time.Sleep(took)
		p.Settle(p.N())
		return nil
	}
	for range callers {
		go func() {
			for ctx.Err() == nil && (draw() == nil || every > 0) {
				if every > 0 {
					sleepFor(ctx, every)
				}
			}
		}()
	}
	o.crews[name] = c
}

func sleepFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// counted is what a crew was granted, or its calls that were accepted or refused: NAME/refused.
func (o *order) counted(name string) float64 {
	name, what, _ := strings.Cut(name, "/")
	c := o.crews[name]
	return float64(map[string]*atomic.Int64{"": &c.granted, "accepted": &c.accepted, "refused": &c.refused}[what].Load())
}

func rates(o *order) string {
	d, before, told := o.word(""), []float64(nil), []string(nil)
	for _, name := range o.words {
		before = append(before, o.counted(name))
	}
	time.Sleep(o.time(d))
	for i, name := range o.words {
		told = append(told, rounded((o.counted(name)-before[i])/o.number(d)))
	}
	return strings.Join(told, " ")
}

func waits(o *order) string {
	who, stats, told := o.word(o.main), []WaitStats(nil), []string(nil)
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
		told = append(told, fmt.Sprintf("%s %d %d %s", s.Reason, s.Waits, s.Refusals, s.Time.Round(time.Microsecond)))
	}
	return cmp.Or(strings.Join(told, " "), "none")
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

package throttle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
)

// A play is a running scenario with its limiters, draws, loops and services by name.
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
	clerk      *clerk
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

func (p *play) end() {
	for _, c := range p.crews {
		c.stop()
	}
	for _, draws := range p.draws {
		for _, d := range draws {
			if d.call != nil {
				d.cancel()
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

// play runs the commands of a line, and returns their results.
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
			name := o.word("")
			if after, ok := strings.CutPrefix(name, "+"); ok {
				time.Sleep(p.time(after))
				synctest.Wait()
			} else if do, ok := actions[name]; ok {
				do(o)
			} else {
				require.Contains(p.t, questions, name, p.line)
				words = append(words, strings.Fields(questions[name](o))...)
			}
			require.Zero(p.t, len(o.set)+len(o.words), "%s: %s: what are %v %v?", p.line, command, o.words, o.set)
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

// rest takes all words that are left.
func (o *order) rest() []string {
	defer func() { o.words = nil }()
	return o.words
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
func (o *order) holder() sharing.Holder {
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
	o.reported(o.draws[name]...)
	for _, d := range o.draws[name] {
		do(d.permit)
	}
}

// field returns a field of a struct by its path, in any case, or the result of its method of that name.
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
			*to = map[string]Mode{"scheduled": RampScheduled{}, "onlyIfUsed": RampOnlyIfUsed{}, "goBackN": RampGoBackN{}}[value]
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
	var reported []string
	at := reflect.New(reflect.TypeOf(v))
	at.Elem().Set(reflect.ValueOf(v))
	paths := o.rest()
	for _, path := range paths {
		f := field(at, path)
		require.True(o.t, f.IsValid(), "%s: no %s", o.line, path)
		reported = append(reported, oneWord(path[strings.LastIndex(path, ".")+1:], f))
	}
	for f, is := range at.Elem().Fields() {
		if len(paths) == 0 && f.IsExported() && !is.IsZero() && is.Kind() != reflect.Struct && is.Kind() != reflect.Interface {
			reported = append(reported, strings.ToLower(f.Name)+"="+oneWord(f.Name, is))
		}
	}
	return strings.Join(reported, " ")
}

func (o *order) tellIf(ok bool, v any) string {
	if !ok {
		return "none"
	}
	return o.tell(v)
}

// oneWord returns a value as one word.
func oneWord(name string, v reflect.Value) string {
	if p, ok := reflect.TypeAssert[*Paused](v); ok && p != nil {
		return time.Until(p.Until).Round(time.Microsecond).String()
	}
	d, isTime := reflect.TypeAssert[time.Duration](v)
	switch {
	case isTime:
		return d.Round(time.Microsecond).String()
	case v.Kind() == reflect.Pointer:
		return "none"
	case v.CanInt() && isShare(name):
		return strconv.FormatFloat(float64(v.Int())/float64(wholeShare), 'f', -1, 64)
	case v.CanFloat():
		return rounded(v.Float())
	}
	return cmp.Or(strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", "_"), "-")
}

func rounded(f float64) string {
	return cmp.Or(strings.TrimRight(strings.TrimRight(strconv.FormatFloat(f, 'f', 3, 64), "0"), "."), "0")
}

// reported says of a draw that it waits, or what became of it and how long that took. Of several it counts those that ended alike.
func (p *play) reported(draws ...*drawing) string {
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
	require.NotNil(p.t, e.By(), p.line)
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

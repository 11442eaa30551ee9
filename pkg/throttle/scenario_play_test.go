package throttle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
)

// A play is a running scenario with its limiters, draws, loops and services by name.
type play struct {
	t        *testing.T
	main     string // the limit that is meant without a name
	limits   map[string]Limiter
	sharers  map[string]*script
	draws    map[string][]*drawing
	services map[string]*service
	crews    map[string]*crew
	refusal  *Error // the last one
	clerk    *clerk
	watched  slotWaits
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

// End implements scenario.World. At the end the invariants of all limits are checked.
func (p *play) End() {
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

// Do implements scenario.World.
func (p *play) Do(name string, line *scenario.Order) string {
	o := &order{play: p, Order: line}
	if do, ok := actions[name]; ok {
		do(o)
		return ""
	}
	require.Contains(p.t, questions, name, o.Line)
	return questions[name](o)
}

// An order is a command of a play.
type order struct {
	*play
	*scenario.Order

	last Limiter // that was named
}

// modes are the modes of a ramp by name.
var modes = map[string]any{"scheduled": RampScheduled{}, "onlyIfUsed": RampOnlyIfUsed{}, "goBackN": RampGoBackN{}}

// limiter returns the limiter of a name, or of tags.
func (o *order) limiter(who string) Limiter {
	base, tags, named := strings.Cut(who, ":")
	if o.last = o.limits[base]; o.last == nil {
		base, tags, named = o.main, who, true
	}
	require.Contains(o.T, o.limits, base, o.Line)
	if o.last = o.limits[base]; named {
		o.last = ForTags(o.last, strings.Split(strings.ReplaceAll(tags, "-", ""), "+")...)
	}
	return o.last
}

// holder takes the name of a limiter, the first one without it, and returns it as a sharer sees it.
func (o *order) holder() sharing.Holder {
	l := o.limits[o.main]
	if len(o.Words) > 0 && o.limits[o.Words[0]] != nil {
		l = o.limits[o.Word("")]
	}
	if f, ok := l.(*InFlight); ok {
		return slotHolder{f}
	}
	return rateHolder{as[*Throttle](o.T, l)}
}

func (o *order) limit() *Throttle { return as[rateHolder](o.T, o.holder()).Throttle }

// permits does something with the permits of draws.
func (o *order) permits(name string, do func(p Permit)) {
	o.reported(o.draws[name]...)
	for _, d := range o.draws[name] {
		do(d.permit)
	}
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
	require.NotNil(p.t, e.By())
	require.Equal(p.t, e.Reason != ReasonClosed, errors.Is(d.err, ErrThrottled))
	p.refusal = e
	some := *e
	some.Reason, some.Cost = "", 0
	words := append([]string{string(e.Reason)}, strings.Fields(scenario.NewOrder(p.t, "", "").Tell(some))...)
	if errors.Is(d.err, context.DeadlineExceeded) {
		words = append(words, "deadline")
	}
	return strings.Join(append(words, took), " ")
}

package gate

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Pauses records a limiter's pauses, and how long they hold it. Times are nanoseconds since the limiter was made. It has no clock and no
// lock.
type Pauses struct {
	list []limit.Paused // in force or over, at most one for each tag
	// end is when the pause ends that holds the limiter. Until adds a stagger, so that the processors of a pool do not all start at one
	// instant. sharing.Never: unknown. Invariant: Until >= end. Both are in the past when nothing holds it.
	end   int64
	Until int64
	from  int64        // when it began
	by    limit.Paused // the pause that holds it
	Count int64        // pauses that have held the limiter
}

// stagger returns the delay of a start after d of pause: a twentieth to a tenth of it, at most a second. It is sharing.Never less than the
// time by which an end may be later without this processor learning of it; see consensus.Member.Pause.
func stagger(d time.Duration, chance float64) int64 {
	return int64(min(d/20, 250*time.Millisecond)) + int64(chance*float64(min(d/20, 750*time.Millisecond)))
}

// Holds reports whether the limiter is held at now.
func (p *Pauses) Holds(now int64) bool { return now < p.Until }

// Left returns how long it is still held; known is false if that is until a resume.
func (p *Pauses) Left(now int64) (d time.Duration, known bool) {
	if p.Until == sharing.Never {
		return 0, false
	}
	return time.Duration(max(p.Until-now, 0)), true
}

// Put puts a list of pauses in force at now, for a limiter with this tag. since turns a time into nanoseconds; chance is a number from 0 to
// 1.
func (p *Pauses) Put(list []limit.Paused, tag string, now int64, since func(time.Time) int64, chance float64) {
	p.list = append([]limit.Paused(nil), list...)
	end := int64(0)
	var by limit.Paused
	for _, e := range list {
		at := int64(sharing.Never)
		if !e.Until.IsZero() {
			at = since(e.Until)
		}
		if (e.Tag == "" || e.Tag == tag) && at > end {
			end, by = at, e
		}
	}
	held := p.Holds(now)
	if end <= now {
		if held && p.end > now { // it ends before its time
			p.end, p.Until = now, now+int64(chance*float64(min(time.Duration(now-p.from)/10, time.Second)))
		}
		return
	}
	p.by = by
	if !held || p.end <= now {
		p.from = now
		p.Count++
	}
	switch moved := time.Duration(end - p.end); {
	case end == sharing.Never:
		p.Until = sharing.Never
	case !held || p.end == sharing.Never || moved > time.Second || moved < -time.Second:
		p.Until = end + stagger(time.Duration(end-now), chance)
	default:
		p.Until += int64(moved) // it is known a little more exactly
	}
	p.end = end
}

// Tags returns the pauses of tags other than the limiter's own.
func (p *Pauses) Tags(own string) (list []limit.Paused) {
	for _, e := range p.list {
		if e.Tag != "" && e.Tag != own {
			list = append(list, e)
		}
	}
	return list
}

// add returns the list with one more pause: of two of the same tag the later end counts.
func (p *Pauses) add(e limit.Paused, now time.Time) (list []limit.Paused, inForce limit.Paused) {
	inForce = e
	for _, o := range p.list {
		switch {
		case !outlasts(o.Until, now): // over
		case o.Tag != e.Tag:
			list = append(list, o)
		case !outlasts(e.Until, o.Until):
			inForce = o
		}
	}
	return append(list, inForce), inForce
}

// without returns the list without the pause of a tag.
func (p *Pauses) without(tag string) (list []limit.Paused) {
	for _, o := range p.list {
		if o.Tag != tag {
			list = append(list, o)
		}
	}
	return list
}

// of returns the pause that a draw for a tag is under at now, beside that of the limiter's own tag: the one that ends last.
func (p *Pauses) of(tag, own string, now time.Time) (worst limit.Paused, paused bool) {
	for _, o := range p.list {
		concerns := o.Tag == "" || o.Tag == own || o.Tag == tag
		if concerns && outlasts(o.Until, now) && (!paused || outlasts(o.Until, worst.Until)) {
			worst, paused = o, true
		}
	}
	return worst, paused
}

// outlasts reports whether the end a of a pause comes after b. The zero Time is later than all others.
func outlasts(a, b time.Time) bool { return !b.IsZero() && (a.IsZero() || a.After(b)) }

// Status returns the pause that holds the limiter at now, for its status; nil: none does. Times are counted from base.
func (p *Pauses) Status(now int64, base time.Time) *limit.Paused {
	if !p.Holds(now) {
		return nil
	}
	s := p.by
	if s.Until = (time.Time{}); p.Until != sharing.Never {
		s.Until = base.Add(time.Duration(p.Until))
	}
	return &s
}

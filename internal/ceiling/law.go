package ceiling

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
)

// A Law is one processor's view of the limit in force. Times are logical, in microseconds. The zero Law is no limit. It is not safe for
// concurrent use.
type Law struct {
	Config

	// Override replaces every configured limit; Max 0: there is none. Per 0 is the configured period.
	Override Rate
	// File replaces the configured limits of all processors, as a changed settings file says; Max 0: no file has changed. Per is as of Override.
	File Rate
	// Lowest is the lowest configured limit of all other live processors; the zero Rate if no other reports one.
	Lowest Rate
	// Others counts the other live processors that report their limit.
	Others int
	// Announced is the limit that the pool follows: what the called service announces, as the pool agrees, or the lowest First; the zero Rate: none.
	Announced Rate
	// Unsure means that the pool may have just begun. The ramp then stays at Min and takes no step.
	Unsure bool

	// Ramp and Backoff are the states that move.
	Ramp    state.Shared[ramp.State]
	Backoff state.Shared[backoff.State]
}

// Limit returns the limit in force without ramp and backoff: the override, or that of the file, or the lowest configured limit. Of the
// last two, an announced one that is lower and to be followed replaces it.
func (l *Law) Limit() Rate {
	own := l.Config.Limit
	limit := own
	switch {
	case l.File.Max > 0:
		limit = l.File.in(own.Per)
	case l.Lowest.Max > 0 && l.Lowest.Below(limit):
		limit = l.Lowest
	}
	limit = l.follow(limit)
	if l.Override.Max > 0 {
		limit = l.Override.in(own.Per)
	}
	top := Rate{own.Max * MaxRaise, own.Per}
	if l.Hard {
		top = own
	}
	if top.Below(limit) {
		limit = top
	}
	return limit
}

// Overridden reports whether the limit in force is the override, not lowered by this processor's own configuration.
func (l *Law) Overridden() bool {
	o, limit := l.Override, l.Limit()
	return o.Max > 0 && limit.Max == o.Max && (o.Per == 0 || limit.Per == o.Per)
}

// Filed is Overridden for the file.
func (l *Law) Filed() bool {
	o, limit := l.File, l.Limit()
	return l.Override.Max == 0 && o.Max > 0 && limit == o.in(limit.Per)
}

// At returns the ceiling at a time, in tokens per period of the configured limit: the lowest from then on until another time. So a falling
// ceiling is in force before it has fallen. 0: there is no limit.
func (l *Law) At(t, until int64) float64 {
	if l.Config.Limit.Max == 0 {
		return 0
	}
	granted := l.Granted(t, until)
	if !l.Adapts {
		return granted
	}
	return min(granted, l.accepted(t))
}

// Granted is At without refusals by the called service.
func (l *Law) Granted(t, until int64) float64 {
	if l.Config.Limit.Max == 0 {
		return 0
	}
	per := l.Config.Limit.Per
	limit := l.Limit().Tokens(per)
	if !l.Ramps {
		return limit
	}
	s := l.Ramp.State
	if l.Ramp.Unreadable || l.Unsure || s == (ramp.State{}) {
		return min(limit, max(float64(l.Config.Ramp.Min), l.tokenEach()))
	}
	line := l.RampConfig().Ceiling(s)
	at := min(line.At(t), line.At(until)) * float64(per.Microseconds()) / float64(s.Per)
	return min(limit, max(at, l.tokenEach()))
}

// accepted returns how much of the limit in force the called service leaves at a time.
func (l *Law) accepted(t int64) float64 {
	limit := l.Limit().Tokens(l.Config.Limit.Per)
	if l.Backoff.Unreadable || l.Backoff.State.Free() {
		return limit
	}
	return limit * (l.BackoffConfig().Ceiling(l.Backoff.State, t) / backoff.Whole)
}

// Refused reports whether refusals by the called service lower the ceiling at a time.
func (l *Law) Refused(t int64) bool { return l.Adapts && l.accepted(t) < l.Granted(t, t) }

// tokenEach returns the ceiling of a hard limit at which an even share of the burst is one token. Below it no processor could draw if all
// are busy, and a ramp that depends on use would not move. 0 for any other limit.
func (l *Law) tokenEach() float64 {
	if !l.Hard {
		return 0
	}
	return float64(l.Others+1) * float64(l.Config.Limit.Max) / float64(l.Burst) * margin
}

// RampConfig returns the ramp to the limit in force. Min keeps its rate, but is at most Max.
func (l *Law) RampConfig() ramp.Config {
	c, limit := l.Config.Ramp, l.Limit()
	if limit == l.Config.Limit {
		return c
	}
	low := Rate{c.Min, c.Per}.Tokens(limit.Per)
	if limit.Max > maxTokens { // an override far above a large limit: any finer unit will do
		limit.Max, low = maxTokens, low*maxTokens/float64(limit.Max)
	}
	c.Max, c.Per = limit.Max, limit.Per
	c.Min = max(1, min(int64(low), c.Max))
	return c
}

// BackoffConfig returns the limit in force for package backoff. The reserved part keeps its rate. For a hard limit it leaves each processor
// at least one token.
func (l *Law) BackoffConfig() backoff.Config {
	limit := l.Limit()
	return backoff.Config{
		Max: limit.Max, Per: backoffPer(limit.Per),
		Reserved: l.reserved(limit.Tokens(l.Config.Limit.Per), l.tokenEach()),
	}
}

// Part returns the law by which a process lowers its own share at once when calls are refused. ceiling is the pool's, in tokens per period
// of the configured limit. least is the part of the share that is always used, from 0 to 1.
func (c *Config) Part(ceiling, least float64) backoff.Config {
	reserved := max(c.reserved(ceiling, 0), int64(min(least*margin, 1)*backoff.Whole))
	return backoff.Config{Max: 1, Per: time.Second, Reserved: reserved}
}

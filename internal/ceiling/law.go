package ceiling

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
)

// A Law is the limit in force as one processor knows it. Times are logical, in
// microseconds. The zero Law is no limit. It is not safe for concurrent use.
type Law struct {
	Config

	// Override takes the place of every configured limit; Max 0: there is none. Per 0 is
	// the configured period.
	Override Rate
	// Lowest is the lowest limit that another live processor is configured with; the zero
	// Rate if no other tells one.
	Lowest Rate
	// Others counts the other live processors that tell their limit.
	Others int
	// Unsure says that it cannot be told yet whether the pool has just begun. The ramp then
	// stands at Min and makes no step.
	Unsure bool

	// Ramp and Backoff are the states of what moves.
	Ramp    Shared[ramp.State]
	Backoff Shared[backoff.State]
}

// Limit returns the limit in force, without what moves: the override, or the lowest
// configured limit.
func (l *Law) Limit() Rate {
	own := l.Config.Limit
	limit := own
	if l.Lowest.Max > 0 && l.Lowest.Below(limit) {
		limit = l.Lowest
	}
	if l.Override.Max > 0 {
		if limit = l.Override; limit.Per == 0 {
			limit.Per = own.Per
		}
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

// Overridden tells whether the limit in force is the override, so that nothing of this
// processor's own keeps it below that.
func (l *Law) Overridden() bool {
	o, limit := l.Override, l.Limit()
	return o.Max > 0 && limit.Max == o.Max && (o.Per == 0 || limit.Per == o.Per)
}

// At returns the ceiling at a time, in tokens per period of the configured limit: the
// lowest from then on until another time. So a ceiling that falls is in force before it
// has fallen. 0: there is no limit.
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

// Granted is At whatever the called service refuses.
func (l *Law) Granted(t, until int64) float64 {
	if l.Config.Limit.Max == 0 {
		return 0
	}
	per := l.Config.Limit.Per
	limit := l.Limit().Tokens(per)
	if !l.Ramps {
		return limit
	}
	state := l.Ramp.State
	if l.Ramp.Unreadable || l.Unsure || state == (ramp.State{}) {
		return min(limit, max(float64(l.Config.Ramp.Min), l.tokenEach()))
	}
	line := l.RampConfig().Ceiling(state)
	at := min(line.At(t), line.At(until)) * float64(per.Microseconds()) / float64(state.Per)
	return min(limit, max(at, l.tokenEach()))
}

// accepted is what the called service leaves of the limit in force at a time.
func (l *Law) accepted(t int64) float64 {
	limit := l.Limit().Tokens(l.Config.Limit.Per)
	if l.Backoff.Unreadable || l.Backoff.State.Free() {
		return limit
	}
	return limit * (l.BackoffConfig().Ceiling(l.Backoff.State, t) / backoff.Whole)
}

// Refused tells whether refusals of the called service lower the ceiling at a time.
func (l *Law) Refused(t int64) bool { return l.Adapts && l.accepted(t) < l.Granted(t, t) }

// tokenEach is the ceiling of a hard limit that leaves an even share of the burst one token.
// Below it no processor could draw if all are busy, and a ramp that waits for what is used
// would stay where it is. 0 for any other limit.
func (l *Law) tokenEach() float64 {
	if !l.Hard {
		return 0
	}
	return float64(l.Others+1) * float64(l.Config.Limit.Max) / float64(l.Burst) * margin
}

// RampConfig is the ramp to the limit in force. Min keeps its rate, but is never above Max.
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

// BackoffConfig is the limit in force as the backoff takes it. What is reserved keeps its
// rate. Of a hard limit it is at least as much as leaves each processor one token.
func (l *Law) BackoffConfig() backoff.Config {
	limit := l.Limit()
	return backoff.Config{
		Max: limit.Max, Per: backoffPer(limit.Per),
		Reserved: l.reserved(limit.Tokens(l.Config.Limit.Per), l.tokenEach()),
	}
}

// Part is the law by which a process lowers its own share at once when calls are refused.
// ceiling is that of the pool, in tokens per period of the configured limit, and least the
// part of the share that is always used, from 0 to 1.
func (c *Config) Part(ceiling, least float64) backoff.Config {
	reserved := max(c.reserved(ceiling, 0), int64(min(least*margin, 1)*backoff.Whole))
	return backoff.Config{Max: 1, Per: time.Second, Reserved: reserved}
}

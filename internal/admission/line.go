package admission

import (
	"cmp"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A line holds the turns of the messages that an Admitter has denied and that were nacked.
type line struct {
	mu    sync.Mutex
	turns map[queue]*turns
}

// A queue identifies a line of messages: by a limiter that has named itself, or by the source of a tag's tokens.
type queue struct {
	by  throttle.Limiter // nil: it is not known
	tag string           // empty with by, and where the limiter knows no tags
}

// mostQueues is how many queues may have turns at a time, before finished ones are dropped.
const mostQueues = 1024

// turn takes the next turn for a denied message that must not come before after. It returns when the message is to come, and how long its
// tokens take. If the latter is not known, it returns after and 0.
func (g *Admitter) turn(tag string, denied *throttle.Error, after time.Duration) (again, each time.Duration) {
	by, of := queue{by: denied.By()}, denied.By() // of several limiters the one that the message lacks tokens of
	if of == nil {
		of = g.limiter(tag)
		if hook.TellsTags(g.Limiter) {
			by.tag = tagname.Short(tag)
		}
	}
	each = accrues(of, denied.Cost)
	if each == 0 {
		return after, 0
	}
	now := time.Now() // monotonic: the wait is this process's own
	g.line.mu.Lock()
	defer g.line.mu.Unlock()
	t := g.line.turns[by]
	if t == nil {
		t = g.line.add(by, now)
	}
	again = t.take(now, after, each, g.patience()/2)
	if n, ok := of.(interface {
		NoteAway(n int, after time.Duration)
	}); ok {
		n.NoteAway(denied.Cost, again)
	}
	return again, each
}

// add begins the turns of a queue. mu is held.
func (l *line) add(by queue, now time.Time) *turns {
	if len(l.turns) >= mostQueues {
		for other, t := range l.turns {
			if t.last.Before(now) {
				delete(l.turns, other)
			}
		}
	}
	if l.turns == nil {
		l.turns = make(map[queue]*turns)
	}
	t := new(turns)
	if len(l.turns) < mostQueues { // else it has no line, as before
		l.turns[by] = t
	}
	return t
}

// accrues is how long cost tokens of l take in this processor's share, or in its larger share to come when it lacks tokens. It is 0 when
// that is not known, or never.
func accrues(l throttle.Limiter, cost int) time.Duration {
	s, ok := l.(interface{ Status() throttle.Status })
	if !ok || cost <= 0 {
		return 0
	}
	st := s.Status()
	rate := max(st.Rate, st.Limit.Rate()*float64(st.Lease.Even)/float64(limit.WholeShare))
	each := float64(cost) / rate * float64(time.Second)
	if rate <= 0 || each > math.MaxInt64/4 {
		return 0
	}
	return time.Duration(each)
}

// patience is how long a message waits at most when it comes again: the shorter of its own wait and its batch's.
func (g *Admitter) patience() time.Duration {
	if g.MaxWait > 0 && (g.Budget <= 0 || g.MaxWait < g.Budget) {
		return g.MaxWait
	}
	return g.Budget
}

func (g *Admitter) logger() *slog.Logger { return cmp.Or(g.Log, slog.Default()) }

package admission

import (
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Bounds of Admitter.Ahead.
const (
	maxAhead = 64
	aheadOf  = time.Millisecond      // of what the limiter earns
	aheadFor = 10 * time.Millisecond // at the handler's pace
)

// A Pace is how fast a handler took the messages of its last batch. Its methods may be called from any number of goroutines at once. The
// zero Pace is unknown.
type Pace struct{ each atomic.Int64 } // nanoseconds for a message; 0: not known

// Note records a batch: n messages in some time.
func (p *Pace) Note(n int, took time.Duration) {
	if n > 0 {
		p.each.Store(max(int64(took)/int64(n), 1))
	}
}

// Ahead returns how many messages of one token each may be admitted before the handler takes them, so that it finds the next one ready. It
// is the smallest of the limiter's earnings in a millisecond, the messages that the handler takes in ten at its pace, and 64. A window at
// the called service can exceed its grants by at most so many calls, a thousandth of a second's grants. As many may follow a pause, a lower
// limit or the end of a share. They come within ten milliseconds, or later if the handler has become slower since its last batch.
//
// Ahead returns 0 if that is less than one message, or if the handler's pace is not known. It also returns 0 for a hard or a strict limit,
// which promise more, and for a Limiter that is no *throttle.Throttle. That means several limits at once, or calls in flight, which are
// held for as long as a message waits.
func (g *Admitter) Ahead(p *Pace) int {
	t, ok := g.Limiter.(*throttle.Throttle)
	each := p.each.Load()
	if !ok || each == 0 || t.Limit().Hard || t.Limit().Strict {
		return 0
	}
	st := t.Status()
	earned := st.Rate * aheadOf.Seconds() * (1 + 1e-6) // a Rate is rounded down
	return int(min(earned, float64(int64(aheadFor)/each), maxAhead))
}

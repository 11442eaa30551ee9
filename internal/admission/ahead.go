package admission

import (
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Bounds of Gate.Ahead.
const (
	maxAhead = 64
	aheadOf  = time.Millisecond      // of what the limiter earns
	aheadFor = 10 * time.Millisecond // at the handler's pace
)

// A Pace is how fast a handler took the messages of its last batch. Its methods may be called from any number
// of goroutines at once. The zero Pace knows of none yet.
type Pace struct{ each atomic.Int64 } // nanoseconds for a message; 0: not known

// Note takes note of a batch: n messages in some time.
func (p *Pace) Note(n int, took time.Duration) {
	if n > 0 {
		p.each.Store(max(int64(took)/int64(n), 1))
	}
}

// Ahead returns how many messages of one token each may be admitted before the handler takes them, so that it
// finds the next one ready: what the limiter earns in a millisecond, and no more than the handler takes in
// ten at its pace, at most 64. By so many calls at most a window at the called service can see more than was granted
// in it, which is a thousandth of what a second grants, and so many may follow a pause, a lower limit or the end of
// a share: within ten milliseconds, or later where the handler has become slower since its last batch.
//
// 0 where that is less than one message, for a handler whose pace is not known, for a hard or a strict limit, which
// promise more, and for a Limiter that is no *throttle.Throttle: several limits at once, or calls in flight, which
// are held for as long as a message waits.
func (g *Gate) Ahead(p *Pace) int {
	t, ok := g.Limiter.(*throttle.Throttle)
	each := p.each.Load()
	if !ok || each == 0 || t.Limit().Hard || t.Limit().Strict {
		return 0
	}
	st := t.Status()
	earned := st.Rate * aheadOf.Seconds() * (1 + 1e-6) // a Rate is rounded down
	return int(min(earned, float64(int64(aheadFor)/each), maxAhead))
}

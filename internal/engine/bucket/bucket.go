package bucket

import (
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Bucket holds the tokens of one limiter. Draw, Peek and Undraw may be called from any goroutine at any time. Everything else needs the
// limiter's lock. Begin it before use.
//
// Draws go by the gate, a segment: the present one, or a finished one, which keeps draws out while callers wait in the queue.
type Bucket struct {
	Scale
	config Config
	read   func() int64 // the time, in nanoseconds since the limiter was made

	current   atomic.Pointer[Segment]
	_         [64]byte // the words below change with every draw
	granted   atomic.Int64
	forfeited atomic.Int64
	contended atomic.Int64 // when a swap failed last
	_         [64]byte

	seg      *Segment // the present segment
	credited int64    // units given back since the beginning
	kept     int64    // position in granted up to which permits cannot be given back any more
	owable   int64    // units that can be owed
	void     int64    // units in granted that nobody received: fences, and units collected in vain
}

// Begin makes a bucket without a share. read returns the time in nanoseconds since the limiter was made; it may be called from any
// goroutine.
func (b *Bucket) Begin(c Config, read func() int64) {
	b.config, b.Scale, b.read = c, newScale(c), read
	b.owable = maxDebt
	if c.Debt > 0 {
		b.owable = b.Units(min(c.Debt, maxDebt>>b.Shift))
	}
	b.seg = b.segment(limit.Lease{Reason: limit.ReasonNoShare}, 0, 0, 0)
	b.current.Store(b.seg)
}

// Draw takes units if they are at hand at now, and returns the position of the draw in the total of all grants.
//
// Order matters. Draw reads granted before everything else. Every change of the segment or of forfeited that could let a draw take too much
// ends with a change of granted. So a draw that saw anything older fails to swap.
func (b *Bucket) Draw(units, now int64) (pos int64, ok bool) {
	for {
		granted := b.granted.Load()
		s := b.current.Load()
		if now < s.Start {
			now = b.read() // the segment is newer than the clock reading
		}
		if now >= s.Until {
			return 0, false
		}
		forfeited := b.forfeited.Load()
		level := s.At(now) - forfeited - granted
		if over := level - s.Capacity; over > 0 {
			if !b.forfeited.CompareAndSwap(forfeited, forfeited+over) {
				continue
			}
			level = s.Capacity
		}
		if level < units {
			return 0, false
		}
		if b.granted.CompareAndSwap(granted, granted+units) {
			return granted, true
		}
		now = b.standBack()
	}
}

// standBack is called when a swap has failed, because another processor draws too, and returns the time. A single failure may be chance,
// and the draw goes on at once. When another swap failed a moment ago it waits some ten microseconds. This leaves the word to the other
// processor for a while, which then draws from its own cache. That is faster for both than taking the word from each other at every draw.
// It is the constant back-off of Dice, Hendler and Mirsky, "Lightweight contention management for efficient compare-and-swap operations",
// Euro-Par 2013.
func (b *Bucket) standBack() (now int64) {
	now = b.read()
	if last := b.contended.Swap(now); now-last > int64(100*time.Microsecond) {
		return now
	}
	for range 500 { // clock readings, not a time: the clock of a test may stand still
		now = b.read()
	}
	return now
}

// Peek is Draw without drawing.
func (b *Bucket) Peek(units, now int64) bool {
	granted := b.granted.Load()
	s := b.current.Load()
	now = max(now, s.Start)
	return now < s.Until && min(s.At(now)-b.forfeited.Load()-granted, s.Capacity) >= units
}

// Undraw takes the total of grants back to where a draw at pos found it. It returns false, and does nothing, when something was added to
// the total since.
func (b *Bucket) Undraw(pos, units int64) bool { return b.granted.CompareAndSwap(pos+units, pos) }

// Law returns the present segment.
func (b *Bucket) Law() *Segment { return b.seg }

// Current returns the segment by which draws go. It needs no lock.
func (b *Bucket) Current() *Segment { return b.current.Load() }

// Open lets draws go by s.
func (b *Bucket) Open(s *Segment) { b.current.Store(s) }

// Shut keeps draws out. paused is the time until which a pause does so, or 0. It makes no new segment if that is so already: each caller
// that comes to the queue or leaves it shuts the bucket again.
func (b *Bucket) Shut(paused int64) {
	if s := b.current.Load(); s.Behind != b.seg || s.Paused != paused {
		b.current.Store(&Segment{Behind: b.seg, Paused: paused})
	}
}

// Fence makes every draw fail that has read anything before this moment.
func (b *Bucket) Fence() {
	b.void++
	b.granted.Add(1)
	b.forfeited.Add(-1)
}

// Level returns the units in the bucket at now; below 0 for debt. Draws may lower it at any moment while the gate is open.
func (b *Bucket) Level(now int64) int64 {
	return b.seg.By(now) - b.forfeited.Load() - b.granted.Load()
}

// WholeTokens returns the whole tokens in the bucket at now, below 0 for debt.
func (b *Bucket) WholeTokens(now int64) int { return int(b.Level(now) >> b.Shift) }

// Trim forfeits the units above room at now.
func (b *Bucket) Trim(now, room int64) {
	for {
		forfeited := b.forfeited.Load()
		over := b.seg.By(now) - forfeited - b.granted.Load() - room
		if over <= 0 || b.forfeited.CompareAndSwap(forfeited, forfeited+over) {
			return
		}
	}
}

// Take takes units while the gate is shut, and returns the position of the draw.
func (b *Bucket) Take(units int64) (pos int64) { return b.granted.Add(units) - units }

// TakeFrom takes units from a bucket that may hold room at now, against draws that need no lock.
func (b *Bucket) TakeFrom(now, units, room int64) (pos int64, ok bool) {
	for {
		b.Trim(now, room)
		granted := b.granted.Load()
		if b.seg.By(now)-b.forfeited.Load()-granted < units {
			return 0, false
		}
		if b.granted.CompareAndSwap(granted, granted+units) {
			return granted, true
		}
	}
}

// Deposit adds units that did not come from the share.
func (b *Bucket) Deposit(units int64) { b.forfeited.Add(-units) }

// Waste notes units that were granted and that nobody will use.
func (b *Bucket) Waste(units int64) { b.void += units }

// PutBack is Waste for units that go back into the bucket, up to its capacity.
func (b *Bucket) PutBack(now, units int64) {
	b.void += units
	b.Deposit(b.fitting(now, units))
}

// fitting returns how many of so many units the bucket has room for at now; none without a share in force.
func (b *Bucket) fitting(now, units int64) int64 {
	if !b.seg.Valid(now) {
		return 0
	}
	return max(0, min(units, b.seg.Capacity-b.Level(now)))
}

// Gone reports whether the share has gone since the grants up to position end.
func (b *Bucket) Gone(end int64) bool { return end < b.kept }

// Drawn returns the total of grants, in units, without those that nobody received.
func (b *Bucket) Drawn() int64 { return b.granted.Load() - b.void }

// Granted returns the position of the next draw.
func (b *Bucket) Granted() int64 { return b.granted.Load() }

// Credited returns the total given back, in units.
func (b *Bucket) Credited() int64 { return b.credited }

// Fits reports whether the share of s can ever grant so many units at once. Only a hard limit has draws that do not fit: others collect
// them.
func (b *Bucket) Fits(s *Segment, units int64) bool {
	return !b.config.Hard || units <= s.Capacity
}

package throttle

import (
	"math"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
)

// fits reports whether the present share can ever grant so many units at once. Only a hard limit has draws that do not fit: others collect
// them. The lock is held.
func (t *rateLimiter) fits(units int64) bool { return t.fitsIn(t.bucket.Law(), units) }

// units returns the least that w can go on with, in units of the bucket.
func (t *rateLimiter) units(w *waiter) int64 { return t.bucket.Units(min(w.Least, t.maxCost)) }

// fitsIn is fits for the share of s.
func (t *rateLimiter) fitsIn(s *bucket.Segment, units int64) bool { return t.bucket.Fits(s, units) }

// setAside lets others pass a draw that the share cannot grant at once: it waits for a share, not for tokens. The lock is held.
func (t *rateLimiter) setAside(w *waiter) bool {
	return t.limit.Hard && !t.fits(t.units(w)) && t.queue.SetAside(w)
}

// head returns the first of the waiting callers, or one that others pass if all are set aside; nil: nobody waits. The lock is held.
func (t *rateLimiter) head() *waiter {
	if t.queue.First != nil {
		return t.queue.First
	}
	for w := range t.queue.Aside() {
		return w
	}
	return nil
}

// lacks remembers that a draw of n tokens was refused, so that a hard limit demands a share that can grant it.
func (t *rateLimiter) lacks(n int) {
	if !t.limit.Hard || n > t.limit.maxCost() {
		return
	}
	for {
		was := t.lacked.Load()
		if int64(n) <= was || t.lacked.CompareAndSwap(was, int64(n)) {
			return
		}
	}
}

// hardDemand raises a demand to the share that grants the largest draw refused or waiting since the processor was idle. Below that share
// nothing is granted, and the policy gives nobody more than its demand. The lock is held.
func (t *rateLimiter) hardDemand(demand int64) int64 {
	t.usage.Need = max(t.usage.Need, t.lacked.Swap(0), 1)
	if w := t.queue.First; w != nil {
		t.usage.Need = max(t.usage.Need, int64(w.Least))
	}
	for w := range t.queue.Aside() {
		t.usage.Need = max(t.usage.Need, int64(w.Least))
	}
	if demand == 0 {
		t.usage.Need = 0
		return 0
	}
	share := float64(t.bucket.HardShare(t.bucket.Units(int(t.usage.Need)))) / t.raised()
	return max(demand, int64(min(float64(wholeShare), math.Ceil(share))))
}

// needs returns the smallest and the largest share that waiting draws need which an even share can never grant; see sharing.Report. A draw
// counts until it is granted: the share must not go before. The lock is held.
func (t *rateLimiter) needs() (least [2]int64) {
	if !t.limit.Hard {
		return least
	}
	for w := range t.queue.All() {
		n := t.bucket.HardShare(t.units(w))
		if n <= t.bucket.Law().Lease.Even {
			continue
		}
		// The share in force is that of the pool times what is left of the limit.
		switch n = int64(min(math.Ceil(float64(n)/t.raised()), float64(2*wholeShare))); {
		case n > wholeShare: // not under the ceiling in force
		case least[0] == 0:
			least = [2]int64{n, n}
		default:
			least = [2]int64{min(least[0], n), max(least[1], n)}
		}
	}
	return least
}

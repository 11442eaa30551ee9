package throttle

import (
	"sync/atomic"
)

// A page remembers which permits of a run were settled, with one bit for each token granted in the run. A permit points at the page that
// covers its position. So settling twice is noticed without a lock and without an allocation for each permit. The garbage collector frees a
// page with the last permit of its run.
type page struct {
	t     *rateLimiter
	first int64 // position of the first unit covered
	bits  [pageTokens / 64]atomic.Uint64
}

const pageTokens = 4096

func newPage(t *rateLimiter, first int64) *page { return &page{t: t, first: first} }

// cell returns the page that covers a position that was just drawn.
func (t *rateLimiter) cell(pos int64) *page {
	p := t.page.Load()
	if pos >= p.first && (pos-p.first)>>(t.bucket.Shift&63) < pageTokens {
		return p
	}
	return t.turnPage(p, pos)
}

// turnPage makes a page that begins at pos. Which page covers a position does
// not matter, because only one permit has that position.
func (t *rateLimiter) turnPage(old *page, pos int64) *page {
	p := newPage(t, pos)
	if pos > old.first {
		t.page.CompareAndSwap(old, p)
	}
	return p
}

// settle is called by Permit.Settle.
func (p *page) settle(pos int64, n, used int) {
	p.settleBeside(pos, n, max(used, 0), drop{})
}

func (p *page) settleBeside(pos int64, n, used int, _ drop) drop {
	if !p.once(pos) || used == n {
		return drop{}
	}
	return p.t.droppedBy("", p.t.correct(pos, n, min(used, maxTokens)))
}

// once reports whether the permit at a position, which the page covers, is settled now for the first time. Two permits are at least one token
// apart, so no two share a bit.
func (p *page) once(pos int64) bool {
	i := (pos - p.first) >> p.t.bucket.Shift
	mask := uint64(1) << (i % 64)
	return p.bits[i/64].Or(mask)&mask == 0
}

// correct books the difference between the drawn and the used tokens of a permit, and returns how many tokens of debt it does not book.
func (t *rateLimiter) correct(pos int64, n, used int) (dropped int) {
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	switch {
	case used > n:
		dropped = t.owe(now, used-n)
	case t.issuing() || t.limit.Strict: // the slot is over
	case t.limit.Hard:
		t.giveBack(pos+t.bucket.Units(n), t.bucket.Units(n-used))
	case !t.gate.Closed.Load() && t.bucket.Refund(now, pos, n, used):
		t.serve(now)
	}
	return dropped
}

// giveBack is for a hard limit: it gives back n units drawn by a permit whose draw ended at position end. The lock is held.
func (t *rateLimiter) giveBack(end, n int64) {
	if t.bucket.Gone(end) || t.gate.Closed.Load() {
		return
	}
	t.bucket.Shut(0)
	t.bucket.Fence()
	now := t.gate.Now()
	t.bucket.RefundHard(now, end, n)
	t.publish()
	t.serve(now)
}

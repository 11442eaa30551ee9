package throttle

import (
	"sync/atomic"
	"time"
)

// A page remembers which of a run of permits were settled, one bit for each token
// that was granted in the run. A permit points at the page that covers its
// position, so that settling twice is noticed without a lock and without
// allocating for each permit; the garbage collector frees a page with the last
// permit of its run.
type page struct {
	t     *Throttle
	first int64 // position of the first unit covered
	bits  [pageTokens / 64]atomic.Uint64
}

const pageTokens = 4096

func newPage(t *Throttle, first int64) *page { return &page{t: t, first: first} }

// index returns the bit for a position, and whether the page covers it. Two
// permits are at least one token apart, so no two share a bit.
func (p *page) index(pos int64) (int64, bool) {
	i := (pos - p.first) >> p.t.scale.shift
	return i, pos >= p.first && i < pageTokens
}

// cell returns the page that covers a position that was just drawn.
func (t *Throttle) cell(pos int64) *page {
	p := t.page.Load()
	if pos >= p.first && (pos-p.first)>>(t.scale.shift&63) < pageTokens { // as index has it
		return p
	}
	return t.turnPage(p, pos)
}

// turnPage makes a page that begins at pos. Which page covers a position does
// not matter, because only one permit has that position.
func (t *Throttle) turnPage(old *page, pos int64) *page {
	p := newPage(t, pos)
	if pos > old.first {
		t.page.CompareAndSwap(old, p)
	}
	return p
}

// settle is called by Permit.Settle.
func (p *page) settle(pos int64, n, used int) {
	i, ok := p.index(pos)
	if !ok {
		return
	}
	mask := uint64(1) << (i % 64)
	if p.bits[i/64].Or(mask)&mask != 0 {
		return // settled before
	}
	if used != n {
		p.t.correct(pos, n, min(used, maxTokens))
	}
}

// correct books the difference between what a permit drew and what was used.
//
// What was not used is credited only if at most one period's worth of tokens was
// granted since the permit was drawn. Every credit can be granted again, so this
// bounds what can be held back from one window and used in the next by one
// period's worth, whatever the calls do. A share that falls takes the same part of
// that with it, for good: otherwise every processor that the share comes round to
// could use a period's worth of its own. A hard limit has a stricter rule; see
// giveBack.
func (t *Throttle) correct(pos int64, n, used int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if used > n {
		room := t.seg.capacity
		if !t.seg.valid(now) {
			room = 0
		}
		if t.issuing() {
			t.ripen(now)
		} else {
			t.trim(now, room) // what overflowed pays no debt
		}
		t.forfeited.Add(t.debt(now, used-n))
		t.fence()
		if t.limit.Hard {
			t.kept = t.granted.Load()
		}
		t.retime(now)
		t.serve(now)
		return
	}
	if t.issuing() || t.limit.Strict {
		return // the slot is over
	}
	if t.limit.Hard {
		t.giveBack(pos+t.scale.units(n), t.scale.units(n-used))
		return
	}
	period := max(t.period(t.seg.lease.Share), t.seg.capacity, t.scale.units(n))
	late := pos+t.scale.units(n) < t.kept || (t.granted.Load()-pos)>>t.scale.shift > period>>t.scale.shift
	if !t.seg.valid(now) || t.closed.Load() || late && !skip(ruleGiveBack) {
		return
	}
	back := min(t.scale.units(n-used), t.seg.capacity-t.level(now))
	if back > 0 {
		t.credited += back
		t.forfeited.Add(-back)
		t.serve(now)
	}
}

// Debt tells how long the share in force takes to earn what is owed: 0 without
// debt; see Holder.
func (t *Throttle) Debt() time.Duration {
	if t.limit.Max == 0 || skip(ruleDebtAtLeave) {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.issuing() {
		return 0
	}
	now := t.now()
	wait, ok := t.seg.wait(-t.level(now))
	if !ok || wait > 0 && !t.seg.valid(now) {
		return never
	}
	return wait
}

// period is what a share earns in one period, in units.
func (t *Throttle) period(share int64) int64 {
	return int64(float64(t.scale.units(t.limit.Max)) * float64(share) / float64(WholeShare))
}

// maxDebt is the most that a bucket can owe, in units: at least a year's worth of
// the whole limit.
const maxDebt = maxUnits / 2

// debt returns what n tokens of debt add to what is owed at now. t.mu is held.
func (t *Throttle) debt(now int64, n int) int64 {
	units := t.scale.units(min(n, maxDebt>>t.scale.shift))
	return max(0, min(units, maxDebt+t.level(now)))
}

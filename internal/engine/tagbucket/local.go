package tagbucket

import (
	"math"
	"slices"
	"time"
)

// A tagBucket gives out total tokens per per, with burst saved up. A tag bucket without a total gives out any number.
type tagBucket struct {
	total, burst int64
	per          time.Duration
	paid         int64 // up to when everything is paid for
	room         int64 // tokens that can be saved up beyond burst, for a draw that needs more
	known        [2]price
}

// A price is a cost that was computed before: most draws are of the same size.
type price struct{ n, cost int64 }

// cost returns how long n tokens take to earn. It remembers that of the burst and that of the last draw.
func (t *tagBucket) cost(n int64) int64 {
	p := &t.known[0]
	if n == t.burst {
		p = &t.known[1]
	}
	if p.n != n {
		*p = price{n, t.work(n)}
	}
	return p.cost
}

func (t *tagBucket) work(n int64) int64 {
	c := math.Ceil(float64(n) * float64(t.per) / float64(t.total))
	return int64(min(c, math.MaxInt64/4))
}

// settle drops the time above the burst.
func (t *tagBucket) settle(now int64) { t.paid = max(t.paid, now-t.cost(max(t.burst, t.room))) }

// has reports whether there are n tokens.
func (t *tagBucket) has(now, n int64) bool {
	if t.total == 0 {
		return true
	}
	t.settle(now)
	return t.paid+t.cost(n) <= now
}

// full reports whether there is as much as can be saved up.
func (t *tagBucket) full(now int64) bool { return t.total == 0 || t.paid <= now-t.cost(t.burst) }

// level returns how many tokens there are.
func (t *tagBucket) level(now int64) int64 {
	if t.total == 0 {
		return math.MaxInt64
	}
	t.settle(now)
	n := int64(float64(max(now-t.paid, 0)) * float64(t.total) / float64(t.per))
	for n > 0 && t.paid+t.cost(n) > now { // rounding, either way
		n--
	}
	if t.paid+t.cost(n+1) <= now {
		n++
	}
	return n
}

// take takes n tokens, which may make debt.
func (t *tagBucket) take(now, n int64) {
	if t.total == 0 {
		return
	}
	t.settle(now)
	t.paid = min(t.paid, math.MaxInt64/4) + t.cost(n)
}

// giveBack gives n tokens back.
func (t *tagBucket) giveBack(now, n int64) {
	if t.total == 0 {
		return
	}
	t.settle(now)
	t.paid -= t.cost(n)
}

// due returns how long it takes until n tokens are there.
func (t *tagBucket) due(now, n int64) time.Duration {
	if t.total == 0 {
		return 0
	}
	t.settle(now)
	return time.Duration(max(t.paid+t.cost(n)-now, 0))
}

// Begin copies the tokens and spending of another Bucket of the same terms into a new one without a pool, and owes n tokens: see Owe.
func (s *Bucket) Begin(now int64, other *Bucket, n int64) {
	s.tagBucket, s.budgets, s.epoch = other.tagBucket, slices.Clone(other.budgets), other.epoch
	s.tagBucket.room = 0
	s.Owe(now, n)
}

package tagbucket

import (
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Terms are the settings of a Bucket.
type Terms struct {
	// Quota has its defaults filled in.
	Quota limit.Quota
	// Pooled says that the tokens come in batches.
	Pooled bool
	// Part is the part of the quota that is this process's own, without a pool: above 0 to 1, and 1 with budgets.
	Part float64
	// Debt is for how long debt can hold draws back. 0: three times Per of the quota, and at least ten minutes.
	Debt time.Duration
	// Wall is the wall clock at time 0.
	Wall time.Time
}

// Endless is the tag bucket of a tag that needs none.
const Endless = math.MaxInt64

// A Bucket holds the tokens of one tag. It is not safe for use by several goroutines at once.
type Bucket struct {
	terms     Terms
	needed    bool // a draw needs tokens of it
	tagBucket tagBucket
	bound     bound
	budgets   []localBudget
	// epoch counts the budget windows that have begun; see localBudget.
	epoch    int64
	anchor   time.Time // the wall clock at anchorAt
	anchorAt int64

	batches []batch // in the order of their ends
	batchID int64
	voided  int64 // the newest batch that cannot be given back any more
	window  int64 // the newest that is known
	grant   sharing.TagGrant
	again   int64 // more can come then; 0: not known
	// free is the earliest time at which the total begins to earn the pool's next grant; dry says that it is known.
	free int64
	dry  bool

	back, backSpent, owed int64
	owing                 tagBucket // what this processor has said that it owes, where tokens come in batches
	shadowed              int64
	last                  *Draw
}

// A batch is a sharing.Batch in nanoseconds.
type batch struct {
	id, tokens, from, until, window int64
}

// A Draw records the origin of tokens that were taken. Draws of the same origin are one pointer. The zero Draw stands for tokens that
// needed no tag bucket.
type Draw struct {
	batch, window, epoch int64
	counted              bool
}

// New returns an empty tag bucket.
func New(t Terms) *Bucket {
	s := &Bucket{terms: t, anchor: t.Wall, last: &Draw{}}
	q := t.Quota
	s.needed = needed(q)
	if t.Pooled {
		return s
	}
	part := func(n int64) int64 { return max(1, int64(float64(n)*t.Part)) }
	if q.Total != 0 {
		total, per, burst := q.Enforced()
		s.tagBucket = tagBucket{total: part(total), per: per, burst: part(burst)}
	}
	for _, b := range q.Budgets {
		s.budgets = append(s.budgets, localBudget{Budget: b})
	}
	return s
}

// Needed reports whether draws of the tag need the tag bucket.
func (s *Bucket) Needed() bool { return s.needed }

// Holds reports whether a lack of tokens can hold draws back.
func (s *Bucket) Holds() bool { return s.quotaHolds() || s.bound.rate != 0 }

// quotaHolds reports whether a lack of tokens of the quota holds draws back.
func (s *Bucket) quotaHolds() bool { return s.needed && !s.terms.Quota.Shadow }

// Largest returns the most tokens that one draw can take by the quota in force, and the field of the quota that bounds it; empty: none does.
func (s *Bucket) Largest() (most int64, by string) {
	if !s.needed {
		return Endless, ""
	}
	return Largest(s.terms.Quota)
}

// Largest is Bucket.Largest for a quota.
func Largest(q limit.Quota) (most int64, by string) {
	most = Endless
	if q.Shadow {
		return most, ""
	}
	if q.Total != 0 {
		if most, by = int64(q.Total), "total"; q.Burst > q.Total {
			most, by = int64(q.Burst), "burst"
		}
	}
	if n := q.Largest(); n != 0 && n < most {
		most, by = n, "burst, with hard"
	}
	for _, b := range q.Budgets {
		if b.Then != limit.ThenLower && b.Amount < most {
			most, by = b.Amount, "budgets"
		}
	}
	return most, by
}

// Anchor sets the wall clock's present time.
func (s *Bucket) Anchor(now int64, wall time.Time) {
	s.anchor, s.anchorAt = wall, now
}

// AtHand returns how many tokens can be taken now.
func (s *Bucket) AtHand(now int64) int64 {
	n := s.bound.left(now)
	if s.quotaHolds() {
		n = min(n, s.level(now))
	}
	return n
}

// Has reports whether n tokens, at least one, can be taken now: that AtHand is at least n.
func (s *Bucket) Has(now, n int64) bool {
	return (!s.quotaHolds() || s.has(now, n)) && s.bound.has(now, n)
}

// needed reports whether draws need tokens of the quota.
func needed(q limit.Quota) bool { return q.Total != 0 || q.Blocked || len(q.Budgets) != 0 }

// has is Has as if the tag were not in shadow.
func (s *Bucket) has(now, n int64) bool {
	if s.terms.Quota.Blocked {
		return false
	}
	if s.terms.Pooled {
		return s.usable(now) >= n
	}
	s.roll(now)
	if left, _ := s.budget(); left < n {
		return false
	}
	return s.tagBucket.has(now, n)
}

// level is AtHand as if the tag were not in shadow.
func (s *Bucket) level(now int64) int64 {
	if s.terms.Quota.Blocked {
		return 0
	}
	if s.terms.Pooled {
		return s.usable(now)
	}
	s.roll(now)
	left, _ := s.budget()
	return min(left, s.tagBucket.level(now))
}

// usable returns the sum of the batches that are valid now.
func (s *Bucket) usable(now int64) (sum int64) {
	for i := range s.batches {
		if l := &s.batches[i]; l.from <= now && now < l.until {
			sum += l.tokens
		}
	}
	return sum
}

// Take takes n tokens, if they are in hand. d stays valid for Return. The bound does not refuse: a caller that obeys it first asks Has or
// AtHand.
func (s *Bucket) Take(now, n int64) (d *Draw, ok bool) {
	if d, ok = s.takeQuota(now, n); ok {
		s.bound.take(now, n)
	}
	return d, ok
}

func (s *Bucket) takeQuota(now, n int64) (d *Draw, ok bool) {
	if !s.needed {
		return s.origin(Draw{}), true
	}
	if !s.has(now, n) {
		if !s.terms.Quota.Shadow {
			return nil, false
		}
		s.shadowed += n
		return s.origin(Draw{}), true
	}
	if !s.terms.Pooled {
		s.tagBucket.take(now, n)
		s.spend(n, s.epoch)
		return s.origin(Draw{epoch: s.epoch, counted: true}), true
	}
	from := Draw{counted: true}
	for i := range s.batches {
		l := &s.batches[i]
		if l.from > now || now >= l.until || l.tokens == 0 {
			continue
		}
		if from.batch == 0 {
			from.batch, from.window = l.id, l.window
		}
		from.window = min(from.window, l.window)
		k := min(n, l.tokens)
		l.tokens -= k
		if n -= k; n == 0 {
			break
		}
	}
	return s.origin(from), true
}

// origin returns a pointer to d, the same as long as d is the same.
func (s *Bucket) origin(d Draw) *Draw {
	if *s.last != d {
		s.last = &Draw{batch: d.batch, window: d.window, epoch: d.epoch, counted: d.counted} // not &d, which would be made each time
	}
	return s.last
}

// Return gives n taken tokens back. They can be taken again at once, or when their batch is over they go back to the pool.
func (s *Bucket) Return(now int64, d *Draw, n int64) {
	s.bound.giveBack(now, n)
	if !d.counted {
		return
	}
	if !s.terms.Pooled {
		s.roll(now)
		s.tagBucket.giveBack(now, n)
		s.spend(-n, d.epoch)
		return
	}
	for i := range s.batches {
		if l := &s.batches[i]; l.id == d.batch && now < l.until {
			l.tokens += n
			return
		}
	}
	s.lapse(n, d.batch, d.window)
}

// Reach lets a tag bucket save up n tokens for draws that need them; 0: no more than its burst. A bound saves up for largest, the largest of
// these draws.
func (s *Bucket) Reach(now, largest, n int64) {
	if s.bound.rate != 0 {
		s.bound.largest = max(s.bound.largest, largest)
	}
	if s.tagBucket.total != 0 {
		s.tagBucket.settle(now)
		s.tagBucket.room = n
	}
}

// Room returns the number of tokens that can be saved up; Endless if they come in batches.
func (s *Bucket) Room() int64 {
	n := int64(Endless)
	if s.tagBucket.total != 0 && s.quotaHolds() {
		n = max(s.tagBucket.burst, s.tagBucket.room)
	}
	if s.bound.rate != 0 {
		n = min(n, int64(s.bound.room()))
	}
	return n
}

// Due returns how long it takes until n tokens can be taken, not counting returned ones, and why. If known is false, the real time is
// unknown, and d is a lower bound, which may be 0.
func (s *Bucket) Due(now, n int64) (d time.Duration, why limit.Reason, known bool) {
	d, why, known = s.dueQuota(now, n)
	if wait := s.bound.due(now, n); wait > d {
		if d = wait; known {
			why = limit.ReasonAdaptive
		}
	}
	return d, why, known
}

// Expect returns how long n tokens will take as things stand, for a caller that comes back then; 0 when that is unknown. It is never less
// than Due.
func (s *Bucket) Expect(now, n int64) time.Duration {
	d, _, known := s.Due(now, n)
	if !s.quotaHolds() || !s.terms.Pooled || known && s.grant.Lacks != limit.ReasonQuota {
		return d
	}
	return max(d, s.expectBatches(now, n))
}

// Lacks returns why n tokens cannot be taken.
func (s *Bucket) Lacks(now, n int64) limit.Reason {
	switch _, why, _ := s.Due(now, n); {
	case why != "":
		return why
	case !s.quotaHolds() && s.bound.rate != 0:
		return limit.ReasonAdaptive
	}
	return limit.ReasonQuota
}

func (s *Bucket) dueQuota(now, n int64) (d time.Duration, why limit.Reason, known bool) {
	if !s.quotaHolds() {
		return 0, "", true
	}
	if s.terms.Quota.Blocked {
		return 0, limit.ReasonQuota, false // until somebody changes the quota
	}
	if s.terms.Pooled {
		return s.dueBatches(now, n)
	}
	s.roll(now)
	d, why = s.tagBucket.due(now, n), limit.ReasonQuota
	for i := range s.budgets {
		b := &s.budgets[i]
		if wait := b.end.Sub(s.wall(now)); b.Then != limit.ThenLower && b.left() < n && wait > d {
			d, why = wait, limit.ReasonBudget
		}
	}
	return d, why, true
}

// Earns returns how long it takes to earn n tokens: at least a nanosecond.
func (s *Bucket) Earns(n int64) time.Duration {
	q, d := s.terms.Quota, 1.0
	if q.Total != 0 {
		d = float64(n) * float64(q.Per) / float64(q.Total)
	}
	return max(time.Duration(min(max(d, 1), sharing.Never/2)), s.bound.earns(n))
}

// FallsBack reports whether draws that the budgets refuse go to a fallback.
func (s *Bucket) FallsBack() bool {
	if _, by := s.budget(); by != nil {
		return by.Then == limit.ThenFallback
	}
	return slices.ContainsFunc(s.terms.Quota.Budgets, func(b limit.Budget) bool { return b.Then == limit.ThenFallback })
}

// Lowered reports whether the tag is in the lower class because a budget is spent.
func (s *Bucket) Lowered(now int64) bool {
	if s.terms.Pooled {
		return s.grant.Lowered
	}
	s.roll(now)
	return slices.ContainsFunc(s.budgets, func(b localBudget) bool { return b.Then == limit.ThenLower && b.left() == 0 })
}

// Spent returns the tokens used and allowed in the budget window that ends first; 0 without budgets.
func (s *Bucket) Spent(now int64) (spent, amount int64) {
	if s.terms.Pooled {
		return s.grant.Spent, s.grant.Budget
	}
	s.roll(now)
	var first *localBudget
	for i := range s.budgets {
		if b := &s.budgets[i]; first == nil || b.end.Before(first.end) {
			first = b
		}
	}
	if first == nil {
		return 0, 0
	}
	return first.spent, first.Amount
}

// Idle reports whether a new Bucket of the same terms would do the same from now on. Then this one has nothing in hand, owes nothing, is
// full, and has spent of no budget whose window lasts. The pool knows the spending of its own budgets.
func (s *Bucket) Idle(now int64) bool {
	if s.back != 0 || s.owed != 0 {
		return false
	}
	if s.terms.Pooled {
		return !slices.ContainsFunc(s.batches, func(l batch) bool { return l.tokens != 0 && now < l.until })
	}
	s.roll(now)
	return s.tagBucket.full(now) && !slices.ContainsFunc(s.budgets, func(b localBudget) bool { return b.spent != 0 })
}

// Shadowed returns how many tokens were granted that the quota would have refused if it were not in shadow.
func (s *Bucket) Shadowed() int64 { return s.shadowed }

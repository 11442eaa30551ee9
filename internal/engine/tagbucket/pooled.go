package tagbucket

import (
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Report fills in the tag bucket's report to the pool, and gives up the batches that end within keep of now.
func (s *Bucket) Report(now, keep int64, r *sharing.TagReport) {
	kept := s.batches[:0]
	for _, l := range s.batches {
		switch {
		case l.until <= now: // its rest has expired: nobody can use it any more, so the budget has it back
			s.lapse(l.tokens, l.id, l.window)
		case l.until <= now+keep:
			if l.id > s.voided {
				s.giveUp(l.tokens, l.window)
			}
		default:
			if r.InHand == 0 { // they come by their ends
				r.Lasts = time.Duration(l.until - now)
			}
			r.InHand += l.tokens
			kept = append(kept, l)
		}
	}
	s.batches = kept
	r.Back, r.BackSpent, r.Owed = s.back, s.backSpent, s.owed
	s.back, s.backSpent, s.owed = 0, 0, 0
}

// lapse gives up n tokens of a batch that is over. Those of a hard quota are lost: others would use them in a window that they were not in.
func (s *Bucket) lapse(n, batchID, window int64) {
	if !s.terms.Quota.Hard && batchID > s.voided {
		s.giveUp(n, window)
	}
}

// giveUp notes that n tokens of a window go back to the pool.
func (s *Bucket) giveUp(n, window int64) {
	s.back += n
	s.free -= s.worth(n) // it can come again
	if window == s.window {
		s.backSpent += n
	}
}

// Grant takes the pool's grant. The other arguments are times in nanoseconds: from and until of its batch, and again, when more can come, 0
// if not known.
func (s *Bucket) Grant(g sharing.TagGrant, from, until, again int64) {
	if !s.terms.Pooled {
		return
	}
	s.needed, s.again = g.Needed || s.terms.Quota.Blocked, again
	if g.Void {
		s.batches = nil
	}
	if g.Void || g.Forgotten {
		s.back, s.backSpent, s.voided, s.dry = 0, 0, s.batchID, false
	}
	if g.Batch.Window > s.window {
		s.window = g.Batch.Window
		s.backSpent = 0 // of a window before
	}
	if g.Batch.Tokens > 0 {
		s.batchID++
		s.batches = append(s.batches, batch{id: s.batchID, tokens: g.Batch.Tokens, from: from, until: until, window: g.Batch.Window})
		slices.SortStableFunc(s.batches, func(a, b batch) int { return int(min(max(a.until-b.until, -1), 1)) })
	}
	if g.Lacks == limit.ReasonQuota && again > 0 && g.AgainFor == 0 && s.terms.Quota.Total != 0 {
		s.free, s.dry = again-s.worth(1), true
	}
	g.Batch = sharing.Batch{}
	s.grant = g
}

// worth returns how long the total takes to earn n tokens, in nanoseconds; 0 without a total.
func (s *Bucket) worth(n int64) int64 {
	if s.terms.Quota.Total == 0 {
		return 0
	}
	total, per, _ := s.terms.Quota.Enforced()
	t := tagBucket{total: total, per: per}
	return t.work(n)
}

// handOver is how late reserved tokens may arrive before the wait for them counts as unknown. Until then callers go on collecting tokens of
// the limit.
const handOver = 100 * time.Millisecond

// dueBatches is Due for tokens that come in batches. Nobody knows when the next one comes. But it has no more than the total has earned since the
// pool had nothing left.
func (s *Bucket) dueBatches(now, n int64) (d time.Duration, why limit.Reason, known bool) {
	have, from := s.coming(now, n)
	if have >= n {
		if from > now {
			why = s.lacks()
		}
		return time.Duration(from - now), why, true
	}
	at, again := now, s.again
	if again <= now && s.grant.Coming > 0 {
		again += int64(handOver)
	}
	if known = again > now && n >= s.grant.AgainFor; known {
		at = again
	}
	if s.dry {
		at = max(at, s.free+s.worth(n-have))
	}
	return time.Duration(at - now), s.lacks(), known
}

// lacks returns why there are no more batches.
func (s *Bucket) lacks() limit.Reason {
	switch {
	case s.grant.Lacks != "" && s.grant.Lacks != limit.ReasonQuota:
		return s.grant.Lacks
	case s.terms.Quota.Total == 0:
		return limit.ReasonNoShare // no total is used, and no budget is spent: nothing of it is here yet
	}
	return limit.ReasonQuota
}

// coming returns how many of n tokens are in hand or in batches that are valid later, and from when on.
func (s *Bucket) coming(now, n int64) (have, from int64) {
	if have = s.usable(now); have >= n {
		return have, now
	}
	var later []batch
	for _, l := range s.batches {
		if l.from > now {
			later = append(later, l)
		}
	}
	slices.SortFunc(later, func(a, b batch) int { return int(min(max(a.from-b.from, -1), 1)) })
	for _, l := range later {
		if have += l.tokens; have >= n {
			return have, l.from
		}
	}
	return have, now
}

// expectBatches is Expect for tokens that come in batches. Missing tokens come at the rate that the tag should get here, or at that of the total
// while none is known. The rate here may soon be all of the total.
func (s *Bucket) expectBatches(now, n int64) time.Duration {
	if s.terms.Quota.Total == 0 {
		return 0
	}
	have, _ := s.coming(now, n)
	rest := max(n-have, 0)
	wait := time.Duration(s.worth(rest))
	most := time.Duration(sharing.Never / 2)
	if s.grant.Soon != 0 {
		most = wait + s.grant.Soon
	}
	if s.grant.Rate != 0 {
		wait = max(wait, time.Duration(min(float64(rest)/s.grant.Rate*float64(time.Second), float64(most))))
	}
	return wait
}

// SetQuota puts another quota in force. Its tokens come in batches.
func (s *Bucket) SetQuota(q limit.Quota) {
	if s.terms.Pooled {
		s.terms.Quota = q
		s.needed = needed(q)
		s.dry = false
	}
}

// NextChange is when granted tokens become valid, or when more can come; 0 when both are unknown.
func (s *Bucket) NextChange(now int64) int64 {
	next := int64(math.MaxInt64)
	for _, l := range s.batches {
		if l.from > now {
			next = min(next, l.from)
		}
	}
	if s.again > now {
		next = min(next, s.again)
	}
	if next == math.MaxInt64 {
		return 0
	}
	return next
}

package tagbucket

import (
	"math"
	"time"
)

// leastDebt is the shortest default of the time for which debt can hold draws back.
const leastDebt = 10 * time.Minute

// longestDebt returns for how long debt can hold draws back.
func (s *Bucket) longestDebt() time.Duration {
	switch {
	case s.terms.Debt > 0:
		return s.terms.Debt
	case s.terms.Quota.Total != 0:
		return max(3*s.terms.Quota.Per, leastDebt)
	}
	return leastDebt
}

// Owe books n tokens for use beyond the tokens taken. It returns how many of them it does not book, for debt holds draws back no longer
// than Terms.Debt.
func (s *Bucket) Owe(now, n int64) (dropped int64) {
	s.bound.owe(now, n, s.longestDebt())
	if !s.needed {
		return 0
	}
	if s.terms.Pooled {
		q := s.terms.Quota
		s.owing = tagBucket{total: int64(q.Total), per: q.Per, paid: s.owing.paid}
		booked := s.owing.owe(now, n, s.longestDebt())
		s.owed += booked
		return n - booked
	}
	s.roll(now)
	booked := s.tagBucket.owe(now, n, s.longestDebt())
	s.spend(booked, s.epoch)
	return n - booked
}

// Repay gives back n tokens of no draw in particular.
func (s *Bucket) Repay(now, n int64) {
	s.bound.giveBack(now, n)
	switch {
	case !s.needed:
	case s.terms.Pooled:
		s.owing.giveBack(now, n)
		paid := min(n, s.owed)
		s.owed -= paid
		if !s.terms.Quota.Hard {
			s.giveUp(n-paid, s.window)
		}
	default:
		s.roll(now)
		s.tagBucket.giveBack(now, n)
		s.spend(-n, s.epoch)
	}
}

// Forgive cancels the debt, except the part already reported to the pool.
func (s *Bucket) Forgive(now int64) {
	s.owed = 0
	s.owing.paid = min(s.owing.paid, now)
	s.tagBucket.paid = min(s.tagBucket.paid, now)
	s.bound.level = max(s.bound.level, 0)
}

// owe takes as many of n tokens as leave everything paid for within longest from now, and returns their number.
func (t *tagBucket) owe(now, n int64, longest time.Duration) int64 {
	if t.total == 0 {
		return n
	}
	t.settle(now)
	room := float64(now-t.paid) + float64(longest)
	n = min(n, int64(max(math.Floor(room*float64(t.total)/float64(t.per)), 0)))
	t.take(now, n)
	return n
}

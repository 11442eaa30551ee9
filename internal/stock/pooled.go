package stock

import (
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
	"github.com/numaproj-contrib/numathrottle/internal/quota"
)

// Report fills in what the pool is told of the stock, and gives up what ends within keep of now.
func (s *Stock) Report(now, keep int64, r *limit.TagReport) {
	kept := s.lots[:0]
	for _, l := range s.lots {
		switch {
		case l.until <= now: // what is left of it ran out: nobody can use it any more, so the budget has it back
			s.lapse(l.tokens, l.id, l.window)
		case l.until <= now+keep:
			if l.id > s.voided {
				s.giveUp(l.tokens, l.window)
			}
		default:
			r.InHand += l.tokens
			kept = append(kept, l)
		}
	}
	s.lots = kept
	r.Back, r.BackSpent, r.Owed = s.back, s.backSpent, s.owed
	s.back, s.backSpent, s.owed = 0, 0, 0
}

// lapse gives up n tokens of a lot that is over. Those of a quota that is hard are lost: others would use them in a window that
// they were not in.
func (s *Stock) lapse(n, lotID, window int64) {
	if !s.terms.Quota.Hard && lotID > s.voided {
		s.giveUp(n, window)
	}
}

// giveUp notes that n tokens of a window go back to the pool.
func (s *Stock) giveUp(n, window int64) {
	s.back += n
	if window == s.window {
		s.backSpent += n
	}
}

// Grant takes what the pool gives. at turns times into nanoseconds: of a lot from and until, and when more can come, which is 0 when
// that is not known.
func (s *Stock) Grant(g limit.TagGrant, from, until, again int64) {
	if !s.terms.Pooled {
		return
	}
	s.needed, s.again = g.Needed, again
	if g.Void {
		s.lots = nil
	}
	if g.Void || g.Forgotten {
		s.back, s.backSpent, s.voided = 0, 0, s.lotID
	}
	if g.Lot.Window > s.window {
		s.window = g.Lot.Window
		s.backSpent = 0 // of a window before
	}
	if g.Lot.Tokens > 0 {
		s.lotID++
		s.lots = append(s.lots, lot{id: s.lotID, tokens: g.Lot.Tokens, from: from, until: until, window: g.Lot.Window})
		slices.SortStableFunc(s.lots, func(a, b lot) int { return int(min(max(a.until-b.until, -1), 1)) })
	}
	g.Lot = limit.Lot{}
	s.grant = g
}

// SetQuota puts another quota in force. Its tokens come in lots.
func (s *Stock) SetQuota(q quota.Quota) {
	if s.terms.Pooled {
		s.terms.Quota = q
		s.needed = q.Total > 0 || len(q.Budgets) > 0
	}
}

// NextChange is when tokens come that are granted already, or when more can come: 0 when neither is known.
func (s *Stock) NextChange(now int64) int64 {
	next := int64(0)
	for _, l := range s.lots {
		if l.from > now && (next == 0 || l.from < next) {
			next = l.from
		}
	}
	if s.again > now && (next == 0 || s.again < next) {
		next = s.again
	}
	return next
}

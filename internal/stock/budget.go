package stock

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/quota"
)

// A purse is one budget of a tag without a pool.
type purse struct {
	quota.Budget
	epoch int64     // of the stock, when the window began
	end   time.Time // of the window, by the wall clock; the zero Time: none has begun
	spent int64
}

// left is what can be spent yet.
func (p *purse) left() int64 { return max(p.Amount-p.spent, 0) }

// roll begins a new window when the one before is over.
func (s *Stock) roll(now int64) {
	if len(s.purses) == 0 || now < s.rollAt {
		return
	}
	wall := s.wall(now)
	s.rollAt = now + int64(time.Minute)
	for i := range s.purses {
		p := &s.purses[i]
		if !wall.Before(p.end) {
			_, p.end = p.Window(wall)
			p.spent = 0
			s.epoch++
			p.epoch = s.epoch
		}
		s.rollAt = min(s.rollAt, now+int64(p.end.Sub(wall)))
	}
}

// wall is the time of the wall clock.
func (s *Stock) wall(now int64) time.Time { return s.anchor.Add(time.Duration(now - s.anchorAt)) }

// spend books n tokens, below 0 for what is given back of an epoch.
func (s *Stock) spend(n, epoch int64) {
	for i := range s.purses {
		p := &s.purses[i]
		if epoch < p.epoch {
			continue
		}
		p.spent = max(p.spent+n, 0)
	}
}

// budget is how many tokens the budgets leave that end a tag's draws, and the one that leaves least; nil: there is none.
func (s *Stock) budget() (left int64, by *purse) {
	left = math.MaxInt64
	for i := range s.purses {
		if p := &s.purses[i]; p.Then != quota.Lower && p.left() < left {
			left, by = p.left(), p
		}
	}
	return left, by
}

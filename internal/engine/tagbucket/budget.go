package tagbucket

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A localBudget is one budget of a tag without a pool.
type localBudget struct {
	limit.Budget
	epoch int64     // of the tag bucket, when the window began
	end   time.Time // of the window, by the wall clock; the zero Time: none has begun
	spent int64
}

// left returns how many tokens can still be spent.
func (b *localBudget) left() int64 { return max(b.Amount-b.spent, 0) }

// roll begins a new window when the one before is over.
func (s *Bucket) roll(now int64) {
	for i := range s.budgets {
		b, wall := &s.budgets[i], s.wall(now)
		if wall.Before(b.end) {
			continue
		}
		_, b.end = b.Window(wall)
		b.spent = 0
		s.epoch++
		b.epoch = s.epoch
	}
}

// wall returns the time of the wall clock.
func (s *Bucket) wall(now int64) time.Time { return s.anchor.Add(time.Duration(now - s.anchorAt)) }

// spend books n tokens of an epoch, below 0 for returned ones.
func (s *Bucket) spend(n, epoch int64) {
	for i := range s.budgets {
		b := &s.budgets[i]
		if epoch < b.epoch {
			continue
		}
		b.spent = max(b.spent+n, 0)
	}
}

// budget returns how many tokens the budgets leave that end a tag's draws, and the one that leaves least; nil: there is none.
func (s *Bucket) budget() (left int64, by *localBudget) {
	left = math.MaxInt64
	for i := range s.budgets {
		if b := &s.budgets[i]; b.Then != limit.ThenLower && b.left() < left {
			left, by = b.left(), b
		}
	}
	return left, by
}

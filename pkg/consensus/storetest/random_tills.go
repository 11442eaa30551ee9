package storetest

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// draws are some draws of a request, mostly none. The windows of their budgets have always begun and never end, and no budget
// is ever spent, for the reference knows nothing of the store's own clock.
func (s *sequence) draws() (draws []driver.Draw) {
	for key := range uint64(4) {
		if s.rng.IntN(5) > 0 {
			continue
		}
		d := driver.Draw{
			Key: key << 62, Version: driver.Version(s.rng.IntN(8) / 7), Total: []int64{0, 1, 77, 1000, 999_999}[s.rng.IntN(5)],
			Per:   []time.Duration{time.Second, 333_333 * time.Microsecond}[s.rng.IntN(2)],
			Burst: s.rng.Int64N(50), Ask: s.rng.Int64N(100), Pattern: s.rng.IntN(3) == 0,
		}
		switch s.rng.IntN(4) {
		case 0:
			d.Back, d.BackPaid = s.rng.Int64N(20), s.paid[d.Key]
			d.BackSpent = s.rng.Int64N(d.Back + 1)
		case 1:
			d.Owed = s.rng.Int64N(20)
		case 2:
			d.Ahead = time.Duration(s.rng.IntN(500)) * time.Millisecond
		}
		for range s.rng.IntN(2) * s.rng.IntN(driver.MaxBudgets+1) {
			d.Budgets = append(d.Budgets, driver.BudgetDraw{
				Amount: driver.MaxAmount, Start: s.rng.Int64N(8), End: 1<<52 - s.rng.Int64N(2), Seen: s.rng.Int64N(1000),
			})
		}
		draws = append(draws, d)
	}
	return draws
}

// busy returns a processor's report on its busiest tags: any bytes.
func (s *sequence) busy() string {
	if s.rng.IntN(3) > 0 {
		return ""
	}
	return "\x00 " + s.body(3)
}

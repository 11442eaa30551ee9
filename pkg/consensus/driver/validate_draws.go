package driver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

func (r *Request) validateDraws() error {
	if len(r.Draws) > wire.MaxDraws {
		return &RequestError{"Draws", fmt.Sprint(len(r.Draws), " tag buckets"), fmt.Sprint("at most ", wire.MaxDraws)}
	}
	seen := make(map[uint64]bool, len(r.Draws))
	for i := range r.Draws {
		d := &r.Draws[i]
		if err := d.Validate(); err != nil {
			return err
		}
		if seen[d.Key] {
			return &RequestError{"Draws", fmt.Sprintf("the key %016x twice", d.Key), "each key once"}
		}
		seen[d.Key] = true
	}
	return nil
}

// Validate returns a *RequestError for the first field that no store accepts, or nil.
func (d *Draw) Validate() error {
	if err := cmp.Or(
		askedWithin("Draws.Version", d.Version, 0, wire.MaxVersion), askedWithin("Draws.Total", d.Total, 0, wire.MaxTokens),
		askedWithin("Draws.Burst", d.Burst, 0, wire.MaxTokens), askedWithin("Draws.Ask", d.Ask, 0, wire.MaxTokens),
		askedWithin("Draws.Back", d.Back, 0, wire.MaxTokens), askedWithin("Draws.Owed", d.Owed, 0, wire.MaxTokens),
		askedWithin("Draws.Ahead", d.Ahead, 0, wire.MaxReach),
	); err != nil {
		return err
	}
	if d.Per < 0 || d.Per > wire.MaxSpacing || d.Per%time.Microsecond != 0 || d.Total > 0 && d.Per < wire.MinPer {
		return &RequestError{"Draws.Per", d.Per.String(), fmt.Sprint("whole microseconds from ", wire.MinPer, " to ", wire.MaxSpacing,
			", and 0 without a Total")}
	}
	if len(d.Budgets) > wire.MaxBudgets {
		return &RequestError{"Draws.Budgets", fmt.Sprint(len(d.Budgets), " budgets"), fmt.Sprint("at most ", wire.MaxBudgets)}
	}
	for i := range d.Budgets {
		if err := d.Budgets[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (b *BudgetDraw) validate() error {
	if err := cmp.Or(askedWithin("Draws.Budgets.Amount", b.Amount, 0, wire.MaxAmount), askedWithin("Draws.Budgets.Seen", b.Seen, 0, maxSpent)); err != nil {
		return err
	}
	if b.Start < 0 || b.End <= b.Start || b.End > maxWindowEnd {
		return &RequestError{
			"Draws.Budgets.Start", fmt.Sprint(b.Start, "us, End ", b.End, "us"),
			fmt.Sprint("from 0 to ", int64(maxWindowEnd), "us, with Start before End"),
		}
	}
	return nil
}

// maxWindowEnd is the latest end of a window, in microseconds: doubles hold it exactly.
const maxWindowEnd = 1 << 52

// checkDrawn refuses draws that no tag bucket gives. The amount asked for is unknown here.
func checkDrawn(draws []Drawn) error {
	if err := within("the number of draws", len(draws), 0, wire.MaxDraws); err != nil {
		return err
	}
	for i := range draws {
		d := &draws[i]
		if err := cmp.Or(
			within("the number of tokens drawn", d.Tokens, 0, wire.MaxTokens), within("when tokens can be used", d.From, 0, wire.MaxReach),
			within("when there are more tokens", d.Again, 0, wire.MaxReach), within("when tokens are earned", d.Paid, 0, wire.MaxMicros),
			within("why tokens lack", d.Lack, 0, LackFull), within("the number of budgets", len(d.Spent), 0, wire.MaxBudgets),
		); err != nil {
			return err
		}
		for _, n := range d.Spent {
			if err := within("what is spent", n, 0, maxSpent); err != nil {
				return err
			}
		}
	}
	return nil
}

package driver

import (
	"fmt"
	"time"
)

func (r *Request) validateDraws() error {
	if len(r.Draws) > MaxDraws {
		return &RequestError{"Draws", fmt.Sprint(len(r.Draws), " tills"), fmt.Sprint("at most ", MaxDraws)}
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
	if d.Version > MaxVersion {
		return &RequestError{"Draws.Version", fmt.Sprint(uint64(d.Version)), fmt.Sprint("0 to ", uint64(MaxVersion))}
	}
	for _, n := range []struct {
		field string
		v     int64
	}{
		{"Total", d.Total},
		{"Burst", d.Burst},
		{"Ask", d.Ask},
		{"Back", d.Back},
		{"BackSpent", d.BackSpent},
		{"Owed", d.Owed},
	} {
		if n.v < 0 || n.v > MaxTokens {
			return &RequestError{"Draws." + n.field, fmt.Sprint(n.v), fmt.Sprint("0 to ", MaxTokens)}
		}
	}
	if d.BackSpent > d.Back {
		return &RequestError{"Draws.BackSpent", fmt.Sprint(d.BackSpent), fmt.Sprint("0 to Back, which is ", d.Back)}
	}
	if d.BackPaid < 0 || d.BackPaid > MaxMicros {
		return &RequestError{"Draws.BackPaid", fmt.Sprint(d.BackPaid), fmt.Sprint("0 to ", int64(MaxMicros))}
	}
	if d.Per < 0 || d.Per > MaxSpacing || d.Per%time.Microsecond != 0 || d.Total > 0 && d.Per < MinPer {
		return &RequestError{"Draws.Per", d.Per.String(), fmt.Sprint("whole microseconds from ", MinPer, " to ", MaxSpacing, ", and 0 without a Total")}
	}
	if d.Ahead < 0 || d.Ahead > MaxReach {
		return &RequestError{"Draws.Ahead", d.Ahead.String(), fmt.Sprint("0 to ", MaxReach)}
	}
	if len(d.Budgets) > MaxBudgets {
		return &RequestError{"Draws.Budgets", fmt.Sprint(len(d.Budgets), " budgets"), fmt.Sprint("at most ", MaxBudgets)}
	}
	for i := range d.Budgets {
		if err := d.Budgets[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (b *BudgetDraw) validate() error {
	if b.Amount < 0 || b.Amount > MaxAmount {
		return &RequestError{"Draws.Budgets.Amount", fmt.Sprint(b.Amount), fmt.Sprint("0 to ", int64(MaxAmount))}
	}
	if b.Start < 0 || b.End <= b.Start || b.End > maxWindowEnd {
		return &RequestError{
			"Draws.Budgets.Start", fmt.Sprint(b.Start, "us, End ", b.End, "us"),
			fmt.Sprint("from 0 to ", int64(maxWindowEnd), "us, with Start before End"),
		}
	}
	if b.Seen < 0 || b.Seen > maxSpent {
		return &RequestError{"Draws.Budgets.Seen", fmt.Sprint(b.Seen), fmt.Sprint("0 to ", int64(maxSpent))}
	}
	return nil
}

// maxWindowEnd is the latest end of a window, in microseconds: doubles hold it exactly.
const maxWindowEnd = 1 << 52

// checkDrawn refuses draws that no till gives. The amount asked for is unknown here.
func checkDrawn(draws []Drawn) error {
	if len(draws) > MaxDraws {
		return outside("the number of draws", fmt.Sprint(len(draws)), fmt.Sprint("at most ", MaxDraws))
	}
	for i := range draws {
		d := &draws[i]
		if d.Tokens < 0 || d.Tokens > MaxTokens {
			return outside("the number of tokens drawn", fmt.Sprint(d.Tokens), fmt.Sprint("0 to ", MaxTokens))
		}
		if err := checkSpan("when tokens can be used", d.From, MaxReach); err != nil {
			return err
		}
		if err := checkSpan("when there are more tokens", d.Again, MaxReach); err != nil {
			return err
		}
		if err := checkSince("when tokens are earned", d.Paid); err != nil {
			return err
		}
		if d.Lack > LackFull {
			return outside("why tokens lack", fmt.Sprint(d.Lack), fmt.Sprint("0 to ", LackFull))
		}
		if len(d.Spent) > MaxBudgets {
			return outside("the number of budgets", fmt.Sprint(len(d.Spent)), fmt.Sprint("at most ", MaxBudgets))
		}
		for _, n := range d.Spent {
			if n < 0 || n > maxSpent {
				return outside("what is spent", fmt.Sprint(n), fmt.Sprint("0 to ", int64(maxSpent)))
			}
		}
	}
	return nil
}

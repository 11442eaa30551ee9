package storetest

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func malformedDraws(p *pool) {
	p.open()
	a := p.proc("a")
	before := a.sync(one(0, half))
	window := func(b driver.BudgetDraw) func(*driver.Draw) {
		return func(d *driver.Draw) { d.Budgets = []driver.BudgetDraw{b} }
	}
	draws := func(of ...driver.Draw) func(*driver.Request) {
		return func(r *driver.Request) { r.Draws = of }
	}
	cases := []spoiled{
		{"Draws", draws(make([]driver.Draw, driver.MaxDraws+1)...)},
		{"Draws", draws(draw(7, 1), draw(7, 1))},
		{"Busy", func(r *driver.Request) { r.Busy = strings.Repeat("b", driver.MaxBusyBytes+1) }},
	}
	for _, c := range []struct {
		field string
		spoil func(*driver.Draw)
	}{
		{"Draws.Version", func(d *driver.Draw) { d.Version = driver.MaxVersion + 1 }},
		{"Draws.Total", func(d *driver.Draw) { d.Total = -1 }},
		{"Draws.Total", func(d *driver.Draw) { d.Total = driver.MaxTokens + 1 }},
		{"Draws.Per", func(d *driver.Draw) { d.Per = driver.MinPer - 1 }},
		{"Draws.Per", func(d *driver.Draw) { d.Per += time.Nanosecond }},
		{"Draws.Per", func(d *driver.Draw) { d.Per = driver.MaxSpacing + time.Second }},
		{"Draws.Burst", func(d *driver.Draw) { d.Burst = -1 }},
		{"Draws.Ask", func(d *driver.Draw) { d.Ask = driver.MaxTokens + 1 }},
		{"Draws.Ahead", func(d *driver.Draw) { d.Ahead = -1 }},
		{"Draws.Ahead", func(d *driver.Draw) { d.Ahead = driver.MaxReach + 1 }},
		{"Draws.Back", func(d *driver.Draw) { d.Back = -1 }},
		{"Draws.BackSpent", func(d *driver.Draw) { d.Back, d.BackSpent = 3, 4 }},
		{"Draws.BackPaid", func(d *driver.Draw) { d.BackPaid = -1 }},
		{"Draws.Owed", func(d *driver.Draw) { d.Owed = -1 }},
		{"Draws.Budgets", func(d *driver.Draw) { d.Budgets = make([]driver.BudgetDraw, driver.MaxBudgets+1) }},
		{"Draws.Budgets.Amount", window(driver.BudgetDraw{Amount: -1, End: 1})},
		{"Draws.Budgets.Start", window(driver.BudgetDraw{Start: 5, End: 5})},
		{"Draws.Budgets.Seen", window(driver.BudgetDraw{End: 5, Seen: -1})},
	} {
		d := draw(7, 1)
		c.spoil(&d)
		cases = append(cases, spoiled{c.field, draws(d)})
	}
	a.malformed(cases)
	require.Equal(p, before.Revision+1, a.sync(one(half, half)).Revision)
}

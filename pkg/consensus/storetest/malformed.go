package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func malformedDraws(p *pool) {
	a, _ := p.open()
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

func malformedReserve(p *pool) {
	p.open()
	good := driver.Reserve{Pool: p.name, Count: 1, Spacing: time.Second, Lease: p.lease}
	for _, c := range []struct {
		field string
		spoil func(*driver.Reserve)
	}{
		{"Pool", func(r *driver.Reserve) { r.Pool = "" }},
		{"Count", func(r *driver.Reserve) { r.Count = -1 }},
		{"Count", func(r *driver.Reserve) { r.Count = driver.MaxSlots + 1 }},
		{"Spacing", func(r *driver.Reserve) { r.Spacing = 0 }},
		{"Spacing", func(r *driver.Reserve) { r.Spacing = driver.MaxSpacing + 1 }},
		{"Ahead", func(r *driver.Reserve) { r.Ahead = -1 }},
		{"Ahead", func(r *driver.Reserve) { r.Ahead = driver.MaxAhead + 1 }},
		{"Revision", func(r *driver.Reserve) { r.Revision = 1 << 63 }},
		{"Lease", func(r *driver.Reserve) { r.Lease = 0 }},
		{"Return", func(r *driver.Reserve) { r.Return = -1 }},
		{"Unused", func(r *driver.Reserve) { r.Unused = driver.MaxSlots + 1 }},
	} {
		req := good
		c.spoil(&req)
		_, err := p.store.Reserve(p.Context(), req)
		requireRequestError(p, err, c.field, req)
	}
	p.proc("a").malformed([]spoiled{
		{"Spacing", func(r *driver.Request) { r.Spacing = driver.MaxSpacing + 1 }},
		{"Strict", func(r *driver.Request) { r.Strict = true }},
		{"SpacingBy", func(r *driver.Request) { r.Spacing, r.SpacingBy = driver.MinSpacing, "limit" }},
		{"SpacingBy", func(r *driver.Request) { // it has none
			r.Spacing, r.SpacingBy, r.Documents = driver.MinSpacing, "limit", []driver.DocumentReport{{Name: "limit"}}
		}},
		{"SpacingBy", func(r *driver.Request) {
			r.SpacingBy, r.Documents = "limit", []driver.DocumentReport{{Name: "limit", Version: 1}}
		}},
	})
	canceled, cancel := context.WithCancel(p.Context())
	cancel()
	_, err := p.store.Reserve(canceled, good)
	require.ErrorIs(p, err, context.Canceled)
}

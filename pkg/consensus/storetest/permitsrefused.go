package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func tooLow(p *pool) {
	p.open()
	a, b := p.proc("a"), p.proc("b")
	interval := driver.Interval(p.lease, 1)
	a.spacing = interval * 2 / 3
	b.spacing = a.spacing
	require.False(p, a.sync(one(0, half)).Issuing, "more than one token an interval")
	require.True(p, b.sync(one(0, half)).Issuing, "less than one for each of two")
	res, _ := p.reserve(p.store, driver.Reserve{Count: 1, Spacing: a.spacing})
	require.True(p, res.Issuing)
	b.leave()
	// One token an interval and processor begins it no more, but only two end it.
	p.eventually("b is removed", func() bool {
		ans := a.sync(one(0, 0))
		require.True(p, ans.Issuing)
		return ans.Time-res.Time > 2*driver.Removal(p.lease).Microseconds()
	})
	a.spacing = interval/2 - time.Millisecond
	p.eventually("permits are issued no more", func() bool { return !a.sync(one(0, 0)).Issuing })
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

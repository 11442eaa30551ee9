package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// epochCases are about when a pool began.
var epochCases = []testCase{
	{name: "a pool begins when nobody is there, and tells how long it slept", run: begins},
	{name: "a store that has forgotten something does not know when the pool began", needs: canSnapshot, run: forgottenBeginning},
}

func begins(p *pool) {
	a, b := p.open()
	first := a.beginning()
	for range 2 {
		require.Equal(p, first.Epoch, b.sync(one(0, 0)).Epoch)
		require.Equal(p, first.Silence, a.sync(one(0, 0)).Silence)
	}
	a.leave()
	require.Equal(p, first.Epoch, b.sync(one(0, 0)).Epoch, "somebody is there")
	leaves := time.Now()
	b.leave()
	left := time.Now()
	pause(wire.Clamp(p.lease) * 2)
	c := p.proc("c")
	slept := time.Since(left)
	second := c.beginning()
	require.Greater(p, second.Epoch, first.Epoch)
	require.GreaterOrEqual(p, second.Epoch, second.Time-wire.Clamp(p.lease).Microseconds())
	require.GreaterOrEqual(p, second.Silence, nearly(slept), "beyond the clamp")
	require.LessOrEqual(p, second.Silence, time.Since(leaves)*21/20+wire.Clamp(p.lease))
	for range 2 {
		ans := c.sync(one(0, 0))
		require.Equal(p, second.Epoch, ans.Epoch)
		require.Equal(p, second.Silence, ans.Silence)
	}
	require.Equal(p, second.Epoch, p.proc("d").sync(one(0, 0)).Epoch)
}

// beginning joins a pool in which nobody is, and returns the first answer that tells
// when it began.
func (a *proc) beginning() driver.Answer {
	a.pool.Helper()
	ans := a.sync(one(0, 0))
	if a.pool.Deferred {
		require.Zero(a.pool, ans.Epoch, "not known yet")
		require.Zero(a.pool, ans.Silence)
		ans = a.sync(one(0, 0))
	} else {
		require.Equal(a.pool, ans.Time, ans.Epoch)
	}
	require.Positive(a.pool, ans.Epoch)
	return ans
}

func forgottenBeginning(p *pool) {
	a, b := p.open()
	a.beginning()
	restore := p.Snapshot(p, p.name)
	b.sync(one(0, 0))
	restore()
	for range 4 {
		require.Positive(p, a.sync(one(0, 0)).Epoch, "nobody has noticed yet")
	}
	ans := b.sync(one(0, 0))
	require.Zero(p, ans.Epoch)
	require.Zero(p, ans.Silence)
	require.Zero(p, a.sync(one(0, 0)).Epoch)
	a.leave()
	b.leave()
	p.proc("c").beginning()
}

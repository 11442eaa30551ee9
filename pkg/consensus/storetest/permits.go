package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A slot is a permit on the store's clock, in nanoseconds, with the spacing in force and its step's time.
type slot struct{ at, spacing, step int64 }

// reserve sends a reservation, and returns the slots with the answer.
func (p *pool) reserve(store driver.Store, req driver.Reserve) (driver.Reserved, []slot) {
	p.Helper()
	res, slots, err := p.tryReserve(store, req)
	require.NoError(p, err)
	return res, slots
}

// tryReserve does the same from any goroutine: a wrong answer is an error.
func (p *pool) tryReserve(store driver.Store, req driver.Reserve) (res driver.Reserved, slots []slot, err error) {
	req.Pool, req.Lease = p.name, p.lease
	if err = p.call(func(ctx context.Context) (err error) {
		res, err = store.Reserve(ctx, req)
		return err
	}); err != nil {
		return res, nil, err
	}
	switch {
	case res.Count < 0 || res.Count > req.Count:
		return res, nil, fmt.Errorf("%d slots of %d", res.Count, req.Count)
	case res.Count == 0 && res.Retry <= 0:
		return res, nil, fmt.Errorf("no slots, and nothing said of when: %+v", res)
	case res.Count == 0:
		return res, nil, nil
	case !res.Issuing || res.Frozen > 0:
		return res, nil, fmt.Errorf("slots though none are issued: %+v", res)
	case res.Spacing < req.Spacing || res.Wait < 0:
		return res, nil, fmt.Errorf("slots closer than allowed, or before the time of the step: %+v", res)
	}
	for i := range res.Count {
		wait := int64(res.Wait) + int64(i)*int64(res.Spacing)
		if wait > int64(req.Ahead)*int64(req.Spacing) {
			return res, nil, fmt.Errorf("slot %d is too far ahead: %+v", i, res)
		}
		slots = append(slots, slot{at: res.Time*1000 + wait, spacing: int64(res.Spacing), step: res.Time * 1000})
	}
	return res, slots, nil
}

// requireSpaced requires that slots are as far apart as they must be.
func (p *pool) requireSpaced(slots []slot) {
	p.Helper()
	slices.SortFunc(slots, func(a, b slot) int { return int(a.at - b.at) })
	for i := 1; i < len(slots); i++ {
		require.GreaterOrEqual(p, slots[i].at-slots[i-1].at, slots[i].spacing, "slots %d and %d of %d are too close", i-1, i, len(slots))
	}
}

// issues makes the pool issue permits: the processor that it returns is strict.
func (p *pool) issues(spacing time.Duration) *proc {
	p.Helper()
	p.open()
	a := p.proc("issues")
	a.spacing, a.strict = spacing, true
	p.eventually("the pool issues permits", func() bool {
		res, _ := p.reserve(p.store, driver.Reserve{Spacing: spacing})
		return a.sync(one(0, whole)).Issuing && res.Issuing && res.Retry <= time.Millisecond
	})
	return a
}

// slotOf reserves one slot, and syncs until there is one.
func (p *pool) slotOf(a *proc, req driver.Reserve) slot {
	p.Helper()
	var slots []slot
	p.eventually("there is a slot", func() bool {
		a.sync(one(0, 0))
		_, slots = p.reserve(p.store, req)
		return len(slots) > 0
	})
	return slots[len(slots)-1]
}

const (
	ms            = time.Millisecond
	permitSpacing = 50 * ms
)

// permitCases are about permits.
var permitCases = []testCase{
	{name: "slots are a spacing apart, whoever asks", run: spaced},
	{name: "a pool that issues no permits, or is not there, grants none", run: func(p *pool) {
		want := driver.Reserve{Count: 1, Spacing: ms}
		res, _ := p.reserve(p.store, want)
		require.Zero(p, res.Count)
		require.False(p, res.Issuing)
		a, _ := p.open()
		require.Equal(p, half, a.share(0, half))
		a.spacing = ms
		require.Equal(p, half, a.share(half, half), "enough to be divided")
		res, _ = p.reserve(p.store, want)
		require.Zero(p, res.Count)
		require.False(p, res.Issuing)
	}},
	{name: "nothing is saved up", run: func(p *pool) {
		a := p.issues(20 * ms)
		first := p.slotOf(a, driver.Reserve{Count: 1, Spacing: 20 * ms})
		p.eventually("ten spacings pass", func() bool {
			return a.sync(one(0, 0)).Time*1000 > first.at+int64(200*ms)
		})
		res, slots := p.reserve(p.store, driver.Reserve{Count: 64, Spacing: 20 * ms})
		require.Equal(p, 1, res.Count)
		require.Equal(p, slots[0].step, slots[0].at, "a slot does not lie before its step")
	}},
	{name: "as many slots are ahead as are allowed", run: func(p *pool) {
		a := p.issues(200 * ms)
		var slots []slot
		for _, ahead := range []int{3, 3, 0, 7} {
			res, more := p.reserve(p.store, driver.Reserve{Count: 64, Ahead: ahead, Spacing: 200 * ms})
			slots = append(slots, more...)
			limit := res.Time*1000 + int64(ahead)*int64(200*ms)
			require.Greater(p, slots[len(slots)-1].at+int64(200*ms), limit, "there could have been one more")
			if res.Count == 0 {
				next := slots[len(slots)-1].at + int64(200*ms)
				require.InDelta(p, next-limit, int64(res.Retry), float64(ms))
			}
		}
		require.GreaterOrEqual(p, len(slots), 7)
		p.requireSpaced(slots)
		require.True(p, a.sync(one(0, 0)).Issuing)
	}},
	{name: "the largest spacing that is named counts", run: func(p *pool) {
		a, b := p.issues(100*ms), p.proc("b")
		b.spacing = 300*ms + 1
		b.sync(one(0, 0))
		res, _ := p.reserve(p.store, driver.Reserve{Count: 3, Ahead: 10, Spacing: 100 * ms})
		require.Equal(p, 300*ms+1, res.Spacing)
		require.Equal(p, 3, res.Count)
		res, _ = p.reserve(p.store, driver.Reserve{Count: 1, Ahead: 100, Spacing: 500 * ms})
		require.Equal(p, 500*ms, res.Spacing)
		a.sync(one(0, 0))
	}},
	{name: "a spacing by the newest version of a document counts at once", run: spacedByDocument},
	{name: "the newest slots can be given back, once", run: slotsGivenBack},
	{name: "while permits are issued nobody is granted a share", run: noShares},
	{name: "permits are spaced by what the processors leave", run: leftOver},
	{name: "no share grows before the last permit is void", run: winds},
	{name: "a limit too low to be divided is issued by itself", run: tooLow},
	{name: "a processor that can use nothing but shares keeps them", run: func(p *pool) {
		a, b := p.open()
		b.spacing = time.Minute
		require.True(p, b.sync(one(0, whole)).Issuing)
		require.Equal(p, half, a.share(0, half))
		require.False(p, b.sync(one(0, half)).Issuing)
	}},
	{name: "a malformed reservation is a RequestError", run: malformedReserve},
	{name: "a revision from the future holds permits", needs: canForget, run: func(p *pool) {
		a := p.issues(50 * ms)
		last := p.slotOf(a, driver.Reserve{Count: 1, Spacing: 50 * ms})
		p.held(a, last, 50*ms, driver.FreezeRollback, a.revision+1000)
	}},
	{name: "permits are held as far ahead as a processor says that its own lie", needs: canForget, run: func(p *pool) {
		a := p.issues(50 * ms)
		p.slotOf(a, driver.Reserve{Count: 1, Spacing: 50 * ms})
		p.reserve(p.store, driver.Reserve{Count: 1, Spacing: 50 * ms, Revision: a.revision + 1000})
		a.reach = 1200 * ms
		frozen := a.sync(one(0, 0))
		require.Positive(p, frozen.Frozen)
		a.reach = 0
		p.eventually("the freeze is over", func() bool { return a.sync(one(0, 0)).Frozen == 0 })
		first := p.slotOf(a, driver.Reserve{Count: 1, Spacing: 50 * ms})
		require.GreaterOrEqual(p, first.at, frozen.Time*1000+int64(frozen.Frozen)+int64(1250*ms))
	}},
}

// permitServerCases are about permits while something happens to the server.
var permitServerCases = []testCase{
	{name: "many permits are spaced, whatever happens to the server", run: manyPermits},
	{name: "another server holds permits", needs: canRestart, run: func(p *pool) {
		a := p.issues(permitSpacing)
		last := p.slotOf(a, driver.Reserve{Count: 1, Spacing: permitSpacing})
		p.Restart(p)
		p.held(a, last, permitSpacing, driver.FreezeIdentity, 0)
	}},
	{name: "a wiped store grants no permits until it is joined, and then holds them", needs: canWipe, run: func(p *pool) { wipedPermits(p, true) }},
	{
		name:  "a wiped store holds permits though nobody wants one before its freeze is over",
		needs: canWipe, run: func(p *pool) { wipedPermits(p, false) },
	},
}

func wipedPermits(p *pool, wanted bool) {
	a := p.issues(permitSpacing)
	p.slotOf(a, driver.Reserve{Count: 1, Spacing: permitSpacing})
	p.Wipe(p)
	if wanted {
		res, _ := p.reserve(p.store, driver.Reserve{Count: 1, Spacing: permitSpacing})
		require.Zero(p, res.Count)
	}
	frozen := a.sync(one(0, 0))
	require.Positive(p, frozen.Frozen)
	if !wanted {
		p.eventually("the freeze is over", func() bool { return a.sync(one(0, 0)).Frozen == 0 })
	}
	first := p.slotOf(a, driver.Reserve{Count: 1, Spacing: permitSpacing, Ahead: 4})
	require.GreaterOrEqual(p, first.at, frozen.Time*1000+int64(frozen.Frozen)+int64(permitSpacing))
}

// held requires that a reservation notices that the store has forgotten something, and that
// none is granted within a spacing of the end of the freeze.
func (p *pool) held(a *proc, last slot, spacing time.Duration, cause driver.FreezeCause, seen uint64) {
	p.Helper()
	sent := time.Now()
	res, _ := p.reserve(p.store, driver.Reserve{Count: 1, Spacing: spacing, Ahead: 4, Revision: seen})
	require.Zero(p, res.Count)
	require.Equal(p, cause, res.FrozenBy)
	require.Positive(p, res.Frozen)
	require.Greater(p, res.Revision, seen)
	end := res.Time*1000 + int64(res.Frozen)
	first := p.slotOf(a, driver.Reserve{Count: 1, Spacing: spacing})
	require.GreaterOrEqual(p, first.at, end+int64(spacing), "too early on the store's clock")
	require.GreaterOrEqual(p, first.at-last.at, int64(spacing))
	require.GreaterOrEqual(p, time.Since(sent), nearly(wire.Removal(p.Longest)))
}

func slotsGivenBack(p *pool) {
	const spacing = 2 * time.Second // longer than all of this takes
	a := p.issues(spacing)
	want := driver.Reserve{Count: 3, Ahead: 50, Spacing: spacing}
	res, slots := p.reserve(p.store, want)
	require.Equal(p, 3, res.Count)
	require.NotZero(p, res.Last)
	back := driver.Reserve{Return: res.Last, Spacing: spacing}
	left, _ := p.reserve(p.store, back)
	require.NotZero(p, left.Last, "two are left")
	next, taken := p.reserve(p.store, driver.Reserve{Count: 1, Ahead: 50, Spacing: spacing})
	require.Equal(p, slots[2].at, taken[0].at, "the slot that was given back")
	a.sync(one(0, 0)) // a slow store may take longer for each half than a silent processor is kept

	// Now neither the same again nor the rest has an effect.
	p.reserve(p.store, back)
	p.reserve(p.store, driver.Reserve{Return: left.Last, Spacing: spacing, Unused: 2})
	_, last := p.reserve(p.store, driver.Reserve{Count: 1, Ahead: 50, Spacing: spacing})
	require.Equal(p, taken[0].at+int64(spacing), last[0].at)
	a.sync(one(0, 0))

	// All of a reservation, and another one in the same step; more than there were is nonsense.
	res, slots = p.reserve(p.store, want)
	p.reserve(p.store, driver.Reserve{Return: res.Last, Unused: 4, Spacing: spacing})
	want.Return, want.Unused = res.Last, 3
	_, again := p.reserve(p.store, want)
	require.Equal(p, at(slots), at(again))
	require.NotEqual(p, res.Last, next.Last)
	a.sync(one(0, 0))
}

func at(slots []slot) (times []int64) {
	for _, s := range slots {
		times = append(times, s.at)
	}
	return times
}

func noShares(p *pool) {
	a, b := p.issues(time.Millisecond), p.proc("b")
	require.Zero(p, b.share(0, whole))
	require.Zero(p, a.share(0, whole))
	ans := b.sync(one(half, whole))
	require.True(p, ans.Issuing)
	require.Zero(p, ans.Share, "what is in use is to be given up")
	require.Equal(p, half, ans.Roster[0].Claim, "but counts")
}

func leftOver(p *pool) {
	const spacing = 20 * time.Millisecond
	a, b := p.open()
	a.spacing = time.Millisecond
	require.Equal(p, half, a.share(0, half))
	b.spacing, b.strict = spacing, true
	require.True(p, b.sync(one(0, 0)).Issuing)
	want := driver.Reserve{Count: 2, Ahead: 10, Spacing: spacing}
	var halved []slot
	p.eventually("a new pool holds no permits any more", func() bool {
		b.sync(one(0, 0))
		_, slots := p.reserve(p.store, want)
		halved = append(halved, slots...)
		return len(halved) > 1
	})
	require.Greater(p, halved[0].spacing, int64(2*spacing-1))
	require.Less(p, halved[0].spacing, int64(2*spacing+2*time.Microsecond))

	a.sync(one(whole*3/4, whole))
	res, _ := p.reserve(p.store, want)
	require.Zero(p, res.Count, "less than a third is left")
	require.Zero(p, a.share(half, whole))
	require.Zero(p, a.share(0, whole))
	_, all := p.reserve(p.store, driver.Reserve{Count: 1, Ahead: 100, Spacing: spacing})
	require.Equal(p, int64(spacing), all[0].spacing)
	p.requireSpaced(append(halved, all...))
}

func winds(p *pool) {
	const spacing = 100 * time.Millisecond
	a := p.issues(spacing)
	_, slots := p.reserve(p.store, driver.Reserve{Count: 64, Ahead: 5, Spacing: spacing})
	last := slots[len(slots)-1].at
	a.spacing, a.strict = time.Millisecond, false
	p.eventually("permits are issued no more", func() bool { return !a.sync(one(0, whole)).Issuing })
	res, _ := p.reserve(p.store, driver.Reserve{Count: 1, Spacing: spacing})
	require.Zero(p, res.Count)
	// Another one, far ahead, when strict again for a moment.
	a.strict = true
	require.True(p, a.sync(one(0, whole)).Issuing)
	p.eventually("the last slot is far enough ahead", func() bool {
		a.sync(one(0, 0))
		_, slots = p.reserve(p.store, driver.Reserve{Count: 64, Ahead: 9, Spacing: spacing})
		return len(slots) > 0
	})
	last = max(last, slots[len(slots)-1].at)
	a.strict = false
	var ans driver.Answer
	p.eventually("the share grows", func() bool {
		ans = a.sync(one(0, whole))
		return ans.Share > 0
	})
	require.GreaterOrEqual(p, ans.Time*1000, last+int64(wire.Validity(spacing)))
}

func tooLow(p *pool) {
	a, b := p.open()
	interval := wire.Interval(p.lease, 1)
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
		return ans.Time-res.Time > 2*wire.Removal(p.lease).Microseconds()
	})
	a.spacing = interval/2 - time.Millisecond
	p.eventually("permits are issued no more", func() bool { return !a.sync(one(0, 0)).Issuing })
}

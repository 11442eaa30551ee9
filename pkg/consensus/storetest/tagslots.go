package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// allSlots is the total of the tags of most cases.
const allSlots = 10

// slotsOf reports on one tag, of which the processor could use any number.
func slotsOf(key uint64, inUse, wanted int64) driver.TagSlots {
	return driver.TagSlots{Key: key, InUse: inUse, Wanted: wanted, Demand: wire.MaxTokens, Total: allSlots}
}

// tags syncs with a report on tags, and returns what is granted of each.
func (a *proc) tags(slots ...driver.TagSlots) (granted []int64) {
	a.pool.Helper()
	return a.granted(slots, a.sync(driver.Report{TagSlots: slots}))
}

// granted are the slots that an answer grants.
func (a *proc) granted(slots []driver.TagSlots, ans driver.Answer) (granted []int64) {
	a.pool.Helper()
	require.Len(a.pool, ans.TagSlots, len(slots), "each tag is answered")
	for i, g := range ans.TagSlots {
		require.Equal(a.pool, slots[i].Key, g.Key, "tags are answered in their order")
		granted = append(granted, g.Granted)
	}
	require.NoError(a.pool, ans.Check())
	return granted
}

// slots does the same with one tag, and returns how many are granted.
func (a *proc) slots(inUse, wanted int64) int64 {
	a.pool.Helper()
	return a.tags(slotsOf(1, inUse, wanted))[0]
}

// slotCases are about the slots of tags with a quota on calls in flight.
var slotCases = []testCase{
	{name: "slots of a tag that are granted leave no room for others", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		first := a.slots(0, 7)
		got := []int64{b.slots(0, allSlots), a.slots(7, allSlots), b.slots(3, allSlots)}
		return began, func() {
			require.EqualValues(p, 7, first)
			require.Equal(p, []int64{3, 7, 3}, got)
		}
	}},
	{name: "slots of a tag are free only once fewer are in use", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		got := []int64{a.slots(0, allSlots), a.slots(allSlots, 4), b.slots(0, allSlots), a.slots(4, 4), b.slots(0, allSlots)}
		return began, func() { require.Equal(p, []int64{allSlots, 4, 0, 4, 6}, got) }
	}},
	{name: "slots in use count, and are given up by who uses too many", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		got := []int64{a.slots(8, 8), b.slots(8, 8), a.slots(8, 8), a.slots(2, 8), b.slots(8, 8)}
		return began, func() { require.Equal(p, []int64{8, 2, 2, 2, 8}, got) }
	}},
	{name: "slots of a tag that is not named any more are free", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		a.tags(slotsOf(1, 0, allSlots), slotsOf(2, 0, allSlots))
		a.tags(slotsOf(2, allSlots, allSlots))
		got := b.tags(slotsOf(1, 0, allSlots), slotsOf(2, 0, allSlots))
		return began, func() { require.Equal(p, []int64{allSlots, 0}, got) }
	}},
	{name: "each tag has its own slots, and none are bounded without a total", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		unbounded := driver.TagSlots{Key: 9, Wanted: wire.MaxTokens, Demand: 1}
		a.tags(slotsOf(1, 0, 9), slotsOf(3, 0, 4), unbounded)
		got := b.tags(slotsOf(1, 0, 9), slotsOf(2, 0, 9), slotsOf(3, 0, 9), unbounded)
		return began, func() { require.Equal(p, []int64{1, 9, 6, wire.MaxTokens}, got) }
	}},
	{name: "slots of who leaves are free, and of who is replaced only after the removal time", run: closedSlots},
	{name: "slots of the dead are free, and not those of a clone", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		a.slots(0, 6)
		b.slots(0, 3)
		c := a.clone()
		a.slots(6, 6)
		d := c.successor(c)
		got := []int64{b.successor(b).slots(0, allSlots), d.slots(0, allSlots), d.slots(0, allSlots)} // the other of two clones may live
		return began, func() { require.Equal(p, []int64{4, 0, 0}, got) }
	}},
	{name: "a repeat is granted the same slots", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		slots := []driver.TagSlots{slotsOf(1, 0, 7), slotsOf(2, 0, 3)}
		req := a.request(driver.Report{TagSlots: slots})
		first := a.granted(slots, a.send(req))
		b.slots(0, 1)
		again := a.granted(slots, a.send(req))
		return began, func() {
			require.Equal(p, []int64{7, 3}, first)
			require.Equal(p, first, again)
		}
	}},
	{name: "slots of a tag grow only by the newest totals", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		by := func(a *proc, total int64, d driver.DocumentReport) int64 {
			ans := a.sync(driver.Report{
				TagSlotsBy: "quotas", TagSlots: []driver.TagSlots{{Key: 1, InUse: 2, Wanted: allSlots, Demand: allSlots, Total: total}},
			}, d)
			return ans.TagSlots[0].Granted
		}
		got := []int64{
			by(a, 5, loaded("quotas", 0)), by(a, 5, change("quotas", 0, 7, "x")), by(b, 99, loaded("quotas", 0)),
			by(b, 99, loaded("quotas", 6)), by(b, 9, loaded("quotas", 7)),
		}
		return began, func() { require.Equal(p, []int64{5, 5, 2, 2, 4}, got) }
	}},
	{name: "slots of many tags are kept exactly, and shown to all", run: manySlots},
	{name: "an older record lets no slots grow, and counts those in use beside its own", needs: canSnapshot, run: forgottenSlots},
	{name: "malformed slots are a RequestError and change nothing", run: malformedSlots},
	{name: "many processors at once never use more slots of a tag than its total", run: slotCrowd},
}

func closedSlots(p *pool) {
	a, b := p.open()
	a.slots(0, allSlots)
	a.leave()
	require.EqualValues(p, allSlots, b.slots(0, allSlots))
	next, c := b.reborn(), p.proc("c")
	sent := time.Now()
	b.slots(allSlots, allSlots)
	next.sync(one(0, 0))
	p.eventually("the slots of who was replaced are free", func() bool { return c.slots(0, allSlots) == allSlots })
	require.GreaterOrEqual(p, time.Since(sent), nearly(wire.Removal(p.lease)))
}

func manySlots(p *pool) {
	p.inTime(func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		var slots []driver.TagSlots
		for i := range uint64(wire.MaxTagSlots) {
			key := i<<55 + i<<47 + i%3
			slots = append(slots, driver.TagSlots{Key: key, InUse: int64(i), Wanted: wire.MaxTokens - int64(i), Demand: int64(i * i), Total: wire.MaxTokens})
		}
		slots[0].Demand, slots[255].Key = 1, math.MaxUint64
		report := driver.Report{Note: "beside a note", Busy: "\x00 and what is busy", TagSlots: slots}
		first := a.granted(slots, a.sync(report))
		ans := b.sync(driver.Report{TagSlots: slots[:2]})
		_, roster, err := p.store.Load(p.Context(), p.name)
		return began, func() {
			require.NoError(p, err)
			var want []driver.TagClaim
			for i, s := range slots {
				require.Equal(p, s.Wanted, first[i])
				want = append(want, driver.TagClaim{Key: s.Key, InUse: s.InUse, Granted: s.Wanted, Demand: s.Demand})
			}
			require.Equal(p, want, roster[0].TagClaims)
			require.Equal(p, []driver.TagClaim{{Demand: 1}, {Key: slots[1].Key, InUse: 1, Granted: 1, Demand: 1}}, roster[1].TagClaims)
			require.Equal(p, []driver.TagGrant{
				{Claimed: wire.MaxTokens, Demand: 1}, {Key: slots[1].Key, Granted: 1, Claimed: wire.MaxTokens - 1, Demand: 1},
			}, ans.TagSlots)
			for i, row := range ans.Roster {
				require.Nil(p, row.TagClaims, "that would be rows times tags")
				require.Equal(p, []string{row.Note, row.Busy}, []string{roster[i].Note, roster[i].Busy})
			}
			require.Equal(p, []string{report.Note, report.Busy}, []string{roster[0].Note, roster[0].Busy})
		}
	})
}

func forgottenSlots(p *pool) {
	a, b := p.open()
	a.tags(slotsOf(1, 0, 2), slotsOf(3, 0, 1))
	restore := p.Snapshot(p, p.name)
	a.tags(slotsOf(1, 2, allSlots), slotsOf(2, 0, allSlots))
	restore()
	for range 3 { // the record grows past what a has seen
		require.Zero(p, b.sync(one(0, 0)).Frozen)
	}
	ans := a.send(a.request(driver.Report{TagSlots: []driver.TagSlots{slotsOf(1, allSlots, allSlots), slotsOf(2, 4, 4)}}))
	require.Equal(p, driver.Behind, ans.Status)
	sent := time.Now()
	require.Equal(p, []int64{0, 1, 0}, b.tags(slotsOf(1, 0, allSlots), slotsOf(2, 1, 8), slotsOf(3, 0, allSlots)), "nothing grows")
	_, roster, err := p.store.Load(p.Context(), p.name)
	require.NoError(p, err)
	for _, row := range roster {
		if row.ID == "a" {
			require.Equal(p, []driver.TagClaim{
				{Key: 1, InUse: allSlots, Granted: 2, Demand: wire.MaxTokens}, {Key: 2, InUse: 4}, {Key: 3, Granted: 1, Demand: wire.MaxTokens},
			}, row.TagClaims)
		}
	}
	a.take(ans)
	frozen := a.sync(driver.Report{TagSlots: []driver.TagSlots{slotsOf(1, 8, allSlots), slotsOf(2, 4, 2)}})
	require.Positive(p, frozen.Frozen)
	require.Equal(p, []driver.TagGrant{{Key: 1, Granted: 8, Demand: wire.MaxTokens}, {Key: 2, Granted: 4, Claimed: 1, Demand: wire.MaxTokens}}, frozen.TagSlots)
	a.leave()
	p.thaws(sent, b)
	require.EqualValues(p, allSlots, b.slots(0, allSlots))
}

func malformedSlots(p *pool) {
	a, _ := p.open()
	before := a.sync(one(0, half))
	req := a.clone().request(one(half, whole))
	refused(p, req, bad{"TagSlots": {
		make([]driver.TagSlots, wire.MaxTagSlots+1),
		[]driver.TagSlots{{Key: 1, Wanted: 1, Total: 1}},
		[]driver.TagSlots{slotsOf(2, 1, 1), slotsOf(2, 1, 1)},
		[]driver.TagSlots{slotsOf(2, 1, 1), slotsOf(1, 1, 1)},
	}}, p.trySync)
	refused(p, req, bad{"TagSlotsBy": {"quotas"}}, p.trySync)
	numbers := []any{-1, wire.MaxTokens + 1}
	refused(p, slotsOf(1, 1, 1), bad{
		"TagSlots.InUse": numbers, "TagSlots.Wanted": numbers, "TagSlots.Demand": numbers, "TagSlots.Total": numbers,
	}, func(s driver.TagSlots) error {
		req.TagSlots = []driver.TagSlots{s}
		return p.trySync(req)
	})
	require.Equal(p, before.Revision+1, a.sync(one(half, half)).Revision)
}

// slotCrowd lets twenty processors over five handles use the slots of two tags as fast as they can.
func slotCrowd(p *pool) {
	p.open()
	var handles []driver.Store
	for range 5 {
		handles = append(handles, p.New(p))
	}
	l := newLedger(allSlots)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(p.Context())
	defer cancel(nil)
	for i := range 20 {
		a := p.proc(fmt.Sprint("p", i))
		a.store = handles[i%len(handles)]
		wg.Go(func() {
			if err := a.useSlots(ctx, l, 25); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	require.NoError(p, context.Cause(ctx))
	require.Positive(p, l.most, "nobody was granted a slot")
}

// useSlots syncs a number of times, uses all that it is granted until its lease ends, and wants fewer now and then.
func (a *proc) useSlots(ctx context.Context, l *ledger, syncs int) (err error) {
	var held int64
	var until time.Time // of the lease that held rests on
	defer func() { err = errors.Join(err, l.set(a.id, 0, until)) }()
	for i := range syncs {
		want := int64(i*7+len(a.id)) % (allSlots + 1)
		if !time.Now().Before(until) {
			held = 0
		}
		held = min(held, want)
		if err := l.set(a.id, held, until); err != nil { // fewer are in use before the store hears of it
			return err
		}
		sent := time.Now()
		call, cancel := context.WithTimeout(ctx, callTimeout)
		ans, err := a.store.Sync(call, a.request(driver.Report{TagSlots: []driver.TagSlots{slotsOf(1, held, want)}}))
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			continue
		case ans.Status == driver.Removed: // the machine stood still for too long
			*a, held = *a.reborn(), 0
			continue
		case ans.Status != driver.Granted || len(ans.TagSlots) != 1:
			return fmt.Errorf("%s was told %s, and %v", a.id, ans.Status, ans.TagSlots)
		}
		a.take(ans)
		lapsed := held > 0 && !time.Now().Before(until)
		if until = sent.Add(ans.Lease); lapsed {
			held = 0
			continue
		}
		held = ans.TagSlots[0].Granted
		if err := l.set(a.id, held, until); err != nil {
			return err
		}
	}
	return nil
}

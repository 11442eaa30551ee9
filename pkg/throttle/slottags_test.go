package throttle

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A tag's weight is the part that the pool has planned, unless that is all that the tag asks for: then it is its part by weight at least.
func TestSlotWeight(t *testing.T) {
	for _, tc := range []struct {
		running, waiting int
		part, want       float64
	}{
		{2, 0, 0, 8}, {2, 2, 3, 3}, {3, 2, 4, 4}, {2, 2, 4, 8}, {2, 2, 8, 8}, {2, 2, 9, 9}, {7, 4, 10, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := Quotas{Tags: map[string]Quota{"a": {Weight: 2}, "b": {}}}
			f := flight(t, 16, WithQuotas(q), WithSharer(&script{first: limit.Lease{Share: wholeShare}}))
			take(t, f.ForTag("b"), 16-tc.running).Settle(0)
			p := take(t, f.ForTag("a"), tc.running)
			take(t, f.ForTag("b"), 16-tc.running)
			if tc.waiting > 0 {
				c := beginWith(f.ForTag("a").Acquire, tc.waiting, 0)
				defer c.cancel()
			}
			slotHolder{f}.GrantSlots([]sharing.TagSlotGrant{{Tag: "a", Part: tc.part}})
			require.InDelta(t, tc.want, f.tags.weight(f.tags.tags["a"]), 1e-9, "%+v", tc)
			p.Settle(0)
		})
	}
}

// Where there are many tags, those without a quota by name are forgotten once nothing is known of them that would be lost.
func TestSlotTagsAreForgotten(t *testing.T) {
	q := Quotas{Tags: map[string]Quota{"own": {Total: 9}, "heavy": {Weight: 5}}, Match: []QuotaPattern{{Tag: "x*", Quota: Quota{Total: 3, Weight: 2}}}}
	for name, pooled := range map[string]bool{"alone": false, "pool": true} {
		t.Run(name, func(t *testing.T) {
			opts := []Option{WithQuotas(q)}
			if pooled {
				opts = append(opts, WithSharer(&script{first: limit.Lease{Share: wholeShare}}))
			}
			f := flight(t, 100, opts...)
			names := 0
			another := func() int { // a view of another tag
				f.ForTag(fmt.Sprint("x", names))
				names++
				return len(f.tags.tags)
			}
			report := func() { slotHolder{f}.ReportSlots(0, 0, 1) }
			take(t, f.ForTag("heavy"), 1).Settle(1)
			take(t, f, 1).Settle(1)
			f.ForTag("own")
			held := f.ForTag("x")
			slotHolder{f}.GrantSlots([]sharing.TagSlotGrant{{Tag: "x", Bound: true, Granted: 1}})
			p := take(t, held, 1)
			for range tagsKept - 4 {
				another()
			}
			require.Equal(t, tagsKept+1, another(), "they are not many yet")
			if pooled {
				for i := range names {
					f.ForTag(fmt.Sprint("x", i)).TryAcquire(1) // a refusal is demand
				}
				require.Equal(t, tagsKept+2, another(), "what they ask for was not reported")
				report()
				require.Equal(t, tagsKept+2, another(), "it is to be reported once more")
				var all []sharing.TagSlotGrant
				for i := range names {
					all = append(all, sharing.TagSlotGrant{Tag: fmt.Sprint("x", i), Bound: true, Granted: 1})
				}
				report()
				slotHolder{f}.GrantSlots(all)
				require.Equal(t, tagsKept+3, another(), "they were granted slots")
				report()
			}
			require.Equal(t, 5, another(), "own, heavy, x, all others and the new one")
			checkSlots(t, f)
			require.Equal(t, int64(1), tagStatus(f, "").Granted)
			require.Equal(t, int64(1), tagStatus(f, "heavy").Granted)
			require.Equal(t, 1, tagStatus(f, "x").InUse)
			p.Settle(1)
		})
	}
}

// Tags give up unused slots only while more tags with a total want some than a request names. They keep their reserved slots.
func TestSlotTagsTakeTurns(t *testing.T) {
	q := Quotas{
		Tags:  map[string]Quota{"free": {}, "kept": {Reserved: 2, Total: 4}},
		Match: []QuotaPattern{{Tag: "idle*", Quota: Quota{Total: 2}}, {Tag: "*", Quota: Quota{Total: 2}}},
	}
	f := flight(t, 9, WithQuotas(q), WithSharer(&script{first: limit.Lease{Share: wholeShare}}))
	inUse := func() map[string]int64 {
		all := map[string]int64{}
		for _, r := range (slotHolder{f}).ReportSlots(0, 0, 1) {
			all[r.Tag] = r.InUse
			slotHolder{f}.GrantSlots([]sharing.TagSlotGrant{{Tag: r.Tag, Bound: true, Granted: r.Wanted}})
		}
		return all
	}
	f.ForTag("idle")
	draw := func(tag string, n int) { // in vain or not, it wants as many
		p, _ := f.ForTag(tag).TryAcquire(n)
		p.Settle(n)
	}
	want := func(tags int) {
		draw("free", 1)
		draw("kept", 3)
		for i := range tags - 1 {
			draw(fmt.Sprint(i), 1)
		}
	}
	want(wire.MaxTagSlots)
	inUse()
	all := inUse()
	require.Equal(t, int64(3), all["kept"])
	require.Equal(t, int64(1), all["0"], "as many want some as a request names")
	want(wire.MaxTagSlots + 1)
	all = inUse()
	require.Equal(t, int64(2), all["kept"], "they are reserved")
	require.Zero(t, all["0"])
}

// A draw that an All undoes has taken no slot, and the callers who came meanwhile get it.
func TestSlotsOfAnUndoneDraw(t *testing.T) {
	for name, tag := range map[string]string{"of the limit": "", "of a tag": "a"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := flight(t, 1)
				if tag != "" {
					f = flight(t, 2, WithQuotas(Quotas{Tags: map[string]Quota{tag: {Total: 1}}}))
				}
				var came *call
				_, ok := All(f.ForTag(tag), slotsMeanwhile{flight(t, 1), func() { came = beginWith(f.ForTag(tag).Acquire, 1, 0) }}).TryAcquire(1)
				require.False(t, ok)
				synctest.Wait()
				require.NoError(t, (<-came.done).err)
				require.Equal(t, int64(1), f.Status().Granted)
				require.Equal(t, 1, f.Status().InUse)
			})
		})
	}
}

// A slotsMeanwhile runs a function at each draw, and then refuses it.
type slotsMeanwhile struct {
	Limiter
	happens func()
}

func (l slotsMeanwhile) TryAcquire(int) (Permit, bool) {
	l.happens()
	return Permit{}, false
}

// The permit of a draw of no slots has one and counts as none. A pair of levels in an All with itself stays one.
func TestSlotViews(t *testing.T) {
	f := flight(t, 4, WithQuotas(Quotas{Tags: map[string]Quota{"team": {Total: 2}}}))
	for _, l := range []Limiter{f, f.ForTag("team")} {
		p := take(t, l, 0)
		require.Zero(t, p.N())
		require.Equal(t, 1, f.Status().InUse)
		p.Settle(0)
	}
	take(t, All(forLevels(f, "team", "key"), forLevels(f, "team", "key")), 1)
	require.Equal(t, 2, tagStatus(f, "team").InUse)
	require.Zero(t, tagStatus(f, "").InUse, "a key without a quota is not among all others")
}

package protocol

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Slots reserved for tags that wait at several processors are theirs in whole slots in each turn, whatever two other processors could use. Those
// of a tag at which none is in use yet take turns; a processor that uses one keeps it.
func TestWholeSlotsAreForGuaranteesFirst(t *testing.T) {
	var p tagPolicy
	q := limit.Quotas{Tags: map[string]limit.Quota{"a": {Reserved: 2, Per: slotPer}, "b": {Reserved: 1, Per: slotPer}}}
	p.set(&q)
	a, b := busyKey(tagname.Key("a")), busyKey(tagname.Key("b"))
	roster := make([]driver.RosterRow, 5)
	for i := range roster {
		roster[i].ID, roster[i].Demand = fmt.Sprint(i), driver.Whole
		own := []busyTag{{key: 0, rate: 4}}
		if i%2 == 0 {
			own = append(own, busyTag{key: a, rate: 4}, busyTag{key: b, rate: 4})
		}
		if i == 4 {
			own[2].used = 1
		}
		roster[i].Busy = packBusy(0, 0, 0, own)
	}
	had := make([]int, len(roster))
	for turn := range int64(300) {
		shares := p.reserveWhole(p.divide(0, time.Second, 4, roster, 0, []busyTag{{key: 0, rate: 4}, {key: a, rate: 4}, {key: b, rate: 4}}), roster, 4, 0, turn)
		given := 0
		for i, w := range wholeSlots(shares, roster, 4, byPart(turn, shares, roster, 4)) {
			had[i] += sharing.SlotsOf(int64(w), 4)
			given += sharing.SlotsOf(int64(w), 4)
		}
		require.Equal(t, 4, given)
		require.GreaterOrEqual(t, had[0]+had[2]+had[4], int(turn+1)*3)
		require.GreaterOrEqual(t, had[4], int(turn+1))
		sum := 0.0
		for _, w := range p.whole {
			sum += w.here + w.elsewhere
		}
		require.InDelta(t, 3, sum, 1e-9)
	}
	for _, i := range []int{0, 2} {
		require.InDelta(t, 200+60, had[i], 25)
	}
	var ofA, ofB sharing.TagSlotGrant
	p.guaranteedSlots(a, &ofA)
	p.guaranteedSlots(b, &ofB)
	require.InDelta(t, 2, ofA.First, 1e-9, "none of them is in use elsewhere")
	require.InDelta(t, 0, ofB.First, 1e-9, "it is in use elsewhere")
}

// Whole slots for a reservation raise no share above its row's demand, and a processor may be first for those that it has, whatever others use.
func TestReservedSlotsAreNoMoreThanDemand(t *testing.T) {
	var p tagPolicy
	q := limit.Quotas{Tags: map[string]limit.Quota{"a": {Reserved: 5, Per: slotPer}}}
	p.set(&q)
	a := busyKey(tagname.Key("a"))
	for _, tc := range []struct {
		one   busyTag // of the tag at the second row
		first map[int]float64
	}{
		{busyTag{key: a, rate: 1}, map[int]float64{0: 5, 1: 0}},
		{busyTag{key: a, rate: 5, used: 5}, map[int]float64{0: 3, 1: 2}}, // more than is reserved
	} {
		busy := [][]busyTag{{{key: a, rate: 5, used: 5}}, {{key: 0, rate: 3, used: 3}, tc.one}, {{key: 0, rate: 4, used: 4}}}
		roster := make([]driver.RosterRow, len(busy))
		for i, own := range busy {
			n := 0.0
			for _, b := range own {
				n += b.rate
			}
			roster[i] = driver.RosterRow{ID: fmt.Sprint(i), Demand: shareOf(n, 12), Busy: packBusy(0, 0, 0, own)}
		}
		for self, first := range tc.first {
			before := p.divide(0, time.Second, 12, roster, self, busy[self])
			after := p.reserveWhole(before, roster, 12, self, 0)
			var sum, was driver.Share
			for i := range after {
				sum, was = sum+after[i], was+before[i]
				require.LessOrEqual(t, after[i], max(roster[i].Demand, before[i]), "row %d", i)
			}
			require.InDelta(t, float64(was), float64(sum), 10)
			var g sharing.TagSlotGrant
			p.guaranteedSlots(a, &g)
			require.InDelta(t, first, g.First, 1e-9, "row %d", self)
		}
	}
}

// Slots reserved for a tag go to rows by their demand, in whole ones. One that this leaves goes to a row that uses it already, if there is one.
func TestReservedSlotsOfATag(t *testing.T) {
	type row struct{ rate, used float64 }
	for name, c := range map[string]struct {
		reserved, scale float64
		rows            []row
		sum             float64
		want            map[int]float64 // where it is the same in each turn
	}{
		"one":                   {2, 1, []row{{4, 0}}, 2, map[int]float64{0: 2}},
		"no more than wanted":   {3, 1, []row{{1, 0}}, 1, map[int]float64{0: 1}},
		"nobody wants any":      {3, 1, []row{{0, 3}}, 0, map[int]float64{}},
		"by demand":             {4, 1, []row{{2, 0}, {6, 0}}, 4, map[int]float64{0: 1, 1: 3}},
		"scaled down":           {4, .5, []row{{2, 0}, {2, 0}}, 2, map[int]float64{0: 1, 1: 1}},
		"the first uses it":     {2, 1, []row{{1, 1}, {3, 1}}, 2, map[int]float64{0: 1, 1: 1}},
		"the second uses it":    {2, 1, []row{{1, 0}, {3, 2}}, 2, map[int]float64{0: 0, 1: 2}},
		"as accurate as told":   {2, 1, []row{{.999, 0}, {1, 0}}, 2, map[int]float64{0: 1, 1: 1}},
		"a part of one is none": {1.9, 1, []row{{1, 1}, {3, 0}}, 1, map[int]float64{0: 1, 1: 0}},
		"whole ones come first": {2, 1, []row{{2, 0}, {1, 1}, {1, 1}}, 2, map[int]float64{0: 1}},
		"who lacks none":        {4, 1, []row{{6, 0}, {1, 0}, {1, 0}}, 4, map[int]float64{0: 3}},
	} {
		rows, uses := []fairtags.Row{{Busy: []fairtags.Busy{{Key: 7, Rate: 9}}, Silent: true}}, [][]float64{{9}}
		for _, r := range c.rows {
			rows = append(rows, fairtags.Row{Busy: []fairtags.Busy{{Key: 5, Rate: 9}, {Key: 7, Rate: r.rate}}})
			uses = append(uses, []float64{9, r.used})
		}
		for turn := range int64(20) {
			got, sum := wholeParts(fairtags.Terms{Key: 7, Reserved: c.reserved}, c.scale, rows, uses, turn), 0.0
			for i := range rows {
				sum += got[i]
				if want, certain := c.want[i-1]; certain {
					require.InDelta(t, want, got[i], 1e-9, name)
				}
			}
			require.InDelta(t, c.sum, sum, 1e-9, name)
		}
	}
}

// Whole slots for reservations change only who has the slots: the shares add up to those of the plan, and none is raised above what its row asks for.
func TestReservedSlotsAddUpToThePlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	q := limit.Quotas{Tags: map[string]limit.Quota{"a": {Reserved: 3, Per: slotPer}, "b": {Reserved: 2, Per: slotPer}}}
	keys := []uint64{0, busyKey(tagname.Key("a")), busyKey(tagname.Key("b"))}
	for range 300 {
		const most = 8
		var p tagPolicy
		p.set(&q)
		roster, own := make([]driver.RosterRow, 2+rng.IntN(4)), []busyTag(nil)
		for i := range roster {
			var busy []busyTag
			sum := 0.0
			for _, key := range keys {
				if rate := float64(rng.IntN(6)*rng.IntN(2)) / 2; rate > 0 {
					busy, sum = append(busy, busyTag{key: key, rate: rate, used: rate / 2}), sum+rate
				}
			}
			roster[i] = driver.RosterRow{ID: fmt.Sprint(i), Demand: shareOf(sum, most), Busy: packBusy(0, 0, 0, busy)}
			if i == 0 {
				own = busy
			}
		}
		before := p.divide(0, time.Second, most, roster, 0, own)
		after := p.reserveWhole(before, roster, most, 0, rng.Int64N(100))
		sum, was := driver.Share(0), driver.Share(0)
		for i := range after {
			sum, was = sum+after[i], was+before[i]
			require.LessOrEqual(t, after[i], max(roster[i].Demand, before[i]))
			require.GreaterOrEqual(t, after[i], driver.Share(0))
		}
		require.InDelta(t, float64(was), float64(sum), 100, roster)
	}
}

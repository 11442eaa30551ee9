package protocol

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// divide returns what processors have that want so many slots each.
func divide(policy Policy, most int, turn int64, wanted ...int) (out []int) {
	rows := make([]driver.RosterRow, len(wanted))
	for i, n := range wanted {
		rows[i].Demand = min((driver.Share(n)*driver.Whole+driver.Share(most)-1)/driver.Share(most), driver.Whole)
	}
	for _, w := range wholeSlots(policy(rows), rows, most, inTurn(turn)) {
		out = append(out, sharing.SlotsOf(int64(w), most))
	}
	return out
}

func TestSlotsAreDividedInWholeOnes(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		most   int
		turn   int64
		wanted []int
		want   []int
	}{
		"one has all":                     {Fair, 3, 0, []int{5}, []int{3}},
		"a third each":                    {Fair, 3, 0, []int{3, 3, 3}, []int{1, 1, 1}},
		"two of them, first turn":         {Fair, 2, 0, []int{1, 1, 1}, []int{1, 1, 0}},
		"two of them, second turn":        {Fair, 2, 1, []int{1, 1, 1}, []int{1, 0, 1}},
		"two of them, third turn":         {Fair, 2, 2, []int{1, 1, 1}, []int{0, 1, 1}},
		"what is left over is not lost":   {Fair, 10, 0, []int{9, 9, 9, 9}, []int{3, 3, 2, 2}},
		"it is somebody else's next":      {Fair, 10, 1, []int{9, 9, 9, 9}, []int{2, 2, 3, 3}},
		"idle ones leave it to the busy":  {Fair, 3, 5, []int{0, 0, 3, 0, 0, 0}, []int{0, 0, 3, 0, 0, 0}},
		"what nobody wants is spread":     {Fair, 10, 0, []int{1, 0, 0, 0}, []int{4, 2, 2, 2}},
		"evenly, whoever is busy":         {Even, 10, 7, []int{9, 0, 0, 0, 0}, []int{2, 2, 2, 2, 2}},
		"evenly, the rest to the busy":    {Even, 11, 7, []int{9, 0, 0, 0, 0}, []int{3, 2, 2, 2, 2}},
		"one slot for many, and one busy": {Fair, 1, 3, []int{0, 0, 0, 1}, []int{0, 0, 0, 1}},
	} {
		require.Equal(t, c.want, divide(c.policy, c.most, c.turn, c.wanted...), name)
	}
}

// Whatever is wanted: never more than there is, none lost, nobody has less than the whole slots of
// its share, and in as many turns as there are processors everyone that wants slots has had one.
func TestNoSlotIsLostAndNobodyIsLeftOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range testkit.Fewer(2000) {
		most := 1 + rng.IntN(20)
		wanted := make([]int, 1+rng.IntN(30))
		for i := range wanted {
			wanted[i] = rng.IntN(4) * rng.IntN(most+1)
		}
		policy := []Policy{Fair, Even}[rng.IntN(2)]
		had := make([]bool, len(wanted))
		for turn := range wanted {
			rows := make([]driver.RosterRow, len(wanted))
			for i, n := range wanted {
				rows[i].Demand = min((driver.Share(n)*driver.Whole+driver.Share(most)-1)/driver.Share(most), driver.Whole)
			}
			exact := policy(rows)
			sum, given := driver.Share(0), 0
			for i, w := range wholeSlots(exact, rows, most, inTurn(int64(turn))) {
				n := sharing.SlotsOf(int64(w), most)
				if least := sharing.SlotsOf(int64(exact[i]), most); n < least { // millions of times: require would take most of the time
					require.GreaterOrEqual(t, n, least)
				}
				if n < most && sharing.ShareOf(n, most) != int64(w) {
					require.Equal(t, sharing.ShareOf(n, most), int64(w), "no share beyond its slots")
				}
				sum, given, had[i] = sum+w, given+n, had[i] || n > 0
			}
			if sum > driver.Whole || given != most {
				require.LessOrEqual(t, sum, driver.Whole)
				require.Equal(t, most, given, "%d slots, %v wanted", most, wanted)
			}
		}
		for i, n := range wanted {
			if n > 0 && !had[i] {
				require.Fail(t, "left out", "%d slots, %v wanted: %d", most, wanted, i)
			}
		}
	}
}

// By their parts, processors have the slots that are left as often as their parts say, and none is lost.
func TestSlotsAreRoundedByParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range testkit.Fewer(100) {
		most, n := 1+rng.IntN(12), 2+rng.IntN(10)
		parts, sum := make([]float64, n), 0.0
		for i := range parts {
			parts[i] = rng.Float64() * float64(rng.IntN(3))
			sum += parts[i]
		}
		if sum == 0 {
			continue
		}
		rows, shares := make([]driver.RosterRow, n), make([]driver.Share, n)
		for i, part := range parts {
			shares[i] = driver.Share(part / sum * float64(driver.Whole))
			rows[i].Demand = driver.Whole
		}
		const turns = 400
		had := make([]int, n)
		for turn := range turns {
			given := 0
			for i, w := range wholeSlots(shares, rows, most, byPart(int64(turn), shares, rows, most)) {
				n := sharing.SlotsOf(int64(w), most)
				given, had[i] = given+n, had[i]+n
			}
			require.Equal(t, most, given)
		}
		for i := range parts {
			require.InDelta(t, float64(shares[i])*float64(most)/float64(driver.Whole), float64(had[i])/turns, 0.03, "%v of %d", shares, most)
		}
	}
}

// Slots that a tag waits for and others hold of its total are none that a row could use: whole slots for reservations raise its share to what it
// can use, and not to all that it waits for.
func TestSlotsOfATotalHeldElsewhereAreNoDemand(t *testing.T) {
	q := limit.Quotas{Tags: map[string]limit.Quota{"a": {Reserved: 1, Total: 2, Per: slotPer}}, Other: limit.Quota{Total: 3, Per: slotPer}}
	a := busyKey(tagname.Key("a"))
	busy := [][]busyTag{ // the second waits for a slot of "", all of which the others have
		{{rate: 1, used: 1}}, {{key: a, rate: 1, reserved: 1, used: 1}}, nil, {{rate: 1}}, {{key: a, rate: 1, reserved: 1, used: 1}, {rate: 1}},
	}
	roster := make([]driver.RosterRow, len(busy))
	for i, own := range busy {
		roster[i] = driver.RosterRow{ID: fmt.Sprint(i), Busy: packBusy(0, 0, 0, own)}
	}
	for i, slots := range []int{1, 2, 1, 1, 4} {
		roster[i].Demand = driver.Share(sharing.ShareOf(slots, 4))
	}
	c := core{Lease: driver.DefaultLease}
	for turn := range int64(300) {
		tags := tagging{on: true, most: 4, slots: slotTags{most: 4}, own: busy[1]}
		tags.policy.set(&q)
		c.clock.time = turn * c.Lease.Microseconds()
		shares, ok := tags.wants(&c, 0, roster, 1)
		require.True(t, ok)
		whole := wholeSlots(shares, roster, 4, byPart(turn, shares, roster, 4))
		require.LessOrEqual(t, sharing.SlotsOf(int64(whole[1]), 4), 1, turn)
	}
}

// A row has between no slot and all of them, whatever a policy says. Rows that could use one more come before others.
func TestWholeSlotsOfAnyShares(t *testing.T) {
	const quarter, all = driver.Whole / 4, driver.Whole
	for name, c := range map[string]struct {
		most            int
		shares, demands []driver.Share
		want            []int
	}{
		"out of bounds":        {4, []driver.Share{-5, driver.Whole + 5}, []driver.Share{0, 0}, []int{0, 4}},
		"too much":             {1, []driver.Share{driver.Whole, 2 * quarter, 2 * quarter}, []driver.Share{0, 0, 0}, []int{1, 1, 0}},
		"who could use one":    {4, []driver.Share{quarter + 5, quarter / 2, 5*quarter/2 - 5}, []driver.Share{0, 0, driver.Whole}, []int{1, 0, 3}},
		"who has all it wants": {4, []driver.Share{3 * quarter / 2, 5 * quarter / 2}, []driver.Share{quarter, 2*quarter + 1}, []int{1, 3}},
		"nobody could":         {4, []driver.Share{3 * quarter / 2, 5 * quarter / 2}, []driver.Share{0, 0}, []int{2, 2}},
		"who has whole ones":   {4, []driver.Share{quarter - 1, 3 * quarter / 2, 3 * quarter / 2}, []driver.Share{all, all, all}, []int{1, 2, 1}},
		"less than one":        {4, []driver.Share{quarter / 4, quarter / 4}, []driver.Share{all, all}, []int{0, 0}},
	} {
		rows := make([]driver.RosterRow, len(c.demands))
		for i := range rows {
			rows[i].Demand = c.demands[i]
		}
		for i, share := range wholeSlots(c.shares, rows, c.most, inTurn(0)) {
			require.Equal(t, c.want[i], sharing.SlotsOf(int64(share), c.most), name)
			require.Equal(t, c.want[i] == c.most, share == driver.Whole, name)
		}
	}
	s := split{slots: 3}
	for share, slots := range map[driver.Share]int{driver.Whole - 2: 2, 333_333_333: 1, 5: 0} {
		require.EqualValues(t, sharing.ShareOf(slots, 3), s.inWhole(share))
		require.Equal(t, share, (&split{}).inWhole(share), "it is not divided by slots")
	}
	require.Equal(t, driver.Whole, s.inWhole(driver.Whole))
}

// A processor has no slot if the store says so, while its lease is good and the pool is not frozen.
func TestWhoHasNoSlot(t *testing.T) {
	const now = 10 * sec
	for name, c := range map[string]struct {
		but  func(p *Processor)
		none bool
	}{
		"none":            {func(*Processor) {}, true},
		"it has one":      {func(p *Processor) { p.held = 1 }, false},
		"no slots":        {func(p *Processor) { p.split.slots = 0 }, false},
		"it has no lease": {func(p *Processor) { p.state = StateLost }, false},
		"its lease ends":  {func(p *Processor) { p.until = now }, false},
		"frozen":          {func(p *Processor) { p.frozen = now + 1 }, false},
		"no longer":       {func(p *Processor) { p.frozen = now }, true},
	} {
		p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
		p.split.slots, p.state, p.held, p.until = 4, StateHolding, 0, now+1
		c.but(p)
		require.Equal(t, c.none, p.slotless(now), name)
	}
}

// Each row is picked as often as its part says, and none twice or without a part. Those that are picked already stay.
func TestSpread(t *testing.T) {
	parts := []driver.Share{0, 100, 200, 0, 300, 50}
	rows := []int{0, 1, 2, 4}
	for n := range 4 {
		const turns = 3000
		had := map[int]int{}
		for turn := range int64(turns) {
			picked := spread(nil, rows, parts, n, turn)
			require.Len(t, picked, n)
			for _, i := range picked {
				had[i]++
			}
			require.LessOrEqual(t, len(had), 3)
		}
		for i, part := range parts[:5] {
			if n == 1 || n == 2 || part == 0 {
				require.InDelta(t, float64(n)*float64(part)/600, float64(had[i])/turns, 0.01, "%d of %d", i, n)
			} else {
				require.Equal(t, min(n/3, 1)*turns, had[i])
			}
		}
	}
	require.Equal(t, []int{4, 2}, spread([]int{4}, []int{2, 4}, parts, 1, 0))
	require.Equal(t, []int{4, 2}, spread([]int{4}, []int{2, 4}, parts, 5, 0), "there are no more")
}

// The slots left are for rows that have one beside others already, and are due half of it, as far as there are enough.
func TestWhoKeepsASlotBesideOthers(t *testing.T) {
	const quarter, half = driver.Whole / 4, driver.Whole / 2
	shares := func(slots ...float64) (out []driver.Share) {
		for _, n := range slots {
			out = append(out, driver.Share(n*float64(quarter)))
		}
		return out
	}
	for name, c := range map[string]struct {
		shares []driver.Share
		claims []driver.Share
		overs  []driver.Share
		free   int
		want   []int // those that are picked in each turn
	}{
		"it has the second":        {shares(1.5, 1.5), shares(1, 2), []driver.Share{half, half}, 1, []int{1}},
		"it is due less than half": {shares(1.5, 1.5), shares(1, 2), []driver.Share{half, half - 1}, 1, nil},
		"it has none beside it":    {shares(.5, 1.5), shares(1, 2), []driver.Share{half, half}, 1, []int{1}},
		"two have one":             {shares(1.5, 1.5, 1.5), shares(2, 2, 1), []driver.Share{half, half, half}, 1, nil},
		"for two others":           {shares(1.5, 1.5, 1.5), shares(2, 1, 1), []driver.Share{half, half, half}, 2, []int{0}},
	} {
		rows := make([]driver.RosterRow, len(c.shares))
		needy := make([]int, len(rows))
		for i := range rows {
			rows[i].Claim, needy[i] = c.claims[i], i
		}
		had := make([]int, len(rows))
		const turns = 100
		for turn := range int64(turns) {
			picked := byPart(turn, c.shares, rows, 4)(needy, c.overs, c.free)
			require.Len(t, picked, c.free, name)
			for _, i := range picked {
				had[i]++
			}
		}
		for i := range had {
			require.Equal(t, slices.Contains(c.want, i), had[i] == turns, name)
		}
	}
}

package driver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// TestNamesKeepToTheirQuotas draws for three times as many names as there is room for, most of them seldom and some in bursts, and counts what
// each was given. None has more than its total and its burst, nor more than its budget, from whenever one looks; and names that
// nobody was taken for have all of it.
func TestNamesKeepToTheirQuotas(t *testing.T) {
	const names, total, burst, amount = 3 * wire.MaxNames, 2, 3, 40 // per second
	s, rnd := newTagBucketTrial(), rand.New(rand.NewPCG(1, 2))
	level, spent := make([]float64, names), make([]int64, names)
	at := make([]int64, names)
	window := BudgetDraw{Amount: amount, Start: s.at.Now, End: s.at.Now + 3_600_000_000}
	asked, given := 0, 0
	for range testkit.Fewer(120) {
		s.at.Now += 500_000
		var draws []Draw
		var who []int
		seen := map[int]bool{}
		for range 800 {
			i := rnd.IntN(names)
			if rnd.IntN(4) == 0 {
				i = rnd.IntN(100) // who asks again and again
			}
			if seen[i] {
				continue
			}
			seen[i], who = true, append(who, i)
			draws = append(draws, Draw{
				Key: nameKey(i), Pattern: true, Total: total, Per: time.Second, Burst: burst, Ask: 1 + rnd.Int64N(4), Budgets: []BudgetDraw{window},
			})
		}
		ans := s.take("a", s.request("a", draws))
		for k, d := range ans.Draws {
			i := who[k]
			require.NotEqual(t, LackFull, d.Lack)
			level[i] = math.Max(0, level[i]-total*float64(ans.Time-at[i])/1e6)
			at[i], level[i], spent[i] = ans.Time, level[i]+float64(d.Tokens), spent[i]+d.Tokens
			require.LessOrEqual(t, level[i], burst+total*1.0+0.01, "the burst, and what is earned in an interval")
			require.LessOrEqual(t, spent[i], int64(amount))
			require.GreaterOrEqual(t, d.Spent[0], spent[i], "a name counts too much, if anything")
			asked, given = asked+1, given+min(1, int(d.Tokens))
		}
		require.LessOrEqual(t, len(s.rec.Names.TagBuckets), wire.MaxNames)
		copyOf(t, &s.rec)
	}
	require.Greater(t, given*10, asked*8, "most get something each time")
	require.Empty(t, s.rec.TagBuckets)
}

// TestSketchOfBudgetsErrsAsPromised: of names whose tag buckets were dropped and that have used N tokens of their windows together, all but one in
// 64 are taken to have used at most N/1024 more than they have.
func TestSketchOfBudgetsErrsAsPromised(t *testing.T) {
	for _, n := range testkit.Some([]int{1000, 5000, 20_000}) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s, rnd := newTagBucketTrial(), rand.New(rand.NewPCG(7, 7))
			window := BudgetDraw{Amount: wire.MaxAmount, Start: s.at.Now, End: s.at.Now + 3_600_000_000}
			spent, sum := make([]int64, n), int64(0)
			draw := func(i int, ask int64) Draw {
				return Draw{Key: nameKey(i), Pattern: true, Ask: ask, Budgets: []BudgetDraw{window}}
			}
			for range 3 { // they come and go
				for i := 0; i < n; i += 1000 {
					s.at.Now += 100_000
					var draws []Draw
					for k := i; k < i+1000; k++ {
						ask := int64(1 + rnd.ExpFloat64()*1000)
						spent[k], sum = spent[k]+ask, sum+ask
						draws = append(draws, draw(k, ask))
					}
					s.take("a", s.request("a", draws))
				}
				s.names(1_000_000)
			}
			far, looks := 0, 1000
			for i := 0; i < n; i += n / looks {
				got := s.draw("a", draw(i, 0)).Spent[0]
				require.GreaterOrEqual(t, got, spent[i])
				if got > spent[i]+sum/1024 {
					far++
				}
			}
			require.LessOrEqual(t, far*64, looks)
		})
	}
}

// Each name has a cell in each row of each sketch, at the same places in every store: budgets first, by quarters of an hour.
func TestCellsOfANameStandWhereEveryStoreLooks(t *testing.T) {
	const cols = 8192
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		key, quarters := r.Uint64(), uint64(r.IntN(4_000_000))
		at := [2]int{int((key + quarters) & (cols - 1)), int((key>>13+quarters)&(cols-1)) + cols}
		require.Equal(t, at, spentCells(key, int64(quarters)*15*minute+int64(r.IntN(15*minute))))
		require.Equal(t, [2]int{int(key&(cols-1)) + 2*cols, int(key>>13&(cols-1)) + 3*cols}, paidCells(key))
	}
}

// A cell of a budget counts ten minutes beyond its window, by the store's clock; one of a total as long as logical time says.
func TestHowLongCellsCount(t *testing.T) {
	g := &granter{step: &step{at: At{Now: 600_000_100}, clock: 300}}
	for cell, want := range map[Cell]bool{
		{Index: wire.FirstPaid - 1, End: 100}: true, {Index: wire.FirstPaid - 1, End: 101}: false,
		{Index: wire.FirstPaid, End: 300}: true, {Index: wire.FirstPaid, End: 301}: false,
	} {
		require.Equal(t, want, g.dead(&cell), "%+v", cell)
	}
}

// A cell of a budget is written as a number of tokens, one of a total as milliseconds.
func TestTheFormOfCells(t *testing.T) {
	for index, want := range map[int][]byte{wire.FirstPaid - 1: {0x88, 0x27}, wire.FirstPaid: {0, 10}} {
		r := smallRecord()
		r.Names.Cells = []Cell{{Index: index, Value: 5000}}
		b := written(t, r)
		require.Equal(t, want, b[len(b)-2:])
	}
}

// Tag buckets of names that are dropped leave what they have given and spent in their cells, rounded up; those that the request draws from stay.
func TestASweepOfNames(t *testing.T) {
	const clock, now, end = 1_000_000, 600_000_000, 3 * minute
	spent, paid := spentCells(1, 0), paidCells(2)
	for _, others := range []bool{false, true} {
		r := &Record{Names: Names{
			TagBuckets: []TagBucket{
				{Key: 1, Full: clock, Spent: []Spent{{0, end - minute + 1, 7}, {2 * minute, 4 * minute, 0}}},
				{Key: 2, Paid: 500_001, Full: clock + 1},
				{Key: 3, Full: 0},
				{Key: 5000, Paid: 2_000_000, Full: 5 * minute, Spent: []Spent{{0, 7 * minute, 1}}},
			},
			Cells: []Cell{{spent[0], 9 * minute, 3}, {spent[1], minute, 9}, {wire.FirstPaid, clock, 1000}},
		}}
		g := &granter{step: &step{rec: r, at: At{Now: now}, clock: clock}, req: &Request{Draws: []Draw{{Key: 3}}}}
		g.sweep(others)
		cells := []Cell{{spent[0], 9 * minute, 7}, {spent[1], end, 9}}
		left := []uint64{2, 3, 5000}
		if others {
			left = left[1:2]
			exact, whole := spentCells(5000, 0), paidCells(5000)
			cells = []Cell{cells[0], {exact[0], 7 * minute, 1}, {cells[1].Index, 7 * minute, 9}}
			cells = append(cells, Cell{paid[0], minute, 501_000}, Cell{whole[0], 5 * minute, 2_000_000}, Cell{paid[1], 5 * minute, 2_000_000})
			require.Equal(t, exact[1], spent[1], "keys below 8,192 share a cell")
		}
		var keys []uint64
		for _, b := range r.Names.TagBuckets {
			keys = append(keys, b.Key)
		}
		require.Equal(t, left, keys)
		require.Equal(t, cells, r.Names.Cells)
		require.NoError(t, r.Names.check())
	}
}

// A new name makes room at most twice: the full tag buckets go first, then all others.
func TestRoomForNames(t *testing.T) {
	const clock = 1_000_000
	for name, tc := range map[string]struct {
		names, full, swept int
		left, swepts       int // afterwards, with the new one; 0: it has no room
	}{
		"room":                 {wire.MaxNames - 1, 10, 0, wire.MaxNames, 0},
		"full ones":            {wire.MaxNames, 10, 0, wire.MaxNames - 9, 1},
		"no full ones":         {wire.MaxNames, 0, 0, 1, 2},
		"full ones, once more": {wire.MaxNames, 10, 1, 1, 2},
		"no more":              {wire.MaxNames, 10, 2, 0, 2},
	} {
		r := &Record{Names: Names{TagBuckets: buckets(tc.names)}}
		for i := range tc.names - tc.full {
			r.Names.TagBuckets[i].Full = clock + 1
		}
		g := &granter{step: &step{rec: r, clock: clock}, req: &Request{}, swept: tc.swept}
		b := g.name(1 << 40)
		require.Equal(t, tc.left > 0, b != nil, name)
		require.Equal(t, tc.swepts, g.swept, name)
		if tc.left > 0 {
			require.Len(t, r.Names.TagBuckets, tc.left, name)
		} else {
			require.Len(t, r.Names.TagBuckets, tc.names, name)
		}
	}
}

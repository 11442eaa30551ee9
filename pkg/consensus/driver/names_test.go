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

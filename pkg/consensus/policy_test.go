package consensus_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// demands makes a roster from demands in percent.
func demands(percent ...float64) []driver.RosterRow {
	rows := make([]driver.RosterRow, len(percent))
	for i, p := range percent {
		rows[i] = driver.RosterRow{ID: fmt.Sprintf("p%02d", i), Demand: driver.Share(p / 100 * float64(driver.Whole))}
	}
	return rows
}

func TestFair(t *testing.T) {
	for _, c := range []struct {
		name         string
		demand, want []float64 // percent
	}{
		{"alone", []float64{0}, []float64{100}},
		{"all idle", []float64{0, 0, 0, 0}, []float64{25, 25, 25, 25}},
		{"all busy", []float64{100, 100, 100, 100}, []float64{25, 25, 25, 25}},
		{"one busy", []float64{100, 0, 0, 0}, []float64{99.625, 0.125, 0.125, 0.125}},
		{"two busy", []float64{100, 100, 0, 0}, []float64{49.875, 49.875, 0.125, 0.125}},
		{"a small one is satisfied first", []float64{10, 100, 100}, []float64{10, 45, 45}},
		{"water fills in steps", []float64{10, 30, 100, 100}, []float64{10, 30, 30, 30}},
		{"what nobody wants is spread evenly", []float64{10, 20, 30}, []float64{10 + 40./3, 20 + 40./3, 30 + 40./3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := consensus.Fair(demands(c.demand...))
			for i := range got {
				require.InDelta(t, c.want[i], 100*got[i].Fraction(), 0.0001, "processor %d of %v", i, got)
			}
		})
	}
	require.Empty(t, consensus.Fair(nil))
}

// Max-min fairness, by its definition: nobody can be given more without taking
// from somebody who has less or the same; and nothing is handed out twice.
func TestFairIsMaxMinFair(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range testkit.Fewer(2000) {
		rows := make([]driver.RosterRow, 1+rng.IntN(40))
		for i := range rows {
			rows[i].Demand = driver.Share(rng.Int64N(int64(driver.Whole) + 1))
			if rng.IntN(3) == 0 {
				rows[i].Demand = 0
			}
		}
		got := consensus.Fair(rows)
		var sum driver.Share
		for _, s := range got {
			sum += s
		}
		n := driver.Share(len(rows))
		require.LessOrEqual(t, sum, driver.Whole)
		require.Greater(t, sum, driver.Whole-2*n, "all of the limit is handed out")
		most := slices.Max(got)
		for i, s := range got {
			floor := driver.Whole / 200 / n
			if s < min(rows[i].Demand, driver.Whole) || s < floor-1 {
				require.GreaterOrEqual(t, s, most-n, "processor %d lacks while another has more: %v of %v", i, got, rows)
			}
		}
	}
}

func TestEven(t *testing.T) {
	require.Equal(t, []driver.Share{333333333, 333333333, 333333333}, consensus.Even(demands(0, 5, 100)))
	require.Empty(t, consensus.Even(nil))
}

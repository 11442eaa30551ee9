package backoff

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A report is of the last second, however often calls are counted.
func TestWindow(t *testing.T) {
	for _, every := range []int64{second / 1000, second / 100, second / 20} {
		var w Tally
		var totals Totals
		for now := int64(0); now <= 5*second; now += every {
			totals.Accepted, totals.Refused, totals.Overloaded = now/(second/50), now/(second/20), now/(second/10)
			w.add(now, totals)
			if now < second {
				continue
			}
			r := w.Report(100, 3, now)
			require.Equal(t, int64(3), r.Generation)
			require.InDelta(t, Whole/2, r.Accepted, Whole*4/100)
			require.InDelta(t, Whole/5, r.Refused, Whole*3/100)
			require.InDelta(t, Whole/10, r.Overloaded, Whole*3/100)
		}
		require.LessOrEqual(t, len(w.samples), 80)
		require.Zero(t, w.Report(100, 0, 36*second).Accepted, "long ago")
	}
}

// Refusals from before a generation do not count in it; what was accepted does.
func TestWindowOfAGeneration(t *testing.T) {
	var w Tally
	w.add(0, Totals{})
	w.add(second/2, Totals{Accepted: 30, Refused: 20, Overloaded: 10})
	w.Begin(second*6/10, false)
	r := w.Report(100, 1, second*6/10)
	require.Zero(t, r.refused())
	require.Positive(t, r.Accepted)
	w.add(second, Totals{50, 24, 10})
	r = w.Report(100, 1, second)
	require.Equal(t, int64(Whole/2), r.Accepted)
	require.Equal(t, int64(Whole/10), r.Refused, "four in 0.4 s")
	require.Zero(t, r.Overloaded)
}

// One call is not taken for a high rate because it was seen at once.
func TestWindowAtTheBeginning(t *testing.T) {
	var w Tally
	require.Zero(t, w.Report(100, 0, 5))
	require.False(t, w.Active(5))
	w.Begin(0, false)
	require.False(t, w.Active(5))
	w.add(1, Totals{Refused: 1})
	require.Equal(t, int64(4*Whole/100), w.Report(100, 0, 1).Refused)
	require.True(t, w.Active(10*second))
	require.False(t, w.Active(11*second))
	w.add(100*second, Totals{Refused: 51})
	require.Equal(t, int64(Whole/2), w.Report(100, 0, 100*second).Refused, "after a silence")
	require.Equal(t, int64(maxRate), w.Report(1e-9, 0, 100*second).Refused)
}

package bucket

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A demandTwin computes the demand as the comment of Report has it, from the reports that are remembered.
type demandTwin struct{ past []Totals }

// before returns the place of the newest report that is so old, or of the oldest.
func (d *demandTwin) before(now int64, span time.Duration) int {
	for i := len(d.past) - 1; i > 0; i-- {
		if now-d.past[i].At >= int64(span) {
			return i
		}
	}
	return 0
}

func (d *demandTwin) report(now Totals, b Backlog, window time.Duration, whole float64) float64 {
	if len(d.past) == 0 {
		d.past = []Totals{now}
		if b.Waiting > 0 || now.At-b.ShortAt < int64(window)/2 {
			return 1
		}
		return 0
	}
	span := window
	if b.Away > 0 {
		span = 5 * window
	}
	half, from := d.past[d.before(now.At, window/5*2)], d.before(now.At, span)
	since := d.past[from]
	d.past = append(d.past[from:len(d.past):len(d.past)], now)
	asked := func(since Totals) float64 { return now.Used + now.Refused - since.Used - since.Refused }
	could := float64(max(now.At-since.At, int64(time.Millisecond))) * whole // the whole limit's earnings meanwhile
	lately := asked(half) + b.Waiting
	switch short := b.Waiting > 0 || b.ShortAt >= half.At; {
	case lately <= 0 && b.Debt == 0:
		return min(b.Away/(float64(window)*whole), 1)
	case b.Away > 0:
		return max(0, min((0.9*asked(since)+b.Waiting+b.Debt)/could, 1))
	case short && lately >= 0.8*(now.Earned-half.Earned):
		return 1
	}
	return max(0, min((asked(since)+b.Waiting+b.Debt)/could, 1))
}

// Small whole numbers, so that what is compared is often equal.
func TestDemandMatchesTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	some := func(n int) float64 { return float64(max(0, r.IntN(3*n)-2*n)) }
	for range testkit.Fewer(5000) {
		var d Demand
		var twin demandTwin
		now := Totals{At: r.Int64N(10) * int64(time.Second)}
		window := 10 * time.Second
		for range 20 {
			now.At += []int64{0, int64(time.Microsecond), int64(time.Second), int64(3 * time.Second), int64(5 * time.Second)}[r.IntN(5)]
			now.Used += 4 * some(2)
			now.Refused += 4 * some(2)
			now.Earned += 5 * some(3)
			if r.IntN(4) == 0 {
				now.Used -= 4 * some(1) // given back
			}
			b := Backlog{Waiting: 4 * some(2), Debt: some(5), Away: some(5), ShortAt: now.At - r.Int64N(8)*int64(time.Second)}
			want := twin.report(now, b, window, 1/float64(time.Second))
			got := d.Report(now, b, window, 1/float64(time.Second))
			require.InDelta(t, want*float64(limit.WholeShare), got, 1, "%+v, %+v, %+v", now, b, d.samples)
			require.Len(t, d.samples, len(twin.past))
			require.Equal(t, len(twin.past), d.Reports())
		}
	}
}

package throttle

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const interval = time.Second // between two reports in these tests

// report asks for the demand as a sharer does, over two intervals.
func report(th *Throttle) float64 {
	return float64(rateHolder{th}.Report(2*interval).Demand) / float64(wholeShare)
}

// reports runs load in every interval of ten, and returns the last demand.
func reports(th *Throttle, load func(ms int)) (demand float64) {
	report(th)
	for range 10 {
		for ms := range 1000 {
			time.Sleep(interval / 1000)
			load(ms)
		}
		demand = report(th)
	}
	return demand
}

// More may be given back in a window than was used in it.
func TestDemandIsNeverNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 1000}, 0.1)
		time.Sleep(time.Second)
		p := take(t, th, 90)
		for range 5 {
			report(th)
			time.Sleep(interval)
		}
		s.give(1) // makes room
		p.Cancel()
		require.Equal(t, int64(90), th.Status().Returned)
		for range 20 {
			take(t, th, 1)
			d := report(th)
			require.GreaterOrEqual(t, d, 0.0)
			require.LessOrEqual(t, d, 1.0)
			time.Sleep(interval / 5)
		}
	})
}

// A caller in a tight loop is refused thousands of times in a window, and each
// refusal may be worth a day.
func TestDemandOfATightLoop(t *testing.T) {
	for _, l := range extremes {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, l)
				report(th)
				for range 5 {
					for range 4000 { // of a month each: more than a Duration holds
						th.TryAcquire(th.limit.maxCost())
					}
					time.Sleep(time.Nanosecond)
					th.TryAcquire(th.limit.maxCost())
					require.InDelta(t, 1, report(th), 0)
				}
			})
		})
	}
}

// While callers are away the platform says who gets them when they come again. What has come in ten seconds is the demand, and not what
// this processor has sent away itself, nor the whole limit because some callers were refused just now.
func TestDemandWhileCallersAreAwayIsWhatComes(t *testing.T) {
	for _, tc := range []struct {
		every int // a draw every so many milliseconds
		want  float64
	}{{100, 0.09}, {25, 0.36}} {
		synctest.Test(t, func(t *testing.T) {
			th, _ := scripted(t, Limit{Max: 100}, 0.25)
			got := reports(th, func(ms int) {
				if ms%tc.every == 0 {
					th.TryAcquire(1)
				}
				if ms%40 == 0 {
					th.NoteAway(1, 2*time.Second)
				}
			})
			require.InDelta(t, tc.want, got, 0.02)
		})
	}
}

// A sharer that reports every millisecond must not make a Throttle remember
// everything.
func TestReportsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1000})
		for range 4000 { // of a month each: more than a Duration holds
			time.Sleep(time.Millisecond)
			report(th)
		}
		require.LessOrEqual(t, th.usage.Reports(), 2100)
	})
}

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
	return float64(rateHolder{th}.Report(2*interval).Demand) / float64(WholeShare)
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

func TestDemandFollowsUse(t *testing.T) {
	for _, tc := range []struct {
		name  string
		share float64
		every int // one draw of one token every so many milliseconds
		want  float64
	}{
		{"idle", 1, 0, 0},
		{"a tenth", 1, 10, 0.1},
		{"half", 1, 2, 0.5},
		{"a hundredth of the limit on a tenth's share", 0.1, 100, 0.01},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, _ := scripted(t, Limit{Max: 1000, Burst: 100}, tc.share)
				time.Sleep(time.Second)
				got := reports(th, func(ms int) {
					if tc.every > 0 && ms%tc.every == 0 {
						take(t, th, 1)
					}
				})
				require.InDelta(t, tc.want, got, 0.01)
			})
		})
	}
}

func TestDemandIsTheWholeWhenShort(t *testing.T) {
	for _, tc := range []struct {
		name  string
		share float64
		load  func(t *testing.T, th *Throttle)
	}{
		{"refused", 0.25, func(_ *testing.T, th *Throttle) { drain(th) }},
		{"refused without a share", 0, func(_ *testing.T, th *Throttle) { drain(th) }},
		{"a deadline too near", 0.25, func(t *testing.T, th *Throttle) {
			drain(th)
			_, err := th.Acquire(timeout(t, time.Nanosecond), 20)
			require.Error(t, err)
		}},
		{"the missing part of AcquireUpTo", 0.25, func(t *testing.T, th *Throttle) {
			_, err := th.AcquireUpTo(t.Context(), 1000)
			require.NoError(t, err)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, _ := scripted(t, Limit{Max: 1000, Burst: 100}, tc.share)
				got := reports(th, func(ms int) {
					if ms%10 == 0 {
						tc.load(t, th)
					}
				})
				require.InDelta(t, 1, got, 0)
			})
		})
	}
}

func TestDemandOfWhoWaits(t *testing.T) {
	for _, share := range []float64{0, 0.001, 0.5} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, _ := scripted(t, Limit{Max: 1000, Burst: 100}, share)
				c := begin(th, 1000, 0)
				require.InDelta(t, 1, report(th), 0, "in the first report")
				time.Sleep(interval)
				require.InDelta(t, 1, report(th), 0, "and in the next")
				c.cancel()
				require.Error(t, c.end(t).err)
				for range 4 {
					time.Sleep(interval)
					report(th)
				}
				require.Zero(t, report(th), "nobody wants anything any more")
			})
		})
	}
}

// A processor whose share went to 0 goes on reporting what its callers want.
func TestDemandAfterTheShareWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		reports(th, func(int) { drain(th) })
		s.give(0)
		require.InDelta(t, 1, reports(th, func(int) { drain(th) }), 0)
		require.Zero(t, reports(th, func(int) {}), "and nothing when they have gone")
	})
}

func TestDemandOfTheFirstReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 1000}, 0)
		drain(th)
		require.InDelta(t, 1, report(th), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 1000}, 0)
		require.Zero(t, report(th))
	})
}

// Debt is wanted until it is paid, also without a share.
func TestDemandCountsDebt(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("keeps its share %v", keeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 0.1)
				time.Sleep(time.Second)
				take(t, th, 1).Settle(1001)
				report(th)
				if !keeps {
					s.give(0)
				}
				for range 4 {
					time.Sleep(interval)
					require.Positive(t, report(th))
				}
				s.give(1)
				for range 5 {
					time.Sleep(interval)
					report(th)
				}
				require.Zero(t, report(th), "paid")
			})
		})
	}
}

func TestDemandDoesNotCountWhatWasGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 1000, Burst: 1000}, 1)
		time.Sleep(time.Second)
		require.Zero(t, reports(th, func(ms int) {
			if ms%10 == 0 {
				take(t, th, 5).Cancel()
			}
		}))
	})
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

// Callers who will ask again are demand when nobody else asks: a share does not shrink to nothing while all work is away.
func TestWhoIsAwayIsDemandAsTheTimeComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100})
		reports(th, func(int) {})
		th.NoteAway(40, 5*time.Second)
		require.Zero(t, report(th), "not within the two seconds of a report")
		time.Sleep(4 * time.Second)
		require.InDelta(t, 0.2, report(th), 0.01, "40 tokens in two seconds, of 100 per second")
	})
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

func TestPoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		for range 100 {
			take(t, th, 1)
		}
		require.Zero(t, s.pokes.Load(), "not while there are tokens")

		for range 1000 {
			deny(t, th, 1)
		}
		require.Equal(t, int64(1), s.pokes.Load(), "refused, at most once in ten milliseconds")
		for range 99 {
			time.Sleep(time.Millisecond)
			deny(t, th, 100)
		}
		require.Equal(t, int64(10), s.pokes.Load())

		for _, short := range []func(){
			func() { begin(th, 1000, time.Second) },
			func() { _, _ = th.Acquire(timeout(t, time.Millisecond), 100) },
			func() { drain(th) },
		} {
			time.Sleep(time.Minute)
			drain(th)
			time.Sleep(10 * time.Millisecond)
			before := s.pokes.Load()
			short()
			require.Equal(t, before+1, s.pokes.Load())
		}
		time.Sleep(time.Minute)
	})
}

// The very first refusal counts, also at the moment the Throttle was made.
func TestPokeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1000}, 0)
		th.TryAcquire(1)
		require.Equal(t, int64(1), s.pokes.Load())
	})
}

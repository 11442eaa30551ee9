package throttle

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettle(t *testing.T) {
	for _, tc := range []struct {
		name   string
		settle func(p Permit)
		want   int // tokens at hand afterwards, of 10 before a draw of 6
		back   int64
	}{
		{"never", func(Permit) {}, 4, 0},
		{"as drawn", func(p Permit) { p.Settle(6) }, 4, 0},
		{"less", func(p Permit) { p.Settle(4) }, 6, 2},
		{"nothing", func(p Permit) { p.Settle(0) }, 10, 6},
		{"negative counts as nothing", func(p Permit) { p.Settle(-5) }, 10, 6},
		{"cancel", Permit.Cancel, 10, 6},
		{"more", func(p Permit) { p.Settle(9) }, 1, 0},
		{"more than there is", func(p Permit) { p.Settle(16) }, -6, 0},
		{"twice", func(p Permit) { p.Settle(5); p.Settle(0) }, 5, 1},
		{"cancel twice", func(p Permit) { p.Cancel(); p.Cancel() }, 10, 6},
		{"cancel after settle", func(p Permit) { p.Settle(6); p.Cancel() }, 4, 0},
		{"settle after cancel", func(p Permit) { p.Cancel(); p.Settle(16) }, 10, 6},
		{"copies are the same permit", func(p Permit) {
			q := p
			r := q
			q.Settle(5)
			p.Cancel()
			r.Settle(100)
		}, 5, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, Limit{Max: 100, Burst: 10})
				time.Sleep(time.Second)
				tc.settle(take(t, th, 6))
				st := th.Status()
				require.InDelta(t, float64(tc.want), st.Tokens, 1e-6)
				require.Equal(t, int64(6), st.Granted)
				require.Equal(t, tc.back, st.Returned)
				sound(t, th)
			})
		})
	}
}

func TestZeroPermit(t *testing.T) {
	var p Permit
	require.Zero(t, p.N())
	p.Settle(5)
	p.Settle(-5)
	p.Cancel()
}

func TestNewPermitSettlesAtMostOnce(t *testing.T) {
	var calls, total atomic.Int64
	p := NewPermit(7, func(used int) {
		calls.Add(1)
		total.Add(int64(used))
	})
	require.Equal(t, 7, p.N())
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { p.Settle(3) })
	}
	wg.Wait()
	p.Cancel()
	require.Equal(t, int64(1), calls.Load())
	require.Equal(t, int64(3), total.Load())

	NewPermit(1, func(used int) { require.Zero(t, used) }).Settle(-4)
	q := NewPermit(2, nil)
	require.Equal(t, 2, q.N())
	q.Settle(1)
	q.Cancel()
}

// Every permit of a long run is settled by itself, in any order and also long
// after others were drawn.
func TestEveryPermitIsSettledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const permits = 20_000
		th := whole(t, Limit{Max: 1_000_000, Burst: 1_000_000})
		time.Sleep(time.Second)
		r := rand.New(rand.NewPCG(1, 1))
		var held []Permit
		want, n := 1_000_000, 0
		for range permits {
			p := take(t, th, 1+r.IntN(20))
			held = append(held, p)
			want -= p.N()
			n += p.N()
		}
		r.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		back := 0
		for i, p := range held {
			used := r.IntN(p.N() + 1)
			p.Settle(used)
			back += p.N() - used
			held[r.IntN(i+1)].Cancel() // settled before
		}
		st := th.Status()
		require.Equal(t, int64(n), st.Granted)
		require.Equal(t, int64(back), st.Returned)
		require.InDelta(t, float64(want+back), st.Tokens, 1e-3)
	})
}

func TestDebtDelaysLaterCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		take(t, th, 10).Settle(60) // half a second's worth of debt
		deny(t, th, 1)
		held, _ := th.Throttled()
		require.Equal(t, ReasonLimit, held.Reason)
		require.InDelta(t, 0.51, held.RetryAfter.Seconds(), 1e-6)
		_, err := th.Acquire(timeout(t, 500*time.Millisecond), 1)
		require.InDelta(t, 0.51, throttled(t, err).RetryAfter.Seconds(), 1e-6)
		began := time.Now()
		acquire(t, th, 1)
		require.InDelta(t, 0.51, time.Since(began).Seconds(), 1e-6)
	})
}

// Tokens that overflowed while nobody looked are gone, and pay no debt.
func TestOverflowPaysNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		p := take(t, th, 10)
		time.Sleep(time.Hour)
		p.Settle(60)
		require.InDelta(t, -40, th.Status().Tokens, 1e-6)
		require.Zero(t, drain(th))
	})
}

func TestDebtOutlivesTheLease(t *testing.T) {
	for _, tc := range []struct {
		name string
		over func(s *script)
	}{
		{"the lease runs out", func(s *script) { time.Sleep(time.Hour) }},
		{"no share", func(s *script) { s.give(0); time.Sleep(time.Hour) }},
		{"lower share and back", func(s *script) { s.give(0.5); s.give(1) }},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, settled late: %v", tc.name, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					th, s := scripted(t, Limit{Max: 100, Burst: 10}, 0)
					s.lend(1, time.Second)
					time.Sleep(time.Second - time.Millisecond)
					p := take(t, th, 10)
					if !late {
						p.Settle(60)
						time.Sleep(time.Millisecond)
					}
					tc.over(s)
					if late {
						p.Settle(60)
					}
					require.Less(t, th.Status().Tokens, -49.0)
					s.give(1)
					began := time.Now()
					acquire(t, th, 1)
					require.InDelta(t, 0.51, time.Since(began).Seconds(), 2e-3)
				})
			})
		}
	}
}

func TestDebtRetimesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		p := take(t, th, 10)
		began := time.Now()
		soon, later := begin(th, 5, 100*time.Millisecond), begin(th, 5, 0)
		p.Settle(30)
		r := soon.end(t)
		require.ErrorIs(t, r.err, ErrThrottled)
		require.Zero(t, r.at.Sub(began), "told at once")
		time.Sleep(time.Second)
		require.InDelta(t, 0.25, later.end(t).at.Sub(began).Seconds(), 1e-6)
	})
}

func TestGateOpensAfterDebtEmptiedTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		p := take(t, th, 10)
		c := begin(th, 5, 100*time.Millisecond)
		p.Settle(30)
		require.ErrorIs(t, c.end(t).err, ErrThrottled)
		sound(t, th)
		time.Sleep(time.Second)
		require.Equal(t, 10, drain(th))
	})
}

// However absurd the cost, debt never turns into tokens.
func TestHugeDebtNeverWrapsAround(t *testing.T) {
	for _, l := range append([]Limit{{Max: 60, Per: time.Minute}, {Max: 1, Per: time.Hour}}, extremes...) {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, l)
				var permits []Permit
				for range 12 {
					p := acquire(t, th, 1)
					permits = append(permits, p)
				}
				level := th.Status().Tokens
				for i, p := range permits {
					p.Settle([]int{1 << 20, 1 << 30, 1 << 40, 1<<63 - 1}[i%4])
					require.LessOrEqual(t, th.Status().Tokens, level)
					level = th.Status().Tokens
				}
				require.Less(t, level, -1.0)
				deny(t, th, 1)
				_, err := th.Acquire(timeout(t, time.Nanosecond), 1)
				require.ErrorIs(t, err, ErrThrottled)
				d := rateHolder{th}.Report(time.Second).Demand
				require.GreaterOrEqual(t, d, int64(0))
				require.LessOrEqual(t, d, WholeShare)
			})
		})
	}
}

func TestGivingBackServesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		p := take(t, th, 10)
		a, b := begin(th, 4, 0), begin(th, 7, 0)
		p.Settle(3)
		require.NoError(t, a.end(t).err)
		require.True(t, b.waits())
		time.Sleep(40*time.Millisecond + time.Microsecond)
		require.NoError(t, b.end(t).err)
		sound(t, th)
	})
}

func TestGivingBackKeepsToTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		p := take(t, th, 8)
		time.Sleep(50 * time.Millisecond)
		p.Cancel()
		require.Equal(t, int64(3), th.Status().Returned, "room for three was left")
		require.Equal(t, 10, drain(th))
	})
}

func TestNothingIsCreditedWithoutAShare(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(th *Throttle, s *script)
	}{
		{"the lease ran out", func(_ *Throttle, s *script) { s.lend(1, time.Millisecond); time.Sleep(time.Second) }},
		{"no share", func(_ *Throttle, s *script) { s.give(0) }},
		{"closed", func(th *Throttle, _ *script) { _ = th.Close() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 100, Burst: 10}, 1)
				time.Sleep(time.Second)
				p := take(t, th, 10)
				tc.end(th, s)
				p.Cancel()
				require.Zero(t, th.Status().Returned)
				s.give(1)
				require.Zero(t, drain(th))
			})
		})
	}
}

// A permit is given back as long as no more than a period's worth was granted
// since it was drawn. Renewals of the lease are no grants.
func TestGivingBackWithinOnePeriodsWorth(t *testing.T) {
	for _, tc := range []struct {
		name    string
		n       int
		since   int // tokens granted since
		renew   int // renewals since
		credits bool
	}{
		{"at once", 1, 0, 0, true},
		{"a period's worth of its own", 100, 0, 0, true},
		{"a period's worth of its own, renewed since", 100, 0, 1000, true},
		{"one, and the rest of the period since", 1, 99, 0, true},
		{"and renewals", 1, 99, 1000, true},
		{"more than a period's worth since", 1, 101, 0, false},
		{"much more", 10, 1000, 10, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 100, Burst: 10}, 1)
				p := acquire(t, th, tc.n)
				for range tc.since {
					acquire(t, th, 1)
				}
				for range tc.renew {
					s.lend(1, time.Hour)
				}
				require.Zero(t, drain(th))
				p.Cancel()
				if tc.credits {
					require.Equal(t, min(tc.n, 10), drain(th))
				} else {
					require.Zero(t, drain(th))
				}
			})
		})
	}
}

// A share that falls takes with it what can be given back, also when it rises again.
func TestGivingBackAfterTheShareFell(t *testing.T) {
	for _, tc := range []struct {
		name string
		fall func(s *script)
		want int64 // tokens given back of the last 50
	}{
		{"renewed", func(s *script) { s.give(1) }, 50},
		{"to a fifth", func(s *script) { s.give(0.2) }, 20},
		{"to a hundredth", func(s *script) { s.give(0.01) }, 1},
		{"to nothing", func(s *script) { s.give(0) }, 0},
		{"run out", func(s *script) { s.lend(1, -1) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 100, Burst: 100}, 1)
				time.Sleep(time.Second)
				drain(th)
				var permits []Permit
				for range 50 {
					p := acquire(t, th, 1)
					permits = append(permits, p)
				}
				tc.fall(s)
				s.give(1)
				for _, p := range permits {
					p.Cancel()
				}
				require.Equal(t, tc.want, th.Status().Returned)
			})
		})
	}
}

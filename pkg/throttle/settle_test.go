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
				require.LessOrEqual(t, d, wholeShare)
			})
		})
	}
}

package throttle

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// Many callers give back, settle above their cost, wait, cancel and close while
// the share changes: in the end every token is accounted for, and nobody is left.
func TestStorm(t *testing.T) {
	t.Run("limit", func(t *testing.T) { storm(t, Limit{Max: 2_000_000, Burst: 200_000}) })
	t.Run("hard limit", func(t *testing.T) { storm(t, Limit{Max: 2_000_000, Burst: 200_000, Hard: true}) })
}

func storm(t *testing.T, l Limit) {
	goroutines := runtime.NumGoroutine()
	th, s := scripted(t, l, 1)
	var held, returned, waited atomic.Int64
	stop := make(chan struct{})
	var callers, others sync.WaitGroup
	for id := range 24 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(id), 5))
			for {
				select {
				case <-stop:
					return
				default:
				}
				p, ok := draw(th, r)
				if !ok {
					waited.Add(1)
					continue
				}
				held.Add(int64(p.N()))
				switch r.IntN(5) {
				case 0:
					p.Cancel()
					p.Settle(1)
					returned.Add(int64(p.N()))
				case 1:
					used := r.IntN(p.N() + 1)
					p.Settle(used)
					returned.Add(int64(p.N() - used))
				case 2:
					p.Settle(p.N() + r.IntN(3))
				}
			}
		})
	}
	others.Go(func() { shake(s, th, stop) })
	time.Sleep(lasts(time.Second))
	close(stop)
	s.give(1)
	callers.Wait()
	others.Wait()

	sound(t, th)
	st := th.Status()
	require.Equal(t, held.Load(), st.Granted, "granted is what the callers got")
	require.LessOrEqual(t, st.Returned, returned.Load(), "no more was credited than was given back")
	require.Positive(t, st.Returned)
	require.Zero(t, st.Waiting)
	// In real time the whole cannot be above what the whole share has earned.
	most := float64(th.limit.Max)*time.Since(th.gate.Base).Seconds() + float64(st.Returned) + 1
	require.LessOrEqual(t, float64(st.Granted), most)
	require.NoError(t, th.Close())
	for began := time.Now(); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		require.Less(t, time.Since(began), 5*time.Second, "goroutines left behind")
	}
}

// draw makes one call of any kind; ok is false when it got nothing.
func draw(th *Throttle, r *rand.Rand) (Permit, bool) {
	n := 1 + r.IntN(50)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(3000))*time.Microsecond)
	defer cancel()
	if r.IntN(4) == 0 {
		time.AfterFunc(time.Duration(r.IntN(500))*time.Microsecond, cancel)
	}
	var p Permit
	var err error
	switch r.IntN(4) {
	case 0:
		p, err = th.Acquire(ctx, n)
	case 1:
		p, err = th.AcquireUpTo(ctx, n)
	case 2:
		p, err = th.Acquire(ctx, 1+r.IntN(300_000))
	default:
		return th.TryAcquire(n)
	}
	return p, err == nil
}

// shake changes the share in every way, and looks at the Throttle, until stop.
func shake(s *script, th *Throttle, stop chan struct{}) {
	r := rand.New(rand.NewPCG(1, 6))
	for {
		select {
		case <-stop:
			return
		default:
		}
		switch r.IntN(6) {
		case 0:
			s.give(0)
		case 1:
			s.lend(r.Float64(), time.Duration(r.IntN(1000))*time.Microsecond)
		case 2:
			s.give(r.Float64())
		default:
			s.give(1)
		}
		th.Status()
		th.Throttled()
		_ = rateHolder{th}.Report(time.Millisecond)
		time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
	}
}

// With room for everything that is given back, what was granted less what was
// returned is exactly what the callers hold.
func TestStormIsExactWhenEverythingIsCredited(t *testing.T) {
	const tokens = 500_000_000
	th, s := scripted(t, Limit{Max: 1_000_000_000, Per: maxPer, Burst: 1_000_000_000}, 1)
	brimming(th, tokens)
	before := th.Status().Tokens
	var held, debt atomic.Int64
	var callers, renewals sync.WaitGroup
	stop := make(chan struct{})
	renewals.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.give(1)
			}
		}
	})
	for id := range 8 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(id), 8))
			for range 20_000 {
				p, ok := th.TryAcquire(1 + r.IntN(100))
				if !ok {
					t.Error("no tokens")
					return
				}
				used := r.IntN(150)
				if r.IntN(2) == 0 {
					used = p.N()
				}
				p.Settle(used)
				p.Cancel()
				held.Add(int64(min(used, p.N())))
				debt.Add(int64(max(used-p.N(), 0)))
			}
		})
	}
	callers.Wait()
	close(stop)
	renewals.Wait()
	st := th.Status()
	require.Equal(t, held.Load(), st.Granted-st.Returned)
	earned := 1e9 / maxPer.Seconds() * time.Since(th.gate.Base).Seconds()
	require.LessOrEqual(t, st.Tokens, before-float64(held.Load()+debt.Load())+earned)
	require.GreaterOrEqual(t, st.Tokens, before-float64(held.Load()+debt.Load())-1)
}

// Close while callers draw and wait: after it nothing is granted, and everyone
// who waited is told.
func TestCloseUnderLoad(t *testing.T) {
	for range testkit.Fewer(50) {
		th := whole(t, Limit{Max: 1_000_000, Burst: 1000})
		var wg sync.WaitGroup
		for id := range 8 {
			wg.Go(func() {
				for {
					var err error
					if id%2 == 0 {
						_, err = th.Acquire(context.Background(), 1+id*100)
					} else if _, ok := th.TryAcquire(1); !ok && th.Status().Closed {
						return
					}
					if err != nil {
						if e := throttled(t, err); e.Reason != ReasonClosed {
							t.Errorf("%v", err)
						}
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		require.NoError(t, th.Close())
		granted := th.Status().Granted
		wg.Wait()
		require.Equal(t, granted, th.Status().Granted)
		sound(t, th)
	}
}

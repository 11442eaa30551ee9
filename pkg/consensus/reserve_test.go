package consensus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// away returns a way to a store that is some time away.
func away(store driver.Store, takes time.Duration) *world.Link {
	l := world.NewLink(store)
	l.Takes.Store(int64(takes))
	l.Returns.Store(int64(takes))
	return l
}

// A worker is one processor with callers that draw as soon as they can.
type worker struct {
	m    *consensus.Member
	th   *throttle.Throttle
	link *world.Link

	mu    sync.Mutex
	calls []time.Time
	slots []int64 // that were reserved, on the store's clock, in nanoseconds
	stop  context.CancelFunc
}

func work(t *testing.T, store driver.Store, id string, l throttle.Limit, workers int, takes time.Duration) *worker {
	t.Helper()
	w := &worker{link: away(store, takes)}
	w.link.OnReserve(func(res *driver.Reserved, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := range res.Count {
			w.slots = append(w.slots, res.Time*1000+int64(res.Wait)+int64(i)*int64(res.Spacing))
		}
	})
	w.m, w.th = attach(t, w.link, id, l)
	w.stop = callers(w.th, workers, 1, func(p throttle.Permit) {
		w.mu.Lock()
		w.calls = append(w.calls, time.Now())
		w.mu.Unlock()
		p.Settle(1)
	})
	t.Cleanup(func() {
		w.stop()
		w.link.Cut.Store(false)
		_ = w.th.Close()
		time.Sleep(2 * time.Second) // for requests under way
	})
	return w
}

// all returns the calls of several workers in the order of their times.
func all(ws []*worker) (calls []int64) {
	for _, w := range ws {
		w.mu.Lock()
		for _, at := range w.calls {
			calls = append(calls, at.UnixNano())
		}
		w.mu.Unlock()
	}
	slices.Sort(calls)
	return calls
}

// slotsOf returns the slots of several workers in the order of their times.
func slotsOf(ws []*worker) (slots []int64) {
	for _, w := range ws {
		w.mu.Lock()
		slots = append(slots, w.slots...)
		w.mu.Unlock()
	}
	slices.Sort(slots)
	return slots
}

// apart fails unless any two of times are at least so far apart.
func apart(t *testing.T, times []int64, d time.Duration, what string) {
	t.Helper()
	for i := 1; i < len(times); i++ {
		require.GreaterOrEqual(t, time.Duration(times[i]-times[i-1]), d, "%s %d", what, i)
	}
}

// A processor that joins a pool does not keep it from issuing, before its limiter is
// attached or after.
func TestJoiningDoesNotEndIssuing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		l := throttle.Limit{Max: 1, Per: 4 * time.Second}
		ws := []*worker{work(t, store, "a", l, 1, 0), work(t, store, "b", l, 1, 0)}
		time.Sleep(time.Minute)
		require.True(t, ws[0].m.View().Issuing)
		late, err := consensus.Join(t.Context(), store, "pool", consensus.WithID("late"), consensus.WithLogger(quiet), consensus.WithFailFast())
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		th, err := throttle.New(l, throttle.WithSharer(late), throttle.OnClose(late.Leave))
		require.NoError(t, err)
		for range 20 {
			time.Sleep(500 * time.Millisecond)
			require.True(t, ws[0].m.View().Issuing)
		}
		require.True(t, late.View().Issuing)
		require.NoError(t, th.Close())
		apart(t, slotsOf(ws), 4*time.Second, "slot")
	})
}

// A pool grows and shrinks under load, over the size at which its limit is too low to be
// divided and back: no window sees more than the bound, and the limit is used.
func TestPoolCrossesTheThreshold(t *testing.T) {
	testkit.SkipRace(t, "it measures; scenarios of strict limits and TestShell run with it")
	testkit.SkipShort(t, "many pools")
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			store := memstore.New()
			l := throttle.Limit{Max: 6 + r.IntN(10), MaxReserved: []int{0, 0, 3, 20}[r.IntN(4)]}
			spacing := time.Second / time.Duration(l.Max)
			var ws, gone []*worker
			most, issued, shared := 0, 0, 0
			began := time.Now()
			for phase := range 8 {
				size := 1 + r.IntN(2)
				if phase%2 == 1 {
					size = 2*l.Max + r.IntN(5)
				}
				for len(ws) < size {
					away := time.Duration(r.IntN(30)) * time.Millisecond
					ws = append(ws, work(t, store, fmt.Sprint(len(ws)+len(gone)), l, 1+r.IntN(3), away))
					time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
				}
				for len(ws) > size {
					k := r.IntN(len(ws))
					w := ws[k]
					ws = slices.Delete(ws, k, k+1)
					gone = append(gone, w)
					w.stop()
					if r.IntN(3) == 0 {
						w.link.Cut.Store(true) // it dies
					} else {
						require.NoError(t, w.th.Close())
					}
				}
				time.Sleep(time.Duration(20+r.IntN(10)) * time.Second)
				most = max(most, len(ws))
				if ws[0].m.View().Issuing {
					issued++
				} else {
					shared++
				}
			}
			took := time.Since(began)
			calls := all(append(ws, gone...))
			use := float64(len(calls)) / float64(l.Max) / took.Seconds()
			t.Logf("seed %d: %d per second, %d reserved: use %.3f, %d phases issued, %d shared", seed, l.Max, l.MaxReserved, use, issued, shared)
			require.Equal(t, 4, issued)
			require.Equal(t, 4, shared)
			require.GreaterOrEqual(t, use, 0.75)
			// What one processor may have at hand, and what may be late by a validity.
			bound := l.Burst + 1 + most + int(250*time.Millisecond/spacing) + 1
			for i := range calls { // every window that begins with a call
				for _, n := range []int{bound + 1, bound + 5, bound + 40, bound + 300} {
					if j := i + n - 1; j < len(calls) {
						w := time.Duration(calls[j] - calls[i])
						require.Greater(t, float64(w)/float64(spacing)+float64(bound), float64(n-1), "seed %d: %d calls within %s", seed, n, w)
					}
				}
			}
		})
	}
}

// The first sync names the terms of a limiter that is made right after Join, whichever goroutine runs first: a pool that has given out
// shares issues nothing until they are back.
func TestTheFirstSyncKnowsTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := world.NewLink(memstore.New())
		m, err := consensus.Join(t.Context(), link, "pool", consensus.WithID("a"))
		require.NoError(t, err)
		synctest.Wait() // the member's loop runs before the limiter is made
		th, err := throttle.New(throttle.Limit{Max: 10, Strict: true}, throttle.WithSharer(m))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, errors.Join(th.Close(), m.Leave(context.Background()))) })
		synctest.Wait()
		require.EqualValues(t, 1, link.Answered.Load())
		require.True(t, m.View().Issuing)
	})
}

// A member that no limiter uses joins nevertheless.
func TestAMemberWithoutALimiterJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := world.NewLink(memstore.New())
		m, err := consensus.Join(t.Context(), link, "pool", consensus.WithID("a"))
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond)
		require.EqualValues(t, 1, link.Answered.Load())
		require.NoError(t, m.Leave(t.Context()))
	})
}

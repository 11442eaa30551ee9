package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A reservation keeps so many tokens, as a reserver does for nobody in particular, and counts cuts.
type reservation struct {
	t            *Throttle
	keeps, comes int
	until        int64
	passing      bool
	cuts         int
}

func (r *reservation) kept(now int64, w *waiter) int64 {
	if now >= r.until || r.passing && !w.Queued() {
		return 0
	}
	return r.t.bucket.Units(r.keeps)
}

func (r *reservation) keptUntil() int64           { return r.until }
func (r *reservation) passes(int64, *waiter) bool { return r.passing }
func (r *reservation) coming() int                { return r.comes }
func (r *reservation) cut()                       { r.cuts++ }

// reserved returns a scripted Throttle with a reserver.
func reserved(t *testing.T, l Limit, share float64) (*Throttle, *script, *reservation) {
	t.Helper()
	th, s := scripted(t, l, share)
	r := &reservation{t: th}
	th.reserver = r
	return th, s, r
}

// A limit keeps tokens as its reserver says. It need not know any tag for that.
func TestALimitAsksItsReserver(t *testing.T) {
	for what, test := range map[string]func(t *testing.T){
		"a waiter leaves what is kept": func(t *testing.T) {
			th, _, r := reserved(t, Limit{Max: 10, Burst: 5}, 1)
			r.keeps, r.until = 3, never
			acquire(t, th, 1)
			require.InDelta(t, 400*time.Millisecond, th.gate.Now(), 1000)
		},
		"for as long as it is kept": func(t *testing.T) {
			th, _, r := reserved(t, Limit{Max: 10, Burst: 5}, 1)
			r.keeps, r.until = 3, int64(250*time.Millisecond)
			acquire(t, th, 1)
			require.InDelta(t, r.until, th.gate.Now(), 1000)
		},
		"who may pass takes kept tokens": func(t *testing.T) {
			th, _, r := reserved(t, Limit{Max: 10, Burst: 5}, 1)
			r.keeps, r.until = 3, never
			go func() { _, _ = th.Acquire(t.Context(), 1) }()
			time.Sleep(200 * time.Millisecond)
			comes := rateSource{&th.rateLimiter}
			for _, passing := range []bool{false, true} {
				comes.Lock()
				r.passing = passing
				w := join.Newcomer(comes, 1)
				_, taken := comes.Take(&w, 1)
				comes.Unlock()
				require.Equal(t, passing, taken)
			}
			require.Equal(t, 1, th.Status().Waiting)
		},
		"callers outside the queue are demand": func(t *testing.T) {
			th, _, r := reserved(t, Limit{Max: 10}, 1)
			require.Zero(t, report(th))
			r.comes = 20
			require.Positive(t, report(th))
		},
		"a larger share on request is no promise": func(t *testing.T) {
			th, s, r := reserved(t, Limit{Max: 10, Burst: 1}, 0.1)
			s.h.Lease(limit.Lease{Share: fraction(0.1), Even: fraction(0.5)})
			wait := func() time.Duration {
				held, ok := th.Throttled()
				require.True(t, ok)
				return held.RetryAfter
			}
			kept := wait()
			th.reserver = nil
			require.InDelta(t, kept/5, wait(), float64(time.Millisecond))
			th.reserver = r
		},
		"it learns of each cut": func(t *testing.T) {
			th, s, r := reserved(t, Limit{Max: 100, Adaptive: true}, 1)
			s.h.Lease(limit.Lease{Share: wholeShare, Cuts: 1})
			require.Equal(t, 1, r.cuts, "by the pool")
			for range 20 {
				acquire(t, th, 1).Report(OutcomeRefused)
			}
			require.Less(t, th.Status().Backoff.Part, 1.0)
			require.EqualValues(t, 1+th.Status().Backoff.Cuts, r.cuts, "by itself")
		},
	} {
		t.Run(what, func(t *testing.T) { synctest.Test(t, test) })
	}
}

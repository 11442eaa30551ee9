package admission_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// An office is a sharer of which a test says what it leases, and which issues slots as a store would: none in a
// freeze, and no two nearer than the spacing.
type office struct {
	first  limit.Lease
	empty  bool  // it grants no slot at all
	broken error // it answers nothing

	mu     *sync.Mutex // guards what follows
	holder sharing.Holder
	lease  limit.Lease
	next   time.Time // of the next slot
}

func (o *office) Attach(h sharing.Holder) { o.holder = h; o.give(o.first) }
func (*office) Poke()                     {}

func (o *office) give(l limit.Lease) {
	o.mu.Lock()
	o.lease = l
	o.mu.Unlock()
	o.holder.Lease(l)
}

func (o *office) Pause(_ context.Context, until time.Time, _ string, _ ...throttle.PauseOption) (throttle.PauseReceipts, error) {
	o.holder.SetPauses([]throttle.Paused{{Until: until}})
	return throttle.PauseReceipts{Until: until}, nil
}

func (*office) Resume(context.Context, ...throttle.PauseOption) error { return nil }

func (*office) RetryAfter(time.Time, string) {}

var _ sharing.Pool = (*office)(nil)

// Reserve implements sharing.Pool.
func (o *office) Reserve(order sharing.Order, done func(sharing.Slots, error)) {
	go func() { done(o.reserve(order)) }()
}

func (o *office) reserve(order sharing.Order) (sharing.Slots, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	s := sharing.Slots{Spacing: order.Spacing, Part: order.Ahead + 1}
	thaw := max(o.lease.Frozen.Sub(now), 0)
	next := max(o.next.Sub(now), thaw, 0)
	switch {
	case o.broken != nil:
		return sharing.Slots{Again: time.Second}, o.broken
	case o.empty, thaw > 0, next > time.Duration(order.Ahead)*order.Spacing:
		s.Next, s.Again = next, max(next-time.Duration(order.Ahead)*order.Spacing, time.Second/10)
	case order.Count > 0:
		s.Count, s.Wait, s.Next = 1, next, next+order.Spacing
		o.next = now.Add(s.Next)
		s.Again = s.Next
	}
	return s, nil
}

const (
	maxWait = 8 * time.Second
	frozen  = 15 * time.Second
)

// A held is one reason for which callers are held back, and what becomes of one call with a MaxWait.
type held struct {
	name   string
	reason throttle.Reason
	// make returns a limiter that holds everybody back for the reason.
	make func(t *testing.T) throttle.Limiter
	cost int           // 0: one
	ends time.Duration // when the call ends; -1: at once
	got  bool          // it gets its tokens
	not  bool          // the error is no denial
}

func with(limit throttle.Limit, o *office) func(t *testing.T) throttle.Limiter {
	return func(t *testing.T) throttle.Limiter { return newThrottle(t, limit, throttle.WithSharer(o)) }
}

// lent is a lease that begins now.
func lent(l limit.Lease, until, thaw time.Duration) func(*office) limit.Lease {
	return func(*office) limit.Lease {
		if until > 0 {
			l.Until = time.Now().Add(until)
		}
		if thaw > 0 {
			l.Frozen = time.Now().Add(thaw)
		}
		return l
	}
}

// leased returns a limiter of which the lease changes as time goes on.
func leased(limit throttle.Limit, o office, first func(*office) limit.Lease, then ...func(*office) limit.Lease) func(t *testing.T) throttle.Limiter {
	return func(t *testing.T) throttle.Limiter {
		o := o // a copy for each test
		o.mu = new(sync.Mutex)
		o.first = first(&o)
		l := with(limit, &o)(t)
		if len(then) > 0 {
			timer := time.AfterFunc(time.Until(o.first.Frozen), func() { o.give(then[0](&o)) })
			t.Cleanup(func() { timer.Stop() })
		}
		return l
	}
}

func reasons() []held {
	ten := throttle.Limit{Max: 10, Per: 10 * time.Second, Burst: 1}
	slow := throttle.Limit{Max: 1, Per: 5 * time.Second}
	strict := throttle.Limit{Max: 1, Per: 5 * time.Second, Strict: true}
	whole := lent(limit.Lease{Share: limit.WholeShare}, 0, 0)
	issuing := limit.Lease{Issuing: true}
	paused := func(d time.Duration, l func(t *testing.T) throttle.Limiter) func(t *testing.T) throttle.Limiter {
		return func(t *testing.T) throttle.Limiter {
			p := throttle.Paused{}
			if d > 0 {
				p.Until = time.Now().Add(d)
			}
			of := l(t)
			h, ok := of.(interface {
				Pause(ctx context.Context, until time.Time, reason string, opts ...throttle.PauseOption) (throttle.PauseReceipts, error)
			})
			require.True(t, ok)
			_, err := h.Pause(t.Context(), p.Until, "")
			require.NoError(t, err)
			return of
		}
	}
	slots := func(t *testing.T) throttle.Limiter {
		f, err := throttle.NewInFlight(1)
		require.NoError(t, err)
		return f
	}
	busy := func(t *testing.T) throttle.Limiter {
		f := slots(t)
		_, ok := f.TryAcquire(1)
		require.True(t, ok)
		return f
	}
	return []held{
		{name: "the limit, soon", reason: throttle.ReasonLimit, make: leased(slow, office{}, whole), ends: 5 * time.Second, got: true},
		{name: "the limit, later", reason: throttle.ReasonLimit, make: leased(throttle.Limit{Max: 1, Per: 9 * time.Second}, office{}, whole), ends: -1},
		{name: "no share", reason: throttle.ReasonNoShare, make: leased(ten, office{}, lent(limit.Lease{}, 0, 0)), ends: maxWait},
		{
			name: "frozen, and a share then", reason: throttle.ReasonFrozen,
			make: leased(ten, office{}, lent(limit.Lease{}, 0, frozen), whole),
			ends: frozen + time.Second, got: true,
		},
		{
			name: "frozen, and no share then", reason: throttle.ReasonNoShare,
			make: leased(ten, office{}, lent(limit.Lease{}, 0, frozen)),
			ends: frozen + maxWait,
		},
		{
			name: "frozen, and frozen again", reason: throttle.ReasonNoShare,
			make: leased(ten, office{}, lent(limit.Lease{}, 0, frozen), lent(limit.Lease{}, 0, frozen)),
			ends: 2*frozen + maxWait,
		},
		{
			name: "frozen, and lost", reason: throttle.ReasonStoreLost,
			make: leased(ten, office{}, lent(limit.Lease{Share: limit.WholeShare}, time.Nanosecond, frozen)),
			ends: frozen + maxWait,
		},
		{name: "frozen, in All", reason: throttle.ReasonNoShare, make: func(t *testing.T) throttle.Limiter {
			return throttle.All(leased(ten, office{}, lent(limit.Lease{}, 0, frozen))(t), busy(t))
		}, ends: frozen + maxWait},
		{
			name: "issued, frozen", reason: throttle.ReasonFrozen,
			make: leased(slow, office{}, lent(issuing, 0, frozen)),
			ends: frozen + 100*time.Millisecond, got: true,
		},
		{name: "issued, frozen, behind one", reason: throttle.ReasonFrozen, make: func(t *testing.T) throttle.Limiter {
			l := leased(strict, office{}, lent(issuing, 0, frozen))(t)
			go func() { _, _ = l.Acquire(t.Context(), 1) }()
			synctest.Wait()
			return l
		}, ends: frozen + 5100*time.Millisecond, got: true},
		{name: "issued, frozen, behind two", reason: throttle.ReasonFrozen, make: func(t *testing.T) throttle.Limiter {
			l := leased(strict, office{}, lent(issuing, 0, frozen))(t)
			for range 2 {
				go func() { _, _ = l.Acquire(t.Context(), 1) }()
			}
			synctest.Wait()
			return l
		}, ends: -1},
		{
			name: "issued, frozen, and never issued", reason: throttle.ReasonSlotsTaken,
			make: leased(strict, office{empty: true}, lent(issuing, 0, frozen)),
			ends: frozen + maxWait,
		},
		{name: "issued, reserved by others", reason: throttle.ReasonSlotsTaken, make: leased(strict, office{empty: true}, lent(issuing, 0, 0)), ends: maxWait},
		{
			name: "issued, the store is lost", reason: throttle.ReasonStoreLost,
			make: leased(strict, office{broken: errors.New("away")}, lent(issuing, 0, 0)),
			ends: maxWait,
		},
		{name: "issued, in All with slots", reason: throttle.ReasonFrozen, make: func(t *testing.T) throttle.Limiter {
			return throttle.All(leased(strict, office{}, lent(issuing, 0, frozen))(t), slots(t))
		}, ends: frozen + 100*time.Millisecond, got: true},
		{name: "share too small", reason: throttle.ReasonShareTooSmall, make: leased(
			throttle.Limit{Max: 10, Per: 10 * time.Second, Burst: 5, Hard: true}, office{},
			lent(limit.Lease{Share: limit.WholeShare / 10}, 0, 0)), cost: 2, ends: maxWait},
		{
			name: "store lost", reason: throttle.ReasonStoreLost,
			make: leased(ten, office{}, lent(limit.Lease{Share: limit.WholeShare}, time.Nanosecond, 0)),
			ends: maxWait,
		},
		{
			name: "unreadable", reason: throttle.ReasonUnreadable,
			make: leased(ten, office{}, lent(limit.Lease{Reason: throttle.ReasonUnreadable}, 0, 0)),
			ends: maxWait,
		},
		{
			name: "replaced", reason: throttle.ReasonReplaced,
			make: leased(ten, office{}, lent(limit.Lease{Reason: throttle.ReasonReplaced}, 0, 0)),
			ends: maxWait,
		},
		{name: "the sharer's own", reason: "elsewhere", make: leased(ten, office{}, lent(limit.Lease{Reason: "elsewhere"}, 0, 0)), ends: maxWait},
		{
			name: "adaptive", reason: throttle.ReasonAdaptive,
			make: leased(throttle.Limit{Max: 1, Per: 9 * time.Second}, office{}, lent(limit.Lease{Share: limit.WholeShare, Adapted: true}, 0, 0)),
			ends: -1,
		},
		{name: "too large", reason: throttle.ReasonTooLarge, make: leased(ten, office{}, whole), cost: 11, ends: -1},
		{name: "closed", reason: throttle.ReasonClosed, make: func(t *testing.T) throttle.Limiter {
			l := newThrottle(t, ten)
			require.NoError(t, l.Close())
			return l
		}, ends: -1, not: true},
		{name: "in flight", reason: throttle.ReasonInFlight, make: busy, ends: maxWait},
		{name: "paused for long", reason: throttle.ReasonPause, make: paused(time.Minute, leased(ten, office{}, whole)), ends: -1},
		{name: "paused until somebody resumes", reason: throttle.ReasonPause, make: paused(0, leased(ten, office{}, whole)), ends: maxWait},
		{name: "slots paused until somebody resumes", reason: throttle.ReasonPause, make: paused(0, slots), ends: maxWait},
		{
			name: "paused in a freeze, for longer", reason: throttle.ReasonPause,
			make: paused(time.Minute, leased(ten, office{}, lent(limit.Lease{}, 0, frozen))),
			ends: -1,
		},
		{
			name: "paused in a freeze, for ever", reason: throttle.ReasonPause,
			make: paused(0, leased(ten, office{}, lent(limit.Lease{}, 0, frozen))),
			ends: frozen + maxWait,
		},
		{
			name: "paused and issued in a freeze", reason: throttle.ReasonPause,
			make: paused(time.Minute, leased(strict, office{}, lent(issuing, 0, frozen))),
			ends: -1,
		},
		{name: "a limiter that says the same always", reason: throttle.ReasonFrozen, make: func(*testing.T) throttle.Limiter {
			return throttletest.New(throttletest.Deny(&throttle.Error{Reason: throttle.ReasonFrozen, Frozen: frozen}))
		}, ends: -1},
		{name: "a limiter that knows no end of a freeze", reason: throttle.ReasonFrozen, make: func(*testing.T) throttle.Limiter {
			return throttletest.New(throttletest.Deny(&throttle.Error{Reason: throttle.ReasonFrozen, RetryAfter: frozen}))
		}, ends: -1},
		{name: "a quota that comes too late", reason: throttle.ReasonQuota, make: func(*testing.T) throttle.Limiter {
			return throttletest.New(throttletest.Deny(&throttle.Error{Reason: throttle.ReasonQuota, RetryAfter: time.Hour}))
		}, ends: -1},
		{name: "a budget that is spent", reason: throttle.ReasonBudget, make: func(*testing.T) throttle.Limiter {
			return throttletest.New(throttletest.Deny(&throttle.Error{Reason: throttle.ReasonBudget, RetryAfter: time.Hour}))
		}, ends: -1},
		{name: "a class that comes later", reason: throttle.ReasonClass, make: func(*testing.T) throttle.Limiter {
			return throttletest.New(throttletest.Deny(&throttle.Error{Reason: throttle.ReasonClass, RetryAfter: time.Hour}))
		}, ends: -1},
	}
}

// Whatever holds a message back, it waits for the freeze and MaxWait at most, and is denied as soon as it is known that
// its tokens come later than that.
func TestEveryReasonAgainstMaxWait(t *testing.T) {
	admits := map[string]func(*admission.Admitter) func(context.Context, string, int) (throttle.Permit, error){
		"message": func(g *admission.Admitter) func(context.Context, string, int) (throttle.Permit, error) {
			return g.Admit
		},
		"batch": func(g *admission.Admitter) func(context.Context, string, int) (throttle.Permit, error) {
			return g.Batch(maxWait).Admit
		},
		"batch without MaxWait": func(g *admission.Admitter) func(context.Context, string, int) (throttle.Permit, error) {
			g.MaxWait = 0
			return g.Batch(maxWait).Admit
		},
		"batch of a long budget": func(g *admission.Admitter) func(context.Context, string, int) (throttle.Permit, error) {
			return g.Batch(time.Hour).Admit
		},
	}
	// The first one is in counts alone; the second one is ReasonQuota for names that share a quota, of which there are 12,288 then.
	known := map[throttle.Reason]bool{throttle.ReasonOther: true, throttle.ReasonNames: true}
	for _, c := range reasons() {
		known[c.reason] = true
		for how, admit := range admits {
			t.Run(c.name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel() // of those who wait yet
					began := time.Now()
					g := &admission.Admitter{Limiter: c.make(t), MaxWait: maxWait}
					p, err := admit(g)(ctx, "", max(c.cost, 1))
					require.InDelta(t, max(c.ends, 0), time.Since(began), float64(200*time.Millisecond), "%v", err)
					if c.got {
						require.NoError(t, err)
						require.Equal(t, 1, p.N())
						return
					}
					require.LessOrEqual(t, time.Since(began), max(c.ends, 0)+time.Millisecond)
					var e *throttle.Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, c.reason, e.Reason)
					var d *admission.Denied
					if c.not {
						require.NotErrorAs(t, err, &d)
						return
					}
					require.ErrorAs(t, err, &d)
				})
			})
		}
	}
	for _, r := range throttle.Reasons() {
		require.True(t, known[r], "no case for %q", r)
	}
}

// Of forty calls in a freeze the two are granted that can be within MaxWait of its end, and the others are denied at
// once: as with a store that does not freeze.
func TestManyCallsInAFreeze(t *testing.T) {
	for name, wait := range map[string]time.Duration{"": 0, ", batch": maxWait} {
		for _, thaw := range []time.Duration{0, frozen} {
			for _, late := range []time.Duration{0, time.Second} { // until the processor knows of the pool
				t.Run(fmt.Sprint(thaw, " after ", late, name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						o := &office{mu: new(sync.Mutex)}
						l := with(throttle.Limit{Max: 1, Per: 5 * time.Second, Strict: true}, o)(t)
						time.AfterFunc(late, func() { o.give(lent(limit.Lease{Issuing: true}, 0, thaw)(o)) })
						g := &admission.Admitter{Limiter: l, MaxWait: maxWait}
						b := g.Batch(wait)
						began := time.Now()
						var granted, atOnce int
						var mu sync.Mutex
						var all sync.WaitGroup
						for range 40 {
							all.Go(func() {
								_, err := b.Admit(t.Context(), "", 1)
								took := time.Since(began)
								mu.Lock()
								defer mu.Unlock()
								if err == nil {
									granted++
									require.GreaterOrEqual(t, took, thaw)
									require.LessOrEqual(t, took, late+thaw+maxWait)
									return
								}
								d := denied(t, err)
								require.Greater(t, d.Err.RetryAfter, thaw)
								if took <= late+100*time.Millisecond {
									atOnce++
								}
							})
						}
						all.Wait()
						require.Equal(t, 2, granted)
						require.Equal(t, 38, atOnce)
					})
				})
			}
		}
	}
}

// The budget of a batch counts from the end of the freeze for a message too that comes in the middle of it.
func TestTheBudgetOfABatchCountsFromTheEndOfTheFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leased(throttle.Limit{Max: 10}, office{}, lent(limit.Lease{}, 0, frozen))(t)
		b := (&admission.Admitter{Limiter: l}).Batch(maxWait)
		began := time.Now()
		var all sync.WaitGroup
		for _, after := range []time.Duration{0, 12 * time.Second, 20 * time.Second} {
			all.Go(func() {
				time.Sleep(after)
				_, err := b.Admit(t.Context(), "", 1)
				requireDenied(t, err)
				require.Equal(t, frozen+maxWait, time.Since(began))
			})
		}
		all.Wait()
		_, err := b.Admit(t.Context(), "", 1)
		requireDenied(t, err)
		require.Equal(t, frozen+maxWait, time.Since(began), "nothing is left")
	})
}

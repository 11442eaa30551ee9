package shell

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	links "github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A leaseHolder changes the leases of a Holder, or leaves them out.
type leaseHolder struct {
	sharing.Holder
	lease func(limit.Lease) (changed limit.Lease, ok bool)
}

func (h leaseHolder) Lease(l limit.Lease) {
	if changed, ok := h.lease(l); ok {
		h.Holder.Lease(changed)
	}
}

// A betweenSharer attaches what is between a Member and a limiter.
type betweenSharer struct {
	throttle.Sharer
	between func(sharing.Holder) sharing.Holder
}

func (s betweenSharer) Attach(h sharing.Holder) { s.Sharer.Attach(s.between(h)) }

func leasing(lease func(limit.Lease) (changed limit.Lease, ok bool)) wiring {
	return wiring{sharer: func(s throttle.Sharer) throttle.Sharer {
		return betweenSharer{s, func(h sharing.Holder) sharing.Holder { return leaseHolder{h, lease} }}
	}}
}

// endless leases have no end.
func endless(l limit.Lease) (limit.Lease, bool) {
	l.Until = time.Time{}
	return l, l.Share > 0
}

// A brokenLimiter does something around Acquire.
type brokenLimiter struct {
	throttle.Limiter
	acquire func(l throttle.Limiter, ctx context.Context, n int) (throttle.Permit, error)
}

func (b brokenLimiter) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	return b.acquire(b.Limiter, ctx, n)
}

func limiting(acquire func(throttle.Limiter, context.Context, int) (throttle.Permit, error)) wiring {
	return wiring{limiter: func(l throttle.Limiter) throttle.Limiter { return &brokenLimiter{l, acquire} }}
}

// storing returns a wiring whose store answers other shares.
func storing(share func(driver.Share) driver.Share) wiring {
	return wiring{store: func(inner driver.Store) driver.Store {
		l := links.NewLink(inner)
		l.OnSync(func(ans *driver.Answer, err error) {
			if err == nil && ans.Status == driver.Granted {
				ans.Share = share(ans.Share)
			}
		})
		return l
	}}
}

// A silentStore is not told of those who leave.
type silentStore struct{ driver.Store }

func (silentStore) Leave(context.Context, driver.Leave) error { return nil }

// TestBroken breaks something on purpose: the judge has to see it, and would not
// without.
func TestBroken(t *testing.T) {
	testkit.SkipShort(t, "many pools of real Members")
	testkit.SkipRace(t, "it tests the judge of TestShell, which runs with it")
	for _, c := range []struct {
		name   string
		wiring wiring
		kind   breach
	}{
		{"nothing", wiring{}, ""},
		{"the store answers twice the share", storing(func(s driver.Share) driver.Share { return min(2*s, driver.Whole) }), breachShares},
		{"the store never answers more than a thirtieth", storing(func(s driver.Share) driver.Share { return min(s, driver.Whole/30) }), breachRecovery},
		{"the store is not told of those who leave", wiring{store: func(s driver.Store) driver.Store { return silentStore{s} }}, breachLeft},
		{"leases do not end", leasing(endless), breachShares},
		{"twice the share is used", leasing(func(l limit.Lease) (limit.Lease, bool) {
			l.Share *= 2
			return l, true
		}), breachRate},
		{"a token more than was asked for", limiting(func(l throttle.Limiter, ctx context.Context, n int) (throttle.Permit, error) {
			p, err := l.Acquire(ctx, n)
			if err != nil {
				return p, err
			}
			return throttle.NewPermit(n+1, nil), nil
		}), breachCount},
		{"deadlines are not heeded", limiting(func(l throttle.Limiter, ctx context.Context, n int) (throttle.Permit, error) {
			much, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // not for ever: the share may be gone
			defer cancel()
			return l.Acquire(much, n)
		}), breachDeadline},
		{"a refusal waits for the deadline", limiting(func(l throttle.Limiter, ctx context.Context, n int) (throttle.Permit, error) {
			p, err := l.Acquire(ctx, n)
			if _, ok := ctx.Deadline(); ok && errors.Is(err, throttle.ErrThrottled) {
				<-ctx.Done()
			}
			return p, err
		}), breachDeadline},
		{"an error that is not documented", limiting(func(l throttle.Limiter, ctx context.Context, n int) (throttle.Permit, error) {
			p, err := l.Acquire(ctx, n)
			if err != nil {
				return p, errors.New("no")
			}
			return p, nil
		}), breachError},
		{"waiters outlive Close", limiting(func(l throttle.Limiter, ctx context.Context, n int) (throttle.Permit, error) {
			p, err := l.Acquire(ctx, n)
			if errors.Is(err, throttle.ErrClosed) {
				time.Sleep(time.Second)
			}
			return p, err
		}), breachClose},
		{"a goroutine is left", wiring{sharer: func(s throttle.Sharer) throttle.Sharer {
			go func() { <-make(chan int) }()
			return s
		}}, breachStuck},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireSeen(t, brokenPlan(), c.wiring, c.kind)
		})
	}
}

// brokenPlan is short, and has few faults.
func brokenPlan() plan {
	p := drawPlan(1)
	p.span, p.limit, p.largest, p.giveBack = time.Minute, throttle.Limit{Max: 200, Per: time.Second}, 2, false
	p.leases, p.store, p.storeRate, p.busy, p.processors = []time.Duration{driver.MinLease}, storeTimed, 1, 0.9, 8
	p.longest, p.up, p.down, p.overrun = driver.MinLease, calmNetwork, calmNetwork, 0
	p.faultMean, p.faults = 5*time.Second, [numFaults]bool{faultCut: true, faultLeave: true, faultCrash: true, faultDown: true}
	return p
}

// TestBrokenWithoutTheStore does so while all go on without the store.
func TestBrokenWithoutTheStore(t *testing.T) {
	testkit.SkipShort(t, "many pools of real Members")
	testkit.SkipRace(t, "it tests the judge of TestShell, which runs with it")
	p := brokenPlan()
	p.loss, p.knownNew, p.span = consensus.Degrade, true, 3*time.Minute
	p.loseTogether()
	require.Positive(t, runSeed(t, p, wiring{}, false).alone, "they do not go on")
	requireSeen(t, p, wiring{}, "")
	bold := func(l limit.Lease) (limit.Lease, bool) {
		if l.Degraded {
			l.Share *= 2
		}
		return l, true
	}
	requireSeen(t, p, leasing(bold), breachShares)
}

// requireSeen requires that a run with something broken shows a breach of that kind; an empty one: that nothing is.
func requireSeen(t *testing.T, p plan, broken wiring, kind breach) {
	t.Helper()
	if kind == "" {
		require.Empty(t, runSeed(t, p, broken, false).violations)
		return
	}
	// Which goroutine runs first is not fixed: it may take more than one run.
	var res *result
	for range 5 {
		res = runSeed(t, p, broken, false)
		if slices.ContainsFunc(res.violations, func(v violation) bool { return v.kind == kind }) {
			return
		}
	}
	require.Fail(t, "not seen", "%s; seen: %v", kind, res.violations)
}

package shell

import (
	"context"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A slotHolder is a leaseHolder of slots, which changes what is reported of those in use, too.
type slotHolder struct {
	leaseHolder
	inUse func(int64) int64
}

func (h slotHolder) Report(window time.Duration) sharing.Report {
	r := h.Holder.Report(window)
	r.InUse = h.inUse(r.InUse)
	return r
}

func sharingSlots(lease func(limit.Lease) (changed limit.Lease, ok bool), inUse func(int64) int64) wiring {
	return wiring{slots: func(s throttle.Sharer) throttle.Sharer {
		return betweenSharer{s, func(h sharing.Holder) sharing.Holder { return slotHolder{leaseHolder{h, lease}, inUse} }}
	}}
}

// A leakyLimiter hands out permits of which nothing comes back when they are cancelled or settled to 0.
type leakyLimiter struct{ throttle.Limiter }

func (l leakyLimiter) leak(p throttle.Permit) throttle.Permit {
	return throttle.NewPermit(p.N(), func(used int) {
		if used != p.N() {
			p.Settle(used)
		}
	})
}

func (l leakyLimiter) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	p, err := l.Limiter.Acquire(ctx, n)
	return l.leak(p), err
}

// TestSlotsBroken breaks something on purpose: the judge has to see it, and would not without.
func TestSlotsBroken(t *testing.T) {
	testkit.SkipShort(t, "many pools of real Members")
	testkit.SkipRace(t, "it tests the judge of TestSlots, which runs with it")
	const slots = 7
	as, asIs := func(l limit.Lease) (limit.Lease, bool) { return l, true }, func(n int64) int64 { return n }
	for _, c := range []struct {
		name   string
		wiring wiring
		kind   breach
	}{
		{"nothing", wiring{}, ""},
		{"nothing, with a holder between", sharingSlots(as, asIs), ""},
		{"calls under way are not told", sharingSlots(as, func(int64) int64 { return 0 }), breachFlight},
		{"leases do not end", sharingSlots(endless, asIs), breachShares},
		{"twice the share is used", sharingSlots(func(l limit.Lease) (limit.Lease, bool) {
			l.Share = min(2*l.Share, limit.WholeShare)
			return l, true
		}, asIs), breachFlight},
		{"half of the share is used", sharingSlots(func(l limit.Lease) (limit.Lease, bool) {
			l.Share /= 2
			return l, true
		}, asIs), breachRecovery},
		{"calls that are settled as drawn give no slots back", wiring{
			both: func(l throttle.Limiter) throttle.Limiter { return leakyLimiter{l} },
		}, breachLeak},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := drawSlots(1)
			p.span, p.limit, p.largest, p.slots, p.hold = time.Minute, throttle.Limit{Max: 200, Per: time.Second}, 2, slots, 2*time.Second
			p.leases, p.longest, p.store, p.storeRate = []time.Duration{driver.MinLease}, driver.MinLease, storeTimed, 1
			p.busy, p.demandMean, p.up, p.down, p.overrun = 0.5, 5*time.Second, calmNetwork, calmNetwork, 0
			p.faultMean, p.faults = 5*time.Second, [numFaults]bool{faultCut: true, faultLeave: true, faultCrash: true, faultDown: true}
			requireSeen(t, p, c.wiring, c.kind)
		})
	}
}

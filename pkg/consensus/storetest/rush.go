package storetest

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// spaced lets several processes reserve at once.
func spaced(p *pool) {
	const spacing = 333_333 * time.Nanosecond
	a := p.issues(spacing)
	r := p.rush(a, spacing, 160)
	p.eventually("all have reserved", func() bool {
		a = a.kept(spacing)
		return r.over()
	})
	r.require(160)
}

// kept syncs, which keeps the pool's clock running. It returns the processor, or a new one if it was removed before the answer.
func (a *proc) kept(spacing time.Duration) *proc {
	if ans := a.send(a.request(one(0, 0))); ans.Status == driver.Granted || ans.Status == driver.Behind {
		a.take(ans)
		return a
	}
	a = a.reborn()
	a.spacing, a.strict = spacing, true
	return a
}

// A rush is several processes that reserve slots as fast as they get them.
type rush struct {
	*pool
	done chan struct{}

	mu    sync.Mutex
	left  int
	slots []slot
	err   error
}

// rush begins a rush that ends after a number of slots. Somebody else keeps the pool's clock running.
func (p *pool) rush(a *proc, spacing time.Duration, slots int) *rush {
	p.Helper()
	r := &rush{pool: p, done: make(chan struct{}), left: slots}
	var running sync.WaitGroup
	for i := range 4 {
		store := p.New(p)
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		seen := a.revision
		running.Go(func() {
			for more := true; more; {
				res, slots, err := p.tryReserve(store, driver.Reserve{
					Count: 1 + rng.IntN(16), Ahead: rushAhead, Spacing: spacing - time.Duration(rng.IntN(1000)), Revision: seen,
				})
				seen = max(seen, res.Revision)
				if more = r.add(slots, err); res.Count == 0 {
					pause(time.Millisecond)
				}
			}
		})
	}
	go func() {
		running.Wait()
		close(r.done)
	}()
	return r
}

// rushAhead is how many slots a rush reserves ahead.
const rushAhead = 100

// add takes slots, and reports whether more are wanted.
func (r *rush) add(slots []slot, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.slots = append(r.slots, slots...)
	r.left -= len(slots)
	return r.left > 0 && r.err == nil
}

// granted is how many slots there are.
func (r *rush) granted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.slots)
}

func (r *rush) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// require requires that so many slots were granted, each in its place.
func (r *rush) require(slots int) {
	r.Helper()
	<-r.done
	require.NoError(r, r.err)
	require.GreaterOrEqual(r, len(r.slots), slots)
	r.requireSpaced(r.slots)
}

// manyPermits lets processes reserve while the server is restarted and wiped.
// The pool's clock of a wiped store begins at the server's own, which is not behind it.
func manyPermits(p *pool) {
	const spacing = 50 * time.Microsecond
	permits := p.Permits
	if permits == 0 {
		permits = 2_000
	}
	a := p.issues(spacing)
	r := p.rush(a, spacing, permits)
	var faults []func()
	if canRestart(&p.Harness) {
		faults = append(faults, func() { p.Restart(p) })
	}
	if canWipe(&p.Harness) {
		faults = append(faults, func() { p.Wipe(p) })
	}
	next, n := permits/6, 0
	p.eventually("all have reserved", func() bool {
		a = a.kept(spacing)
		if len(faults) > 0 && n < 5 && r.granted() > next {
			faults[n%len(faults)]()
			n++
			next += permits / 6
		}
		return r.over()
	})
	r.require(permits)
	p.Logf("%d permits, %d faults of the server: none too close", len(r.slots), n)
	if p.Issued != nil {
		p.Issued(p, len(r.slots), n)
	}
}

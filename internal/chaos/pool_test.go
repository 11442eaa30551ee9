//go:build numathrottle_faults

package chaos

import (
	"cmp"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// poolName is what every pool is called, each in a store of its own.
const poolName = "chaos"

// A poolConfig says what a pool is. The zero value of a field means its default.
type poolConfig struct {
	// Stores has the store's URL for each worker; their number is that of the workers.
	Stores []string
	// Max is the limit per second: 200. Burst: 100 ms worth of it.
	Max, Burst int
	// Strict gives every call a slot of its own, one second / Max apart, of which
	// MaxReserved may be reserved ahead.
	Strict      bool
	MaxReserved int
	// Hard promises Max in any second. The workers rest in the first quarter of every two
	// seconds, which is long enough to save up the whole burst.
	Hard bool
	// RampUp is how long the limit takes to rise from Min to Max; 0: no ramp.
	RampUp time.Duration
	Min    int
	// Slots makes the limit one of so many calls in flight, each of which takes slotCall. OfTag makes them the total of a tag, within a
	// larger limit.
	Slots int
	OfTag bool
	// Total makes Max the total of the tag that all workers draw for, within a larger limit. Budget is what they may spend of
	// it in a month; 0: there is none.
	Total  bool
	Budget int64
	// Reported is the limit that the workers are told: Max, unless the judge is to fail.
	Reported int
	// Lease is consensus.MinLease, and so is Longest, the longest lease of the
	// store. Defaults makes the workers open the limit by numathrottle.Open instead,
	// with its leases.
	Lease, Longest time.Duration
	Defaults       bool
	// Goroutines draw in each worker: 4.
	Goroutines int
	// Hold is how long a goroutine of a worker waits between the grant and the call.
	Hold time.Duration
	// Overdraw makes the workers go on when their leases are over: a fault of their
	// own, which the judge must see. Soft makes them take a hard limit for a usual one, have no ramp,
	// and two slots more.
	Overdraw, Soft bool
	// Full is the part of the limit that counts as all of it: 0.95.
	Full float64
	// StateDir is where the workers prove that those before them are dead, with Defaults; empty: nowhere.
	StateDir string
	// Pool is the pool's name in the store: poolName.
	Pool string
}

func (c poolConfig) withDefaults() poolConfig {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&c.Max, 200)
	if c.Strict {
		c.Burst = 1
	}
	set(&c.Burst, c.Max/10)
	set(&c.Reported, c.Max)
	set(&c.Goroutines, 4)
	c.Full, c.Pool = cmp.Or(c.Full, full), cmp.Or(c.Pool, poolName)
	if c.Defaults {
		c.Lease, c.Longest = driver.DefaultLease, driver.MaxLease
	}
	if c.Lease == 0 {
		c.Lease = driver.MinLease
	}
	if c.Longest == 0 {
		c.Longest = c.Lease
	}
	return c
}

// A pool is worker processes that draw on one limit as fast as they are let.
type pool struct {
	poolConfig
	bound   bound
	service *service
	workers []*worker
	began   time.Duration
	ready   time.Duration // when its limit was in use for the first time
	away    time.Duration // for how long its ramp may have stood still since
	judged  time.Duration // up to here the windows were judged
	kept    time.Duration // what was granted before is forgotten
}

// startPool starts a pool that ends with the test. It does not wait for the first share.
func startPool(t testing.TB, c poolConfig) *pool {
	t.Helper()
	c = c.withDefaults()
	p := &pool{
		poolConfig: c, service: startService(t), began: clock(),
		bound: bound{Max: c.Max, Burst: c.Burst, Processors: len(c.Stores), Strict: c.Strict, Hard: c.Hard},
	}
	if c.Total {
		p.bound.Interval = wire.Interval(c.Lease, len(c.Stores))
	}
	for i, store := range c.Stores {
		j := job{
			Worker: i, Pool: c.Pool, Store: store, Service: p.service.path, Max: c.Reported, Burst: c.Burst,
			Strict: c.Strict, MaxReserved: c.MaxReserved, Hard: c.Hard, RampUp: c.RampUp, Min: c.Min, Slots: c.Slots, OfTag: c.OfTag, Soft: c.Soft,
			Lease: c.Lease, Longest: c.Longest, Goroutines: c.Goroutines,
			Hold: c.Hold, Overdraw: c.Overdraw, StateDir: c.StateDir,
		}
		if c.Total {
			j.Max, j.Quota = limitAboveTotal*c.Reported, &tenantQuota{Total: c.Reported, Budget: c.Budget}
		}
		if c.Defaults {
			j.Longest = 0
		}
		p.workers = append(p.workers, startWorker(t, j))
	}
	return p
}

// removal is for how long the pool's store freezes when it has lost its memory.
func (p *pool) removal() time.Duration { return wire.Removal(p.Longest) }

// forgotten is the longest time for which a store that has lost its memory gives nothing:
// a removal time, and where it issues slots, until all that may have been reserved are over.
func (p *pool) forgotten() time.Duration {
	if !p.Strict {
		return p.removal()
	}
	return p.removal() + time.Duration(p.MaxReserved+1)*p.spacing()
}

// spacing is the distance of two slots of a strict limit.
func (p *pool) spacing() time.Duration { return time.Second / time.Duration(p.Max) }

// full is the number of calls in a second after a moment that counts as all of the limit.
func (p *pool) full(from time.Duration) float64 {
	switch {
	case p.Strict:
		return fullStrict * float64(p.Max)
	case p.Hard:
		return fullHard * float64(p.Max)
	case p.Slots > 0:
		return fullSlots * float64(p.Slots) / slotCall.Seconds()
	case p.RampUp > 0:
		lowest, _ := p.ramp(from)
		return full * lowest
	}
	return p.Full * float64(p.Max)
}

// recovery waits until the pool uses its limit again, and returns how long after
// a moment that was; see recovered. The workers named must also draw, each at
// least half of an even share. ok is false when it took longer than patience.
func (p *pool) recovery(from, patience time.Duration, workers ...int) (took time.Duration, ok bool) {
	const settled = 50 * time.Millisecond // calls take that long to arrive, on a busy machine
	for {
		time.Sleep(settled)
		now := clock() - settled
		uses := p.service.since(from)
		took, ok = recovered(grants(uses, nil), from, now, p.full(from))
		for _, w := range workers {
			own := grants(uses, func(u use) bool { return u.worker == w })
			half := float64(p.Max) / float64(2*len(p.workers))
			alone, drew := recovered(own, from, now, half)
			took, ok = max(took, alone), ok && drew
		}
		if ok || now-from > patience+2*time.Second {
			return took, ok
		}
	}
}

// judge returns the worst windows since the last look, and forgets what no later
// window can hold.
func (p *pool) judge() []proof.Window {
	longest := windowLengths[len(windowLengths)-1]
	worst := p.bound.windows(grants(p.service.since(0), nil))
	p.judged = clock()
	p.kept = p.judged - longest - time.Second
	p.service.forget(p.kept)
	return worst
}

// A worker is one process of a pool.
type worker struct {
	*testenv.Process

	number int
	job    job
	killed bool // by the test
}

// startWorker starts this test binary as a worker, which ends with the test. One that ended by itself fails the test.
func startWorker(t testing.TB, j job) *worker {
	t.Helper()
	encoded, err := json.Marshal(j)
	require.NoError(t, err)
	w := &worker{number: j.Worker, job: j}
	w.Process = testenv.StartProcess(t, testenv.Self(t, jobVariable+"="+string(encoded), "GOMAXPROCS=1"))
	t.Cleanup(func() {
		if !w.killed && w.Ends(0) {
			t.Errorf("worker %d ended by itself: %v", w.number, w.ProcessState)
		}
	})
	return w
}

// halt makes the process stand still, resume lets it go on.
func (w *worker) halt(t testing.TB) {
	t.Helper()
	require.NoError(t, w.Cmd.Process.Signal(syscall.SIGSTOP))
}

func (w *worker) resume(t testing.TB) {
	t.Helper()
	require.NoError(t, w.Cmd.Process.Signal(syscall.SIGCONT))
}

package shell

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A flight is all calls in flight of a run with slots, counted at each grant.
//
// A call counts while its process runs, or has left, and was heard by the store at least once in each
// removal time since the call began: nothing is promised of others. Those of a process that has crashed are over.
type flight struct {
	w      *world
	server *server // of the pool of slots
	most   int
	// under ends with the faults: calls that began before wait no longer then.
	under context.Context //nolint:containedctx // of a run, which is one call
	calm  context.CancelCauseFunc
	keeps time.Duration // how long the store keeps the claim of a process that it does not hear, at least

	mu     sync.Mutex
	by     map[*process]*presence
	total  int           // slots of all calls
	area   time.Duration // total over time, since watch
	moved  time.Duration // when total changed last
	counts flightCounts
}

// errCalm is what calls end with that wait when the faults end.
var errCalm = errors.New("the faults are over")

// flightCounts are what came of it.
type flightCounts struct {
	calls, lapsed, died uint64 // lapsed: begun by a process that was not heard for a removal time meanwhile
	full                uint64 // grants after which all slots were in use
	peak                int
}

func (c *flightCounts) add(d flightCounts) {
	c.calls, c.lapsed, c.died, c.full, c.peak = c.calls+d.calls, c.lapsed+d.lapsed, c.died+d.died, c.full+d.full, max(c.peak, d.peak)
}

// A presence is the calls of one process.
type presence struct {
	received    time.Duration // by the store
	incarnation string        // as it named itself then
	seq         uint64
	calls       map[*flightCall]bool
}

type flightCall struct {
	p      *process
	slots  int
	lapsed bool
}

func newFlight(w *world) *flight {
	lease := driver.MaxLease
	for _, l := range w.plan.leases {
		lease = min(lease, l)
	}
	keeps := wire.Removal(lease)
	if w.plan.faults[faultStep] || w.plan.faults[faultFailover] { // a step of less than a clamp is taken for time
		keeps -= wire.Clamp(lease)
	}
	if w.plan.storeRate > 1 {
		keeps = time.Duration(float64(keeps) / w.plan.storeRate)
	}
	f := &flight{w: w, server: newServer(&w.plan), most: w.plan.slots, keeps: keeps, by: map[*process]*presence{}}
	f.under, f.calm = context.WithCancelCause(w.t.Context())
	return f
}

func (f *flight) join(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by[p] = &presence{received: f.w.now(), calls: map[*flightCall]bool{}}
}

// hear takes note that the store has recorded what a process has in use. A repeat is not recorded.
func (f *flight) hear(p *process, req *driver.Request, ans *driver.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.by[p]
	if q == nil || ans.Status != driver.Granted || req.Incarnation == q.incarnation && req.Seq <= q.seq {
		return
	}
	f.lapse(q)
	q.received, q.incarnation, q.seq = f.w.now(), req.Incarnation, req.Seq
}

// lapse takes the calls of a process out of what is promised if it was not heard for too long. f.mu is held.
func (f *flight) lapse(q *presence) {
	if f.w.now()-q.received <= f.keeps {
		return
	}
	for c := range q.calls {
		if !c.lapsed {
			c.lapsed = true
			f.counts.lapsed++
		}
	}
}

// begin counts a call, and judges all that are in flight.
func (f *flight) begin(p *process, slots int) *flightCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &flightCall{p: p, slots: slots}
	f.counts.calls++
	if q := f.by[p]; q != nil {
		q.calls[c] = true
		f.move(slots)
	}
	sum := 0
	for _, q := range f.by {
		f.lapse(q)
		for c := range q.calls {
			if !c.lapsed {
				sum += c.slots
			}
		}
	}
	f.counts.peak = max(f.counts.peak, sum)
	switch {
	case sum > f.most:
		f.w.violatef(breachFlight, "%s: %d slots are in use, of %d", p.id, sum, f.most)
	case sum == f.most:
		f.counts.full++
	}
	return c
}

// end takes a call out, just before its slots are given back.
func (f *flight) end(c *flightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q := f.by[c.p]; q != nil && q.calls[c] {
		delete(q.calls, c)
		f.move(-c.slots)
	}
}

// crash ends all calls of a process. There may be no flight.
func (f *flight) crash(p *process) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.by[p].calls {
		f.move(-c.slots)
		f.counts.died++
	}
	delete(f.by, p)
}

// move changes the total. f.mu is held.
func (f *flight) move(by int) {
	f.area += time.Duration(f.total) * (f.w.now() - f.moved)
	f.moved = f.w.now()
	f.total += by
}

// watch measures use from now on. There may be no flight.
func (f *flight) watch() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.move(0)
	f.area = 0
}

// used is the part of all slots that was in use since watch, which was length ago.
func (f *flight) used(length time.Duration) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.move(0)
	return f.area.Seconds() / (float64(f.most) * length.Seconds())
}

package shell

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// flying is what a process has in a run with slots: a second pool, in a store of its own that breaks
// when the other does.
type flying struct {
	link    *link
	member  *consensus.Member
	in      *throttle.InFlight
	perCall throttle.Limiter // All of both limits, a slot for each call
	each    throttle.Limiter // All of both limits, a slot for each token
}

// drawSlots makes a run one with slots.
func drawSlots(seed uint64) plan {
	p := drawPlan(seed)
	r := rand.New(rand.NewPCG(seed, 4))
	p.span, p.processors, p.loss, p.even = 5*time.Minute, 10, consensus.Stop, false
	p.slots = []int{3, 7, 10, 13, 15}[r.IntN(5)] // nearly all have two callers that want one in the end
	p.hold = logUniform(r, 50*time.Millisecond, 2*p.leases[0])
	return p
}

// servers are the stores of the pools.
func (w *world) servers() []*server {
	if w.flight == nil {
		return []*server{w.server}
	}
	return []*server{w.server, w.flight.server}
}

// links are the process's ways to them.
func (p *process) links() []*link {
	if p.flying == nil {
		return []*link{p.link}
	}
	return []*link{p.link, p.flying.link}
}

// memberOf is the process's Member in the pool that a server holds.
func (p *process) memberOf(s *server) *consensus.Member {
	if s == p.w.server {
		return p.member
	}
	return p.flying.member
}

func (p *process) setCut(up, down bool) {
	for _, l := range p.links() {
		l.setCut(up, down)
	}
}

// joinSlots has a process join the pool of slots, too.
func (w *world) joinSlots(p *process, opts []consensus.Option) {
	r := rand.New(rand.NewPCG(w.plan.seed, uint64(2_000_000+p.index)))
	f := &flying{link: newLink(w.flight.server, &w.plan, r)}
	f.link.received = func(req *driver.Request, ans *driver.Answer) { w.flight.hear(p, req, ans) }
	if w.calm {
		f.link.calm()
	}
	w.flight.join(p)
	var err error
	if f.member, err = consensus.Join(w.t.Context(), f.link, "slots", opts...); err != nil {
		w.t.Fatalf("join: %v", err)
	}
	var sharer throttle.Sharer = f.member
	if w.wiring.slots != nil {
		sharer = w.wiring.slots(sharer)
	}
	f.in, err = throttle.NewInFlight(w.plan.slots, throttle.WithSharer(sharer), throttle.WithName("slots"), throttle.OnClose(f.member.Leave))
	if err != nil {
		w.t.Fatalf("slots: %v", err)
	}
	f.perCall, f.each = throttle.All(p.th, throttle.PerCall(f.in)), throttle.All(p.th, f.in)
	if w.wiring.both != nil {
		f.perCall, f.each = w.wiring.both(f.perCall), w.wiring.both(f.each)
	}
	p.flying = f
}

// closeSlots closes the limit of slots while the other is being closed, and returns what waits for it.
func (p *process) closeSlots() (wait func()) {
	if p.flying == nil {
		return func() {}
	}
	began, done := p.w.now(), make(chan struct{})
	go func() {
		defer close(done)
		f := p.flying
		err := f.in.Close()
		if took := p.w.now() - began; took > closeTime {
			p.w.violatef(breachClose, "%s: Close of the slots took %v", p.id, took)
		}
		if err == nil && f.member.View().State != string(protocol.StateLeft) {
			p.w.violatef(breachClose, "%s: after Close the member of the slots is %s", p.id, f.member.View().State)
		}
	}()
	return func() { <-done }
}

// auditSlots compares what the InFlight counted with what its callers got. All of them have ended.
func (p *process) auditSlots(crashed bool) {
	if p.flying == nil {
		return
	}
	st, got := p.flying.in.Status(), p.slotsGot.Load()
	if st.Granted != got {
		p.w.violatef(breachCount, "%s: the InFlight counts %d slots granted, its callers %d", p.id, st.Granted, got)
	}
	if st.Waiting != 0 || st.InUse != 0 && !crashed {
		p.w.violatef(breachLeak, "%s: all calls have ended, %d wait for slots, and %d are in use", p.id, st.Waiting, st.InUse)
	}
}

// lookAtSlots looks at the slots that may be used, at a moment at which everything else stands still.
func (w *world) lookAtSlots() {
	if w.flight == nil {
		return
	}
	var sum driver.Share
	slots := 0
	for _, p := range w.live {
		st := p.flying.in.Status()
		sum += driver.Share(st.Lease.Share)
		slots += st.Slots
	}
	if sum > driver.Whole || slots > w.plan.slots {
		w.violatef(breachShares, "%v of the slots in force, %d of %d", sum, slots, w.plan.slots)
	}
}

// lackingSlots says what is still wrong with the slots of the pool while all are busy, or nothing.
// Where there are fewer slots than processors, these take turns, and at a moment a slot may be nobody's; then it
// must not be one that is gone that holds it.
func (w *world) lackingSlots() string {
	sum, least := 0, w.plan.slots
	if w.plan.slots < len(w.live) {
		least = 1
	}
	live := map[string]bool{}
	for _, p := range w.live {
		sum += p.flying.in.Status().Slots
		live[p.id] = true
	}
	if sum < least {
		return fmt.Sprintf("%d of %d slots may be used", sum, w.plan.slots)
	}
	held := ""
	w.flight.server.record(func(rec *driver.Record) {
		for _, row := range rec.Rows {
			gone := !live[row.ID] || row.State != driver.RowLive
			if gone && row.Claim > 0 {
				held = fmt.Sprintf("%s, which is gone, holds slots", row.ID)
			}
		}
	})
	return held
}

// judgeFlight judges that the slots are used while all are busy. There may be none.
func (w *world) judgeFlight(length time.Duration) {
	if w.flight == nil {
		return
	}
	least := 0.9
	if w.plan.slots < len(w.live) {
		least = 0.3 // a slot that changes hands is nobody's for a while, and all may do so in this time
	}
	if used := w.flight.used(length); used < least {
		w.violatef(breachRecovery, "%.3f of the slots are used in %v with all busy", used, length)
	}
}

// drain ends all calls, and judges that everything is free then: one processor can have all slots, and
// draw from both limits.
func (w *world) drain() {
	if w.flight == nil {
		return
	}
	for _, p := range w.live {
		p.mode.Store(int32(modeIdle))
	}
	w.run(w.now() + time.Minute)
	synctest.Wait()
	for _, p := range w.live {
		if th, in := p.th.Status(), p.flying.in.Status(); th.Waiting+in.Waiting+in.InUse > 0 {
			w.violatef(breachLeak, "%s: all calls have ended, %d wait for tokens, %d for slots, %d slots are in use", p.id, th.Waiting, in.Waiting, in.InUse)
		}
	}
	p := slices.MaxFunc(w.live, func(p, q *process) int { // who owes tokens has to earn them first
		return cmp.Compare(p.th.Status().Tokens, q.th.Status().Tokens)
	})
	w.takeAll(p, p.flying.in, w.plan.slots)
	l := p.th.Limit()
	w.takeAll(p, p.flying.each, min(3, w.plan.slots, max(l.Max, l.Burst))) // several tokens and slots, which come at different moments
}

// takeAll has a process draw so much that it needs all there is.
func (w *world) takeAll(p *process, lim throttle.Limiter, n int) {
	owed := max(0, -p.th.Status().Tokens)
	earning := time.Duration((float64(n) + owed) / w.plan.perSecond() / min(1, w.plan.storeRate) * float64(time.Second))
	within := 2*wire.Removal(w.plan.longest) + 2*earning         // of slots that are issued not all are used
	ctx, cancel := context.WithCancelCause(context.Background()) // a deadline is judged by the share of the moment
	stop := time.AfterFunc(within, func() { cancel(errGaveUp) })
	defer func() { stop.Stop(); cancel(nil) }()
	permit, err := lim.Acquire(ctx, n)
	if err != nil {
		w.violatef(breachLeak, "%s: all calls have ended, and %d cannot be had within %v: %v", p.id, n, within, err)
		return
	}
	if p.slotsGot.Add(int64(n)); lim == p.flying.each {
		p.note(n)
	}
	permit.Settle(n)
}

// judgeSlotsLeft judges that nothing is claimed when all have left. There may be no slots.
func (w *world) judgeSlotsLeft() {
	if w.flight == nil {
		return
	}
	w.flight.server.record(func(rec *driver.Record) {
		if left := rec.Claims(); left > driver.Whole/100 {
			w.violatef(breachLeft, "all have left, and %v of the slots is still claimed: %+v", left, rec.Rows)
		}
	})
}

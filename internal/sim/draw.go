package sim

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A drawer draws on a process's share. It has the shipped throttle.Throttle on the process's clock, and callers. Callers take every token
// they can at full demand, and otherwise as many as they need.
type drawer struct {
	th     *throttle.Throttle
	lease  limit.Lease  // in force, of a process that reports its limit
	share  driver.Share // as the Throttle knows it, until the local time
	until  time.Duration
	heldAt time.Duration // true time at which a share was in force last
	drew   time.Duration // true time of the last draw
	again  bool          // a draw is planned
	need   float64       // needed tokens that were not drawn yet; at full demand the need is unlimited
	// restUntil is when the callers continue after a rest that the store does not know of: buckets are full by then.
	restUntil time.Duration
	// unused are the permits of calls that will not be made after all. They are all cancelled at one moment, as when a service hangs and
	// its callers give up.
	unused   []throttle.Permit
	giveUpAt time.Duration
}

// A machine is the clock of a process as its Throttle sees it.
type machine struct {
	w *world
	p *process
}

var epoch = time.Unix(1_700_000_000, 0)

// Now implements gate.Clock.
func (m machine) Now() time.Time { return epoch.Add(m.p.clock.read(m.w.now)) }

// AfterFunc implements gate.Clock. There are no waiting callers, so only slots need wake-ups.
func (m machine) AfterFunc(d time.Duration, f func()) sharing.Timer {
	if !m.w.plan.permits && m.w.plan.slots == nil {
		return stopped{}
	}
	t := &timer{m: m, f: f}
	t.Reset(d)
	return t
}

type stopped struct{}

func (stopped) Reset(time.Duration) bool { return false }
func (stopped) Stop() bool               { return false }

// A ration is a throttle.Sharer whose shares the world hands on itself.
type ration struct{ p *process }

func (r ration) Attach(h sharing.Holder) {
	r.p.holder = h
	h.Lease(limit.Lease{})
}

func (ration) Poke() {}

// equip gives a process its Throttle.
func (w *world) equip(p *process) {
	if p.limit.Max == 0 {
		p.limit = w.limit
	}
	if w.plan.slots != nil {
		w.equipSlots(p)
		return
	}
	var sharer throttle.Sharer = ration{p}
	if w.plan.permits {
		sharer = issuer{ration: ration{p}, w: w, p: p}
	}
	clock := hook.WithClock(machine{w, p}).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
	th, err := throttle.New(p.limit, clock, throttle.WithSharer(sharer))
	if err != nil {
		panic(err) //nolint:forbidigo // the plan draws only limits that are good
	}
	p.drawer = drawer{th: th, heldAt: never, drew: w.now}
	p.pauses.list = nil // this Throttle has received none yet
}

// tell hands a changed share to the Throttle, as consensus.Member does.
func (w *world) tell(p *process) {
	if p.held == p.drawer.share && (p.until == p.drawer.until || p.held == 0) {
		return
	}
	p.drawer.share, p.drawer.until = p.held, p.until
	l := limit.Lease{Share: int64(p.held)}
	if p.held > 0 {
		l.Until = epoch.Add(p.until)
	}
	p.holder.Lease(l)
}

// draw lets the callers of a process draw as much as they need. Exempt are a suspended machine until its watchdog has checked, and both
// parts of a cloned one for a lease. In both cases one may give away what the other still uses.
func (w *world) draw(p *process) {
	d := &p.drawer
	if w.plan.slots != nil || p.gone || p.left || p.halted() || p.overslept() || p.justCloned(w.now) || w.now < d.restUntil {
		return
	}
	if p.held > 0 || d.lease.Issuing {
		d.heldAt = w.now
	}
	rate := perSecond(p.limit)
	d.need = min(d.need+p.demand.Fraction()*rate*(w.now-d.drew).Seconds(), max(1, 10*rate))
	d.drew = w.now
	w.drawAll(p)
	if len(d.unused) > 0 && w.now >= d.giveUpAt {
		given := d.unused
		d.unused = nil
		for _, permit := range given {
			permit.Cancel()
			w.drawAll(p) // somebody waits for each
		}
	}
	w.drawAgain(p)
}

// drawAll draws the needed tokens as far as they are available.
func (w *world) drawAll(p *process) {
	d := &p.drawer
	for p.demand == driver.Whole || d.need >= 1 {
		permit, ok := d.th.TryAcquire(1)
		if !ok {
			break
		}
		d.need = max(0, d.need-1)
		w.checkPaused(p)
		if w.plan.unused > 0 && w.rng.demand.Float64() < w.plan.unused {
			if len(d.unused) == 0 {
				d.giveUpAt = w.now + exponential(w.rng.demand, 3*time.Second)
			}
			d.unused = append(d.unused, permit)
			continue
		}
		w.use(1)
		if d.lease.Issuing && !w.calm && w.rng.more.IntN(8) == 0 {
			permit.Settle(1 + w.rng.more.IntN(6)) // so more than one slot is ordered
		}
	}
}

// drawAgain plans a draw for when another token is due.
func (w *world) drawAgain(p *process) {
	d := &p.drawer
	if d.again || p.held == 0 && !d.lease.Issuing || p.demand == 0 {
		return
	}
	d.again = true
	share := p.held
	if w.plan.noted {
		share = min(driver.Share(d.lease.Share), 2*driver.Whole)
	}
	if d.lease.Issuing {
		share = driver.Whole
	}
	gap := time.Duration(float64(time.Second) / (perSecond(p.limit) * min(share, p.demand).Fraction()))
	if share == 0 {
		gap = 2 * time.Second
	}
	w.queue.Push(w.now+min(max(gap, 2*time.Millisecond), 2*time.Second), event{kind: eventDraw, p: p})
}

// use counts calls made now.
func (w *world) use(n int64) {
	w.counters.Granted += uint64(n)
	if !w.promised() {
		return
	}
	w.windows.add(w.now, n)
	for i := range windowLengths {
		w.checkWindow(i)
	}
}

// checkWindow checks the window of one length that ends now.
func (w *world) checkWindow(i int) {
	used := float64(w.windows.sum(i))
	length := windowLengths[i]
	limit := &w.plan.limit
	switch {
	case limit.Hard:
		w.checkHardWindow(i)
		return
	case w.plan.noted:
		w.checkChanged(i)
		return
	}
	base := float64(limit.Max)*length.Seconds()*w.plan.fastest() + float64(w.windows.burst)
	if w.plan.unused > 0 {
		base += float64(limit.Max) // given-back tokens can be held back from at most one period
	}
	worst := &w.counters.Windows[i]
	if used <= worst.Ratio*base {
		return
	}
	allowed := base + float64(w.holders(length))
	if ratio := used / allowed; ratio > worst.Ratio {
		*worst = Window{Ratio: ratio, Used: used, Allowed: allowed}
	}
	if used > allowed {
		w.violatef(CheckWindow, "%v calls within %v, allowed are %.6g (limit %d per second, burst %d)", used, length, allowed, limit.Max, w.windows.burst)
	}
}

// checkChanged checks the window of one length that ends now against the limits that were in force in it.
func (w *world) checkChanged(i int) {
	used, length := float64(w.windows.sum(i)), windowLengths[i]
	tokens, rate := w.mayUse(w.now - length)
	fast := w.plan.fastest()
	if w.plan.permits && w.plan.rates != ratesExact {
		fast = slowestRate
	}
	base := tokens*fast + rate*w.limits.burst
	if w.plan.unused > 0 {
		base += rate * period(w.plan.limit).Seconds()
	}
	if w.plan.permits {
		base += w.jitter(length, rate)
	}
	worst := &w.counters.Changed
	if used <= worst.Ratio*base {
		return
	}
	allowed := base
	if !w.plan.limit.Strict {
		allowed += float64(w.holders(length))
	}
	if ratio := used / allowed; ratio > worst.Ratio && length >= time.Second && w.plan.changes > 0 {
		*worst = Window{Ratio: ratio, Used: used, Allowed: allowed}
	}
	if used > allowed {
		w.violatef(CheckWindow, "%v calls within %v, allowed are %.6g (largest limit %.6g per second)", used, length, allowed, rate)
	}
}

// slowestRate is the maximum ratio of true time to a clock's own time.
const slowestRate = million / float64(million-maxDrift)

// jitter returns how many more tokens a window of true time can contain than one on the store's clock. A token is valid for a while. The
// processors time their reserved slots. A small step of the store's clock moves later slots nearer.
func (w *world) jitter(length time.Duration, rate float64) float64 {
	gap := time.Duration(float64(time.Second) / rate)
	reserved := gap * time.Duration(max(w.plan.limit.MaxReserved, w.plan.processors+5)+1)
	if w.plan.limit.Strict {
		reserved = gap * time.Duration(w.plan.limit.MaxReserved+1)
	}
	late := wire.Validity(gap) + protocol.SyncTimeout(driver.MaxLease)
	if w.plan.rates != ratesExact {
		late += reserved * 2 * maxDrift / million
	}
	for _, at := range w.steps {
		if at >= w.now-length-reserved {
			late += min(wire.Clamp(driver.MaxLease), reserved)
		}
	}
	return 1 + late.Seconds()*rate
}

// holders counts the processes that held a share in the window that ends now.
func (w *world) holders(length time.Duration) (n int) {
	for _, p := range w.procs {
		if p.held > 0 || p.drawer.heldAt >= w.now-length {
			n++
		}
	}
	w.departed = keepSince(w.departed, w.now-windowLengths[len(windowLengths)-1])
	for _, at := range w.departed {
		if at >= w.now-length {
			n++
		}
	}
	return n
}

// keepSince drops the moments before from.
func keepSince(moments []time.Duration, from time.Duration) []time.Duration {
	kept := moments[:0]
	for _, at := range moments {
		if at >= from {
			kept = append(kept, at)
		}
	}
	return kept
}

// windowLengths are the lengths of the windows that calls are counted in.
var windowLengths = [...]time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}

// windows counts calls in sliding windows.
type windows struct {
	burst int64
	uses  []uses // those of the longest window, oldest first
	total int64
	first [len(windowLengths)]int // the oldest use in each window
}

// uses are calls at one moment; before counts all earlier calls.
type uses struct {
	at     time.Duration
	before int64
}

// add counts calls at a moment, which must not precede the last one.
func (s *windows) add(at time.Duration, n int64) {
	if len(s.uses) == 0 || s.uses[len(s.uses)-1].at < at {
		s.uses = append(s.uses, uses{at, s.total})
	}
	s.total += n
	for i, length := range windowLengths {
		for s.uses[s.first[i]].at < at-length {
			s.first[i]++
		}
	}
	oldest := s.first[len(windowLengths)-1]
	if oldest > 4096 && oldest > len(s.uses)/2 {
		s.uses = append(s.uses[:0], s.uses[oldest:]...)
		for i := range s.first {
			s.first[i] -= oldest
		}
	}
}

// sum returns the number of calls in the window of one length that ends with the last call.
func (s *windows) sum(i int) int64 { return s.total - s.uses[s.first[i]].before }

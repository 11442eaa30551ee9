package shell

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A breach is a kind of violation.
type breach string

const (
	breachRate     breach = "rate"       // a window above the bound
	breachShares   breach = "shares"     // shares in force above one, or not the Member's
	breachDeadline breach = "deadline"   // a call that is late, or not told at once
	breachError    breach = "error"      // an error that is not documented
	breachClose    breach = "close"      // waiters or grants that outlive Close
	breachCount    breach = "count"      // permits counted wrongly
	breachRecovery breach = "recovery"   // not whole again in time
	breachLeft     breach = "left"       // claims on record after all have left
	breachFlight   breach = "in flight"  // more calls at once than there are slots
	breachLeak     breach = "leak"       // not all to be had once all calls have ended
	breachStuck    breach = "goroutines" // some wait for ever, or are left
)

// A violation is a promise seen broken.
type violation struct {
	at   time.Duration
	kind breach
	text string
}

func (v violation) String() string { return fmt.Sprintf("%v: %s: %s", v.at, v.kind, v.text) }

// A wiring puts something between the parts, to break them on purpose.
type wiring struct {
	store   func(driver.Store) driver.Store
	sharer  func(throttle.Sharer) throttle.Sharer
	limiter func(throttle.Limiter) throttle.Limiter
	// slots and both are the same for slots: their sharer, and the All of both limits.
	slots func(throttle.Sharer) throttle.Sharer
	both  func(throttle.Limiter) throttle.Limiter
}

// A result is what a run came to.
type result struct {
	plan                 plan
	violations           []violation
	windows              [len(windows)]proof.Window
	peak                 driver.Share
	recovered            time.Duration
	virtual              time.Duration
	grants, granted      uint64
	underFaults          uint64 // tokens granted before the faults ended
	syncs, leaves, lost  uint64
	slots                uint64
	flight               flightCounts
	looks, probes, waits uint64
	alone                uint64
	faults               [numFaults]uint64
	outcomes             [numOutcomes]uint64
	answers              [driver.Behind + 1]uint64
	freezes              map[driver.FreezeCause]uint64
}

// A world is one run. Its main goroutine alone changes it; what others touch is
// guarded.
type world struct {
	t      *testing.T
	plan   plan
	wiring wiring
	trace  bool
	start  time.Time
	r      *rand.Rand // faults and demand
	looker *rand.Rand
	server *server
	flight *flight // in a run with slots
	agenda []event // by time
	all    []*process
	live   []*process
	ids    int
	calm   bool
	calmAt time.Duration
	calmed atomic.Bool
	ending sync.WaitGroup

	looked   time.Duration // time of the present look
	lastStep time.Duration // when the store's clock was set forward a little
	peak     driver.Share
	looks    uint64
	probes   uint64
	waits    uint64 // callers that waited at a look
	alone    uint64 // shares used without the store's consent, at a look
	issuing  bool   // tokens were issued one by one at some look
	faults   [numFaults]uint64

	mu         sync.Mutex
	violations []violation
	outcomes   [numOutcomes]uint64
}

// An event is something to do at a time.
type event struct {
	at time.Duration
	do func()
}

// now is the time since the beginning of the run.
func (w *world) now() time.Duration { return time.Since(w.start) }

func (w *world) isCalm() bool { return w.calmed.Load() }

// strict tells whether the bound is promised without exception.
func (w *world) strict() bool { return w.plan.loss == consensus.Stop }

// promised tells whether the bound is promised: always with consensus.Stop, else while the store is lost to all alike.
func (w *world) promised() bool { return w.strict() || w.plan.together }

// maxCost is the largest cost that a draw may have.
func (w *world) maxCost() int { return max(w.plan.limit.Max, int(w.plan.burst())) }

func (w *world) tracef(format string, args ...any) {
	if w.trace {
		w.t.Logf("%10.3fs  %s", w.now().Seconds(), fmt.Sprintf(format, args...))
	}
}

// enough is how many violations of one kind are kept of a run.
const enough = 2

func (w *world) violatef(kind breach, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := 0
	for _, v := range w.violations {
		if v.kind == kind {
			same++
		}
	}
	if same < enough {
		w.violations = append(w.violations, violation{w.now(), kind, fmt.Sprintf(format, args...)})
	}
}

func (w *world) countOutcomes(met *[numOutcomes]uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, n := range met {
		w.outcomes[i] += n
	}
}

// after has f done once d has passed, by the main goroutine.
func (w *world) after(d time.Duration, f func()) {
	at := w.now() + d
	i, _ := slices.BinarySearchFunc(w.agenda, at+1, func(e event, at time.Duration) int { return cmp.Compare(e.at, at) })
	w.agenda = slices.Insert(w.agenda, i, event{at, f})
}

// run does what is on the agenda until a time.
func (w *world) run(until time.Duration) {
	for len(w.agenda) > 0 && w.agenda[0].at <= until {
		e := w.agenda[0]
		w.agenda = w.agenda[1:]
		time.Sleep(e.at - w.now())
		e.do()
	}
	time.Sleep(until - w.now())
}

// look looks at the shares in force, at a moment at which everything else stands
// still, and probes one processor.
func (w *world) look() {
	synctest.Wait()
	w.looked = w.now()
	w.looks++
	var sum int64
	for _, p := range w.live {
		st := p.th.Status()
		sum += st.Lease.Share
		w.judgeWaiting(p, &st)
		w.issuing = w.issuing || st.Lease.Issuing
		if st.Lease.Degraded && st.Lease.Share > 0 {
			w.alone++
		}
		if v := p.member.View(); w.strict() && int64(v.Share) != st.Lease.Share {
			w.violatef(breachShares, "%s: the Member holds %v (%s), the Throttle uses %v", p.id, v.Share, v.State, driver.Share(st.Lease.Share))
		}
	}
	if w.promised() {
		w.peak = max(w.peak, driver.Share(sum))
		if driver.Share(sum) > driver.Whole {
			w.violatef(breachShares, "%v in force", driver.Share(sum))
		}
	}
	w.lookAtSlots()
	if len(w.live) > 0 {
		w.probe(w.live[w.looker.IntN(len(w.live))])
	}
}

// lookAgain looks at random moments for the rest of the run.
func (w *world) lookAgain() {
	w.after(exponential(w.looker, time.Second), func() {
		w.look()
		w.lookAgain()
	})
}

func (w *world) newID() string {
	w.ids++
	return fmt.Sprintf("p%02d", w.ids)
}

// simulate makes one run. It is called inside a bubble.
func simulate(t *testing.T, p plan, wiring wiring, trace bool) *result {
	w := &world{
		t: t, plan: p, wiring: wiring, trace: trace, start: time.Now(),
		r: rand.New(rand.NewPCG(p.seed, 2)), looker: rand.New(rand.NewPCG(p.seed, 3)),
		lastStep: -time.Hour,
	}
	w.server = newServer(&w.plan)
	if p.slots > 0 {
		w.flight = newFlight(w)
	}
	for range p.processors {
		id := w.newID()
		w.after(time.Duration(w.r.Int64N(int64(5*time.Second))), func() { w.join(id) })
	}
	w.lookAgain()
	w.changeDemand()
	w.injectAgain(0, firstForgetful, p.faultMean)
	if p.store != storeMemory {
		w.injectAgain(firstForgetful, numFaults, p.forgetMean)
	}
	w.run(p.span)
	res := &result{plan: p}
	w.heal(res)
	w.drain()
	w.finish(res)
	return res
}

// finish closes all, and judges the run as a whole.
func (w *world) finish(res *result) {
	for _, p := range slices.Clone(w.live) {
		w.end(p, false)
	}
	w.ending.Wait()
	w.judgeSlotsLeft()
	w.server.set(func() {
		s := w.server
		s.record(func(rec *driver.Record) {
			if left := rec.Claims(); left > driver.Whole/100 {
				w.violatef(breachLeft, "all have left, and %v is still claimed: %+v", left, rec.Rows)
			}
		})
		res.syncs, res.leaves, res.answers, res.freezes, res.slots = s.syncs, s.leaves, s.answers, s.freezes, s.slots
	})
	res.virtual = w.now()
	w.judgeRate(res)
	for _, p := range w.all {
		res.lost += p.link.lostCalls
	}
	if w.flight != nil {
		res.flight = w.flight.counts
	}
	res.alone = w.alone
	res.peak, res.looks, res.probes, res.waits, res.faults = w.peak, w.looks, w.probes, w.waits, w.faults
	w.mu.Lock()
	defer w.mu.Unlock()
	res.outcomes, res.violations = w.outcomes, w.violations
}

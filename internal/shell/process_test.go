package shell

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A mode is what the callers of a process are up to.
type mode int32

const (
	modeIdle  mode = iota
	modeLight      // a draw every few seconds
	modeBusy       // one draw after the other
	modeCalm       // the same, in the second phase: nothing but Acquire, used as drawn
)

// A process is a processor of the pool: a Member, a Throttle, and those that draw.
type process struct {
	w      *world
	index  int
	id     string
	link   *link
	member *consensus.Member
	th     *throttle.Throttle
	flying *flying // in a run with slots
	// slotsGot counts the slots that callers were granted.
	slotsGot atomic.Int64
	lim      throttle.Limiter // th, or what a test puts around it
	mode     atomic.Int32
	// closedAt is when Close was called, since the beginning of the run; notYet before.
	closedAt atomic.Int64
	drawers  sync.WaitGroup

	mu       sync.Mutex
	pending  [callers + 1]call // under way, by caller and the one that probes; n is 0 when there is none
	grants   []grant
	gaveBack int64 // tokens in permits that were settled below their cost
}

const notYet = -1

// callers is how many goroutines draw in each process.
const callers = 3

// join starts a process, as numathrottle.Open does.
func (w *world) join(id string) *process {
	p := &process{w: w, index: len(w.all), id: id}
	p.closedAt.Store(notYet)
	r := rand.New(rand.NewPCG(w.plan.seed, uint64(1000+p.index)))
	p.link = newLink(w.server, &w.plan, r)
	var store driver.Store = p.link
	if w.calm {
		p.link.calm()
	}
	if w.wiring.store != nil {
		store = w.wiring.store(store)
	}
	opts := w.options(id, r)
	var err error
	p.member, err = consensus.Join(w.t.Context(), store, "pool", opts...)
	if err != nil {
		w.t.Fatalf("join: %v", err)
	}
	var sharer throttle.Sharer = p.member
	if w.wiring.sharer != nil {
		sharer = w.wiring.sharer(sharer)
	}
	p.th, err = throttle.New(w.plan.limit, throttle.WithSharer(sharer), throttle.WithName("pool"), throttle.OnClose(p.member.Leave))
	if err != nil {
		w.t.Fatalf("throttle: %v", err)
	}
	p.lim = p.th
	if w.wiring.limiter != nil {
		p.lim = w.wiring.limiter(p.lim)
	}
	if w.plan.slots > 0 {
		w.joinSlots(p, opts)
	}
	p.mode.Store(int32(w.drawMode()))
	w.all = append(w.all, p)
	w.live = append(w.live, p)
	w.tracef("%s joins as number %d", id, p.index)
	for i := range callers {
		d := &caller{p: p, index: i, r: rand.New(rand.NewPCG(w.plan.seed, uint64(1_000_000+p.index*callers+i)))}
		p.drawers.Go(d.run)
	}
	return p
}

// options are a new processor's, of every pool that it joins.
func (w *world) options(id string, r *rand.Rand) []consensus.Option {
	opts := []consensus.Option{
		consensus.WithID(id), consensus.WithLogger(slog.New(slog.DiscardHandler)),
		consensus.WithLease(w.plan.leases[r.IntN(len(w.plan.leases))]), consensus.WithOnStoreLoss(w.plan.loss),
	}
	if w.plan.even {
		opts = append(opts, consensus.WithPolicy(consensus.Even))
	}
	return opts
}

// end closes the process or has it crash; it returns at once.
func (w *world) end(p *process, crash bool) {
	for i, q := range w.live {
		if q == p {
			w.live = append(w.live[:i:i], w.live[i+1:]...)
			break
		}
	}
	what := "leaves"
	if crash {
		for _, l := range p.links() {
			close(l.dead)
		}
		w.flight.crash(p)
		what = "crashes"
	} else {
		for _, l := range p.links() {
			l.endOverruns()
		}
	}
	w.tracef("%s (number %d) %s", p.id, p.index, what)
	w.ending.Go(func() { p.close(crash) })
}

// closeTime is how long Close may take.
const closeTime = 5 * time.Second

func (p *process) close(crashed bool) {
	began, calm := p.w.now(), p.w.isCalm()
	p.closedAt.Store(int64(began))
	slotsClosed := p.closeSlots()
	err := p.th.Close()
	took := p.w.now() - began
	if took > closeTime {
		p.w.violatef(breachClose, "%s: Close took %v", p.id, took)
	}
	if st := p.th.Status(); st.Waiting != 0 || !st.Closed {
		p.w.violatef(breachClose, "%s: after Close %d wait", p.id, st.Waiting)
	}
	if err == nil && p.member.View().State != string(protocol.StateLeft) {
		p.w.violatef(breachClose, "%s: after Close the member is %s", p.id, p.member.View().State)
	}
	if err != nil && (crashed || calm) {
		p.w.violatef(breachClose, "%s: Close: %v", p.id, err)
	}
	slotsClosed()
	p.drawers.Wait()
	p.audit()
	p.auditSlots(crashed)
}

// audit compares what the Throttle counted with what its callers got.
func (p *process) audit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var got int64
	for _, g := range p.grants {
		got += int64(g.n)
	}
	st := p.th.Status()
	if st.Granted != got {
		p.w.violatef(breachCount, "%s: the Throttle counts %d tokens granted, its callers %d", p.id, st.Granted, got)
	}
	if st.Returned > p.gaveBack {
		p.w.violatef(breachCount, "%s: %d tokens credited, %d were given back", p.id, st.Returned, p.gaveBack)
	}
}

// note takes down a grant, and returns its place.
func (p *process) note(n int) int {
	now := p.w.now()
	if closed := time.Duration(p.closedAt.Load()); closed != notYet && now > closed {
		p.w.violatef(breachClose, "%s: %d tokens granted %v after Close", p.id, n, now-closed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grants = append(p.grants, grant{at: now, process: int32(p.index), n: int32(n), net: int32(n)})
	return len(p.grants) - 1
}

// setPending takes down which call of a caller is under way.
func (p *process) setPending(caller int, c call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending[caller] = c
}

// settled takes down that only used tokens of a grant were used.
func (p *process) settled(place, used int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &p.grants[place]
	p.gaveBack += int64(int(g.n) - used)
	g.net = int32(used)
}

package shell

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A link is one process's way to the store: the consensus.Store that its Member
// calls. It delays, loses, doubles and reorders what goes over it.
type link struct {
	server *server
	dead   chan struct{} // closed when the process has crashed
	hurry  chan struct{} // closed when the process leaves or the faults end: no call overruns its context any more
	once   sync.Once     // closes hurry

	mu        sync.Mutex
	r         *rand.Rand
	up, down  network
	cut       [2]bool // up, down
	overrun   float64
	lostCalls uint64
	// heard, when set, is told of each sync that the server has answered, with the server's lock held.
	received func(*driver.Request, *driver.Answer)
}

var _ driver.Store = (*link)(nil)

var errDead = errors.New("the process is dead")

func newLink(s *server, p *plan, r *rand.Rand) *link {
	return &link{
		server: s, dead: make(chan struct{}), hurry: make(chan struct{}),
		r: r, up: p.up, down: p.down, overrun: p.overrun,
	}
}

// endOverruns has every call end with its context from now on.
func (l *link) endOverruns() { l.once.Do(func() { close(l.hurry) }) }

// calm ends every fault of the link.
func (l *link) calm() {
	l.endOverruns()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.down, l.cut, l.overrun = calmNetwork, calmNetwork, [2]bool{}, 0
}

func (l *link) setCut(up, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = [2]bool{up, down}
}

// Sync sends a request and waits for its answer.
func (l *link) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	r := l.call(ctx, arrival{sync: &req})
	return r.ans, r.err
}

// Leave sends a leave and waits until it is acknowledged.
func (l *link) Leave(ctx context.Context, req driver.Leave) error {
	select {
	case <-l.dead:
		return nil // the process is gone; what is left of it here ends
	default:
	}
	return l.call(ctx, arrival{leave: &req}).err
}

// Load and Save are an operator's: they go past the network.
func (l *link) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	return l.server.store.Load(ctx, pool)
}

func (l *link) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	return l.server.store.Save(ctx, pool, d)
}

// Reserve asks for slots and waits for them.
func (l *link) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	r := l.call(ctx, arrival{reserve: &req})
	return r.res, r.err
}

// Close does nothing: the server is everybody's.
func (l *link) Close() error { return nil }

// A delivery is a reply, and how long it is under way.
type delivery struct {
	reply reply
	delay time.Duration
}

// A passage is what the network does to one call.
type passage struct {
	lost         bool
	delay, again time.Duration // again: when it arrives once more; 0: it does not
	overrun      time.Duration // by how much the call outlives its context
}

func (l *link) call(ctx context.Context, a arrival) reply {
	select {
	case <-l.dead:
		return reply{err: errDead}
	default:
	}
	back := make(chan delivery, 2) // a message is doubled at most once
	a.reply = func(r reply) {
		if l.received != nil && a.sync != nil && r.err == nil {
			l.received(a.sync, &r.ans)
		}
		l.answer(back, r)
	}
	p := l.pass()
	hurry := make(<-chan struct{})
	if p.overrun > 0 {
		var cancel context.CancelFunc
		ctx, cancel = overrun(ctx, p.overrun)
		defer cancel()
		hurry = l.hurry
	}
	if !p.lost {
		a.sent = time.Now()
		if p.again > 0 {
			l.arriveLater(p.again, a)
		}
		if err := l.wait(ctx, p.delay, hurry); err != nil {
			l.arriveLater(p.delay, a) // it is under way all the same
			return reply{err: err}
		}
		l.server.arrive(a)
	}
	select {
	case d := <-back:
		if err := l.wait(ctx, d.delay, hurry); err != nil {
			return reply{err: err}
		}
		return d.reply
	case <-l.dead:
		return reply{err: errDead}
	case <-hurry:
		return reply{err: context.Canceled}
	case <-ctx.Done():
		return reply{err: ctx.Err()}
	}
}

// arriveLater has a message arrive d after it was sent, when nobody may be waiting for its answer any more.
func (l *link) arriveLater(d time.Duration, a arrival) {
	time.AfterFunc(d-time.Since(a.sent), func() { l.server.arrive(a) })
}

// overrun returns a context that ends later than ctx does, unless ctx is cancelled.
func overrun(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(by))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return longer, func() { stop(); cancel() }
}

// wait lets d pass, unless the call ends first.
func (l *link) wait(ctx context.Context, d time.Duration, hurry <-chan struct{}) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-hurry:
		return context.Canceled
	case <-l.dead:
		return errDead
	}
}

// pass draws what becomes of a call.
func (l *link) pass() passage {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := passage{lost: l.cut[0] || l.r.Float64() < l.up.lost, delay: l.up.delay(l.r)}
	if l.r.Float64() < l.up.again {
		p.again = time.Microsecond + l.up.delay(l.r)
	}
	if l.overrun > 0 && l.r.Float64() < l.overrun {
		p.overrun = logUniform(l.r, 10*time.Millisecond, 20*time.Second)
	}
	if p.lost {
		l.lostCalls++
	}
	return p
}

// answer puts a reply on its way back. The store's lock is held.
func (l *link) answer(back chan<- delivery, r reply) {
	l.mu.Lock()
	lost := l.cut[1] || l.r.Float64() < l.down.lost
	d := delivery{r, l.down.delay(l.r)}
	if lost {
		l.lostCalls++
	}
	l.mu.Unlock()
	if !lost {
		back <- d
	}
}

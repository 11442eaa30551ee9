package consensus

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Member is a processor in a pool: the loop that syncs with the store in the
// background. It is a sharing.Pool. All methods may be called from any
// goroutine.
type Member struct {
	store     Store
	pool      string
	self      string // identifies this process in what is pushed
	log       *slog.Logger
	base      time.Time // origin of the processor's local time; monotonic
	poke      chan struct{}
	attached  chan struct{} // has room for one; see awaitLimiter
	quit      chan struct{} // closed when Leave begins
	cut       chan struct{} // closed when Leave waits no longer for the answer under way
	done      chan struct{} // closed when the loop has ended
	unwatched chan struct{} // closed when news is no longer watched

	onSync []func(took time.Duration, err error)

	started atomic.Bool
	leave   sync.Once
	judging sync.WaitGroup // pauses that the called service asked for

	mu      sync.Mutex
	p       *protocol.Processor
	holder  sharing.Holder
	terms   sharing.Terms
	pushed  protocol.Orders // to the holder, without what is new each time
	receipt receiptBook
	slots   reserver
	lock    takeover
	files   protocol.FileSource // nil: none
	lastErr error
	logbook protocol.Logbook
	// How far the wall clock was ahead of the monotonic one when the newest
	// request was sent, and when the request that the lease rests on was sent.
	sentOffset, offset time.Duration
	// What the holder had done when the newest request was sent, and when the last
	// answered one was sent.
	sentFlow, flow protocol.FlowAt
	recent         protocol.RecentUse
}

var _ sharing.Pool = (*Member)(nil)

// Join makes this process a processor of a pool and returns at once. The share
// is 0 until the store has answered, and while the store is away. ctx bounds Join
// only. The caller keeps the store: close it after Leave.
//
// Errors: *RequestError for a bad option or pool name; with [WithFailFast] the error
// of the first sync.
func Join(ctx context.Context, s Store, pool string, opts ...Option) (*Member, error) {
	o, err := newOptions(pool, opts)
	if err != nil {
		return nil, err
	}
	m := &Member{
		store: s, pool: pool, self: rand.Text(), unwatched: make(chan struct{}), log: o.Logger.With("pool", pool, "pod", o.Config.ID), base: time.Now(),
		poke: make(chan struct{}, 1), attached: make(chan struct{}, 1), quit: make(chan struct{}), cut: make(chan struct{}), done: make(chan struct{}),
		p: protocol.NewProcessor(o.Config, rand.Text()), slots: newReserver(), onSync: o.OnSync, lock: takeover{takeoverLock: o.TakeoverLock}, files: o.Files,
	}
	m.offset = m.wallOffset()
	m.p.Configure(sharing.Terms{Spacing: wire.MinSpacing}) // until a limiter is attached: nothing for or against
	start := func(ctx context.Context) error { return m.start(ctx, o.FailFast) }
	if o.Start != nil {
		*o.Start = start
		return m, nil
	}
	if err := start(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// View returns how this processor sees its pool.
func (m *Member) View() View {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.p.View(m.now())
	v.LastError = m.lastErr
	v.Paused = m.p.PausesInForce(m.now(), m.base)
	v.PauseMissing = slices.DeleteFunc(v.PauseMissing, func(id string) bool { return uint64(m.receipt.pushed[id]) >= v.Generation })
	return View(v)
}

// Poke reports that a caller waits or was refused: the next sync may come sooner.
func (m *Member) Poke() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// Leave ends the share at once and notifies the store, so that the others can have
// it. Call it after everything that draws has stopped: numaflow-go continues to
// handle messages for up to 15 s after SIGTERM. Leave retries until ctx ends, but
// not if the store has never answered. When it fails it returns the error, and the
// others get the claim one removal time later. They also wait that long when the
// share would not earn the debt (see sharing.Holder) before ctx ends. A smaller
// debt is earned first. Budgets of tags get back what was drawn and not used, in up
// to two seconds. Calling Leave again returns nil at once.
func (m *Member) Leave(ctx context.Context) error {
	if !m.started.Load() {
		return nil
	}
	var err error
	m.leave.Do(func() {
		close(m.quit)
		if m.drawsBudgets() {
			select {
			case <-m.done:
			case <-ctx.Done():
			}
		}
		close(m.cut)
		<-m.done
		<-m.unwatched
		m.giveUp(ctx)
		free := m.payDebt(ctx)
		m.mu.Lock()
		unanswered := m.p.NeverAnswered()
		req := m.p.Leave(m.now())
		m.push()
		m.mu.Unlock()
		m.judging.Wait()
		m.stopReserving()
		if !free {
			m.log.Info("left the pool with debt: the claim stays until it is removed")
			m.release(false)
			return
		}
		err = m.sendLeave(ctx, req, unanswered)
		m.release(err != nil)
		if err != nil {
			err = fmt.Errorf("consensus: leaving pool %q: %w", req.Pool, err)
		}
	})
	return err
}

// payDebt waits until the unused share has earned the holder's debt. It returns
// false when ctx ends before that, or would.
func (m *Member) payDebt(ctx context.Context) bool {
	m.mu.Lock()
	holder := m.holder
	m.mu.Unlock()
	if holder == nil {
		return true
	}
	debt := holder.Report(0).Debt
	if debt <= 0 {
		return true
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < debt+protocol.SyncTimeout(MinLease) || debt > wire.Removal(MaxLease) {
		return false // it would take longer than the claim stays
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(debt):
		return true
	}
}

// sendLeave notifies the store until it answers; just once if it has never answered.
func (m *Member) sendLeave(ctx context.Context, req driver.Leave, once bool) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, protocol.SyncTimeout(MinLease))
		err := m.store.Leave(attempt, req)
		cancel()
		if err == nil || once {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// watchEvery is how often the loop checks whether the machine was suspended.
const watchEvery = 100 * time.Millisecond

// run is the background loop: one sync at a time, sent when the processor says
// that it is due. A sync runs beside the loop, so that the loop notices in time
// that a lease ends while the store hangs.
func (m *Member) run() {
	defer close(m.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m.awaitLimiter()
	answered := make(chan struct{}, 1)
	syncing := false
	spread := mathrand.Float64()
	timer := time.NewTimer(watchEvery)
	defer timer.Stop()
	for {
		wait := m.turn(spread, syncing)
		if wait <= 0 && !syncing {
			syncing = true
			go func() {
				_ = m.sync(ctx) // logged and kept for View
				answered <- struct{}{}
			}()
			wait = watchEvery
		}
		timer.Reset(max(wait, time.Millisecond))
		select {
		case <-m.quit:
			if syncing {
				select {
				case <-answered:
				case <-m.cut:
					cancel()
					<-answered
				}
			}
			return
		case <-answered:
			syncing = false
			spread = mathrand.Float64()
		case <-m.poke:
			m.mu.Lock()
			m.p.Poke(m.now())
			if m.holder != nil && m.p.Adapts() {
				m.p.Obey(m.now(), m.holder.Report(0).Usage.Served)
			}
			m.mu.Unlock()
		case <-timer.C:
		}
	}
}

// turn brings the processor up to the present and returns the time to the next
// thing to do.
func (m *Member) turn(spread float64, syncing bool) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	// The wall clock runs while a machine is suspended, the monotonic one does not:
	// the lease is older than it looks.
	if drift := m.wallOffset() - m.offset; drift > m.p.Lease/20 {
		m.p.Void(now)
		m.offset += drift
	}
	m.p.Tick(now)
	if !syncing && m.holder != nil && m.p.RationDue(now) {
		m.p.Ration(now, m.holder.ReportTags(m.p.TagKeep()))
	}
	m.push()
	wait := watchEvery
	if !syncing { // else its answer, or its timeout, wakes the loop
		wait = min(wait, m.p.Next(now, spread)-now)
	}
	if left := m.p.Until() - now; left > 0 {
		wait = min(wait, left)
	}
	return wait
}

// firstPatience is how long a first sync without an answer in time is retried. It has to connect, and nothing held can become too
// old meanwhile.
const firstPatience = 2 * time.Second

// syncFirst does the first sync. Join returns its error.
func (m *Member) syncFirst(ctx context.Context) error {
	for {
		err := m.sync(ctx)
		if err == nil || ctx.Err() != nil || time.Since(m.base) >= firstPatience || !protocol.TimedOut(err) {
			return err
		}
	}
}

// sync does one sync.
func (m *Member) sync(ctx context.Context) error {
	m.inherit()
	req, timeout := m.request()
	m.writeLastState()
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ans, err := m.store.Sync(ctx, req)
	took := time.Since(began)
	err = m.take(req, ans, err)
	if !errors.Is(err, context.Canceled) {
		for _, f := range m.onSync {
			f(took, err)
		}
	}
	return err
}

// take applies the result of a sync.
func (m *Member) take(req driver.Request, ans driver.Answer, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.p.Failed(m.now(), req.Seq)
	} else {
		err = m.p.Take(m.now(), ans, rand.Text())
	}
	if err == nil {
		m.offset, m.flow = m.sentOffset, m.sentFlow
		if m.files != nil {
			m.files.InForce(m.p.File())
		}
		m.receiptsCame()
		m.judge()
	}
	m.push()
	m.report(err)
	return err
}

// request returns the processor's next request, made from the holder's report, and its timeout.
func (m *Member) request() (driver.Request, time.Duration) {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails

	m.mu.Lock()
	defer m.mu.Unlock()
	m.sentOffset = m.wallOffset()
	now, o := m.now(), protocol.Observation{Demand: driver.Whole}
	if m.files != nil {
		m.p.SetFile(now, m.files.File())
	}
	if h := m.holder; h != nil {
		tags := m.reportTags(now)
		asked := h.Report(2 * m.p.Interval()) // so that the next answer comes within the span of the demand
		m.p.Yield(now, Share(asked.Demand), tags)
		m.push()         // a lower share is in force before the store learns of it
		r := h.Report(0) // after that: no call begins under the old share any more
		m.sentFlow = protocol.FlowAt{Usage: r.Usage, At: now}
		o = protocol.Observation{
			Demand: Share(asked.Demand), Needs: [2]Share{Share(asked.Needs[0]), Share(asked.Needs[1])}, InUse: Share(r.InUse), Served: r.Usage.Served,
			Waiting: asked.Waiting, Throttled: asked.Throttled, OfTag: asked.OfTag, Tag: asked.Tag, Hold: asked.Hold,
			Announced: asked.Announced,
		}
		o.Used, o.Offered = m.sentFlow.Since(m.flow.Usage, now-m.flow.At, int(m.terms.Ceiling.Limit.Max), m.terms.Ceiling.Limit.Per)
		o.Lately = m.recent.Of(m.sentFlow, int(m.terms.Ceiling.Limit.Max), m.terms.Ceiling.Limit.Per)
	}
	req := m.p.Request(now, binary.NativeEndian.Uint64(nonce[:]), o)
	m.push()
	return req, protocol.SyncTimeout(m.p.Lease)
}

// reportTags takes the holder's reports on its tags: those on calls in flight at once, and returns the others for Yield. m.mu is held.
func (m *Member) reportTags(now time.Duration) []sharing.TagReport {
	s, ok := m.holder.(sharing.SlotTagHolder)
	if !ok || m.terms.Slots == 0 || m.terms.Quotas == nil {
		return m.holder.ReportTags(m.p.TagKeep())
	}
	m.p.ReportSlots(now, s.ReportSlots(m.p.SlotPlace()))
	return nil
}

// push gives the holder the orders in force that it does not have yet. m.mu is held.
func (m *Member) push() {
	h := m.holder
	if h == nil {
		return
	}
	last, o := &m.pushed, m.p.Orders(m.now(), 2*watchEvery, m.base) // twice: the loop may wake late
	if !slices.Equal(o.Pauses, last.Pauses) {
		h.SetPauses(o.Pauses) // before a lease that is good again
	}
	if q, ok := h.(sharing.QuotaHolder); ok && o.Quotas != nil {
		q.SetQuotas(*o.Quotas)
	}
	if o.Grants != nil {
		h.GrantTags(o.Grants)
	}
	if s, ok := h.(sharing.SlotTagHolder); ok && o.SlotGrants != nil {
		s.GrantSlots(o.SlotGrants) // before the lease that came with them
	}
	if o.Lease != last.Lease {
		h.Lease(o.Lease)
	}
	if d, ok := h.(sharing.Debtor); ok && o.Forgiven != last.Forgiven {
		d.ForgiveDebt()
	}
	m.pushed = protocol.Orders{Pauses: o.Pauses, Lease: o.Lease, Forgiven: o.Forgiven}
}

// now is the local monotonic time.
func (m *Member) now() time.Duration { return time.Since(m.base) }

// wallOffset is how far the wall clock is ahead of the monotonic one since m.base.
func (m *Member) wallOffset() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(m.base.Round(0)) - now.Sub(m.base)
}

// report logs what an operator should know about a sync. m.mu is held.
func (m *Member) report(err error) {
	m.lastErr = err
	if errors.Is(err, context.Canceled) {
		return
	}
	now := m.p.Situation(m.now(), err)
	lines := m.logbook.Observe(time.Now(), &now)
	if m.log.Enabled(context.Background(), slog.LevelDebug) {
		lines = append(lines, m.logbook.TagTargets(time.Now(), m.p.TagViews)...)
	}
	for _, l := range lines {
		m.log.Log(context.Background(), l.Level, l.Message, l.Args...) //nolint:sloglint // the logbook picks from constants
	}
}

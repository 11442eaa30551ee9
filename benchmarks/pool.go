package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A pool is processors in this process that share a limit through a backend.
// Each has its own connection, Member and Throttle, as a process has.
type pool struct {
	name    string
	backend *backend
	limit   throttle.Limit
	lease   time.Duration
	began   time.Time
	// sharer, if not nil, wraps the Member of the processor of this number.
	sharer func(m *consensus.Member, i int) throttle.Sharer

	mu         sync.Mutex
	processors []*processor // those that left and died included
}

func newPool(name string, be *backend, limit throttle.Limit, lease time.Duration) *pool {
	return &pool{name: name, backend: be, limit: limit, lease: lease, began: time.Now()}
}

// interval is the time between two syncs of a processor in a small pool.
func (p *pool) interval() time.Duration { return driver.Interval(p.lease, 1) }

// now is the time on the pool's clock, which is that of its grants too.
func (p *pool) now() time.Duration { return time.Since(p.began) }

// A processor is one of a pool.
type processor struct {
	pool       *pool
	store      *mortal
	member     *consensus.Member
	limiter    *throttle.Throttle
	closeStore func()

	stopDrawing context.CancelFunc
	drawing     sync.WaitGroup
	tracks      []*track
}

// A track is what one drawing goroutine was granted.
type track struct {
	mu sync.Mutex
	at []time.Duration // on the pool's clock
}

// join adds a processor. It has no share yet.
func (p *pool) join(ctx context.Context) (*processor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	store, closeStore, err := p.backend.open()
	if err != nil {
		return nil, err
	}
	pr := &processor{pool: p, store: &mortal{Store: store}, closeStore: closeStore}
	pr.member, err = consensus.Join(ctx, pr.store, p.name,
		consensus.WithID(processorName(len(p.processors))), consensus.WithLease(p.lease),
		consensus.WithOnStoreLoss(consensus.Stop), consensus.WithLogger(quiet))
	if err != nil {
		closeStore()
		return nil, err
	}
	var sharer throttle.Sharer = pr.member
	if p.sharer != nil {
		sharer = p.sharer(pr.member, len(p.processors))
	}
	pr.limiter, err = throttle.New(p.limit, throttle.WithSharer(sharer), throttle.OnClose(pr.member.Leave))
	if err != nil {
		return nil, errors.Join(err, pr.member.Leave(ctx))
	}
	p.processors = append(p.processors, pr)
	return pr, nil
}

// draw lets goroutines of the processor wait for tokens until stop.
func (pr *processor) draw(goroutines int) {
	ctx, cancel := context.WithCancel(context.Background())
	pr.stopDrawing = cancel
	for range goroutines {
		tr := &track{}
		pr.tracks = append(pr.tracks, tr)
		pr.drawing.Go(func() {
			for {
				if _, err := pr.limiter.Acquire(ctx, 1); err != nil {
					return // stopped or closed
				}
				now := pr.pool.now()
				tr.mu.Lock()
				tr.at = append(tr.at, now)
				tr.mu.Unlock()
			}
		})
	}
}

// stop ends the drawing.
func (pr *processor) stop() {
	if pr.stopDrawing != nil {
		pr.stopDrawing()
		pr.drawing.Wait()
	}
}

// leave ends the drawing and leaves the pool.
func (pr *processor) leave() error {
	pr.stop()
	err := pr.limiter.Close()
	pr.closeStore()
	return err
}

// die ends the processor as a kill does: it draws nothing and says nothing more.
func (pr *processor) die() {
	pr.store.dead.Store(true)
	pr.stop()
}

// A mortal is the store of a processor that can die.
type mortal struct {
	consensus.Store

	dead atomic.Bool
}

var errDead = errors.New("the processor is dead")

func (m *mortal) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if m.dead.Load() {
		return driver.Answer{}, errDead
	}
	return m.Store.Sync(ctx, req)
}

// Push implements driver.Pusher: the dead are silent.
func (m *mortal) Push(ctx context.Context, pool string, news []byte) error {
	store, ok := m.Store.(driver.Pusher)
	if !ok || m.dead.Load() {
		return consensus.ErrNoPush
	}
	return store.Push(ctx, pool, news)
}

// Watch implements driver.Pusher.
func (m *mortal) Watch(ctx context.Context, pool string, heard func([]byte)) (stop func(), err error) {
	store, ok := m.Store.(driver.Pusher)
	if !ok {
		return nil, consensus.ErrNoPush
	}
	return store.Watch(ctx, pool, func(news []byte) {
		if !m.dead.Load() {
			heard(news)
		}
	})
}

// Leave of a dead processor tells nobody, and does not try again.
func (m *mortal) Leave(ctx context.Context, l driver.Leave) error {
	if m.dead.Load() {
		return nil
	}
	return m.Store.Leave(ctx, l)
}

// start adds n processors; each of the busy ones gets drawing goroutines.
func (p *pool) start(ctx context.Context, n int, goroutines int) error {
	for range n {
		pr, err := p.join(ctx)
		if err != nil {
			return err
		}
		if goroutines > 0 {
			pr.draw(goroutines)
		}
	}
	return nil
}

// settle waits until the processors agree and hold the limit between them, and
// have done so for a number of sync intervals.
func (p *pool) settle(ctx context.Context, intervals int) error {
	const timeout = 40 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	since := p.now()
	for {
		if !p.settled() {
			since = p.now()
		}
		if p.now()-since >= time.Duration(intervals)*p.interval() {
			return nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("pool %s on %s is not settled after %s: %s", p.name, p.backend.name, timeout, p.describe())
		}
	}
}

func (p *pool) settled() bool {
	var held consensus.Share
	for _, pr := range p.processors {
		v := pr.member.View()
		held += v.Share
		if !v.Agreed || v.Live != len(p.processors) {
			return false
		}
	}
	return held >= consensus.Whole*97/100
}

// describe shows each processor's view, for a pool that does not settle.
func (p *pool) describe() string {
	var text strings.Builder
	for _, pr := range p.processors {
		v := pr.member.View()
		fmt.Fprintf(&text, "[%s share %s live %d agreed %v frozen %s error %v]", v.State, v.Share, v.Live, v.Agreed, v.Frozen, v.LastError)
	}
	return text.String()
}

// pause waits for d, or returns false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// grants returns the moments of all grants of the processors given, or of all
// that the pool ever had, sorted.
func (p *pool) grants(of ...*processor) []time.Duration {
	if len(of) == 0 {
		of = p.processors
	}
	var all []time.Duration
	for _, pr := range of {
		for _, tr := range pr.tracks {
			tr.mu.Lock()
			all = append(all, tr.at...)
			tr.mu.Unlock()
		}
	}
	slices.Sort(all)
	return all
}

// bound is the most that the pool may use in any second.
func (p *pool) bound() int {
	l := p.processors[0].limiter.Limit()
	return int(float64(l.Max)*time.Second.Seconds()/l.Per.Seconds()) + l.Burst + len(p.processors)
}

// end ends the processors. Those that have left or died before are ended again,
// which does nothing.
func (p *pool) end() error {
	var errs []error
	for _, pr := range p.processors {
		pr.stop()
	}
	for _, pr := range p.processors {
		errs = append(errs, pr.limiter.Close())
		pr.closeStore()
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var pausing = section{
	key: "pause", title: "Pauses",
	shows: "Fifty processors with a goroutine each that always waits for tokens share 1,000 a second. One after the other pauses and resumes " +
		"the pool. Time from the call until the last Throttle stops, and until the call returns: after the store has recorded the pause, and " +
		"up to 100 ms for receipts. The last column counts pauses with all receipts by then. Each processor has its own Member, Throttle and " +
		"connection, in one process; the lease is 3 s.",
	measure: measurePauses,
}

// pausingProcessors share the pool that is paused.
const pausingProcessors = 50

// A stopwatch is a Member whose holder tells when it has stopped.
type stopwatch struct {
	*consensus.Member

	stopped func(at time.Time)
}

// Attach implements throttle.Sharer.
func (s stopwatch) Attach(h throttle.Holder) {
	s.Member.Attach(timedHolder{h, s.stopped})
}

// A timedHolder is a holder that is timed.
type timedHolder struct {
	throttle.Holder

	stopped func(at time.Time)
}

// SetPauses implements throttle.Holder.
func (h timedHolder) SetPauses(list []throttle.Paused) {
	h.Holder.SetPauses(list)
	if len(list) > 0 {
		h.stopped(time.Now())
	}
}

// A finish is when the processors of a pool have stopped, those of one pause.
type finish struct {
	mu    sync.Mutex
	at    map[int]time.Time // by processor, of its first
	all   int
	ended chan struct{} // closed when all have stopped
}

func (f *finish) begin(all int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.all, f.ended = map[int]time.Time{}, all, make(chan struct{})
}

func (f *finish) stopped(i int, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.at[i]; ok || f.at == nil {
		return
	}
	f.at[i] = at
	if len(f.at) == f.all {
		close(f.ended)
	}
}

// last returns when the last one stopped, waiting for it.
func (f *finish) last(ctx context.Context) (last time.Time, err error) {
	select {
	case <-f.ended:
	case <-ctx.Done():
		return last, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.at {
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

// A pauseRun is the pauses of one pool.
type pauseRun struct {
	backend *backend
	stops   []time.Duration // from the call until the last Throttle had stopped
	returns []time.Duration // from the call until it returned
	whole   int             // pauses with all receipts
}

func (r *pauseRun) measure(ctx context.Context, times int) (err error) {
	p := newPool("pauses", r.backend, throttle.Limit{Max: 1000}, consensus.MinLease)
	var f finish
	p.sharer = func(m *consensus.Member, i int) throttle.Sharer {
		return stopwatch{m, func(at time.Time) { f.stopped(i, at) }}
	}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.start(ctx, pausingProcessors, 1); err != nil {
		return err
	}
	if err := p.settle(ctx, 3); err != nil {
		return err
	}
	for i := range times {
		if err := r.pauseOnce(ctx, p, &f, p.processors[i%len(p.processors)]); err != nil {
			return err
		}
	}
	return nil
}

// pauseOnce pauses the pool, takes the times, and resumes it.
func (r *pauseRun) pauseOnce(ctx context.Context, p *pool, f *finish, by *processor) error {
	f.begin(len(p.processors))
	began := time.Now()
	got, err := by.limiter.Pause(ctx, time.Time{}, "benchmark")
	took := time.Since(began)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	last, err := f.last(waiting)
	if err != nil {
		return fmt.Errorf("not everybody stopped: %w", err)
	}
	r.stops, r.returns = append(r.stops, last.Sub(began)), append(r.returns, took)
	if len(got.Missing) == 0 && len(got.Answered) == len(p.processors) {
		r.whole++
	}
	if err := by.limiter.Resume(ctx); err != nil {
		return err
	}
	for _, pr := range p.processors {
		for pr.limiter.Status().Paused != nil {
			if !pause(waiting, 5*time.Millisecond) {
				return errors.New("not everybody has resumed")
			}
		}
	}
	return nil
}

// pauseTarget is until when the last processor is to have stopped.
const pauseTarget = 50 * time.Millisecond

func (r *pauseRun) row() row {
	p99 := quantile(r.stops, 0.99)
	return judged(p99 < pauseTarget && r.whole == len(r.stops), "p99 below 50 ms, all receipts in 100 ms",
		r.backend.name, count(len(r.stops)), milliseconds(median(r.stops)), milliseconds(p99), milliseconds(quantile(r.stops, 1)),
		milliseconds(quantile(r.returns, 0.99)), fmt.Sprintf("%d of %d", r.whole, len(r.stops)))
}

func measurePauses(ctx context.Context, b *bench) (_ []table, err error) {
	redis, nats, stop, err := b.bothBackends(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	t := table{head: []string{"store", "pauses", "last stopped, p50", "p99", "most", "returned, p99", "all receipts"}}
	for _, be := range []*backend{redis, nats} {
		r := &pauseRun{backend: be}
		if err := r.measure(ctx, b.times(120)); err != nil {
			return nil, fmt.Errorf("%s: %w", be.name, err)
		}
		t.rows = append(t.rows, r.row())
		b.sayf("%s: %d pauses", be.name, len(r.stops))
	}
	return []table{t}, nil
}

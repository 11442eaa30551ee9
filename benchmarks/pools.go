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

var pools = section{
	key: "pools", title: "Pools",
	shows: "Four processors with goroutines that always wait for tokens share one limit through a store. All grants as a fraction of the limit, " +
		"and the most grants in any window of one second beside the bound G1 (max + burst + processors). A grant counts when its caller " +
		"continues. Each processor has its own Member, Throttle and connection, in one process; the lease is 3 s.",
	measure: measurePools,
}

const poolProcessors = 4

// A poolRun is one pool that is measured, and what came of it.
type poolRun struct {
	backend *backend
	limit   throttle.Limit

	granted, limited float64 // tokens, and what the limit comes to meanwhile
	window, bound    int     // largest second
}

// use is the part of the limit that was granted.
func (r *poolRun) use() float64 { return r.granted / r.limited }

func (r *poolRun) measure(ctx context.Context, d time.Duration) (err error) {
	// Enough goroutines at each processor that one always waits.
	const goroutines = 16
	p := newPool(fmt.Sprintf("pool-%d-%t", r.limit.Max, r.limit.Hard), r.backend, r.limit, consensus.MinLease)
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.start(ctx, poolProcessors, goroutines); err != nil {
		return err
	}
	if err := p.settle(ctx, 3); err != nil {
		return err
	}
	from := p.now()
	if !pause(ctx, d) {
		return context.Cause(ctx)
	}
	to := p.now()

	grants := p.grants()
	r.limit = p.processors[0].limiter.Limit() // with its defaults
	r.granted, r.limited = float64(between(grants, from, to)), float64(r.limit.Max)*(to-from).Seconds()
	r.window, r.bound = worstSecond(grants), p.bound()
	return nil
}

func (r *poolRun) row() row {
	return judged(r.use() >= 0.99 && r.granted <= r.limited+float64(r.limit.Burst) && r.window <= r.bound,
		"0.99 to 1.00 and burst once; window at most the bound",
		r.backend.name, count(r.limit.Max), fraction(r.use()), count(r.window), count(r.bound))
}

func measurePools(ctx context.Context, b *bench) (_ []table, err error) {
	redis, nats, stop, err := b.bothBackends(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	runs := []*poolRun{
		{backend: redis, limit: throttle.Limit{Max: 50}},
		{backend: redis, limit: throttle.Limit{Max: 1_000}},
		{backend: redis, limit: throttle.Limit{Max: 20_000}},
		{backend: nats, limit: throttle.Limit{Max: 50}},
		{backend: nats, limit: throttle.Limit{Max: 1_000}},
		{backend: nats, limit: throttle.Limit{Max: 20_000}},
	}
	// The slow ones run together, the fast ones each by itself.
	for _, together := range [][]*poolRun{{runs[0], runs[1], runs[3], runs[4]}, {runs[2]}, {runs[5]}} {
		if err := b.poolsAtOnce(ctx, together); err != nil {
			return nil, err
		}
	}
	t := table{head: []string{"store", "limit per second", "granted / limit", "largest second", "bound"}}
	for _, r := range runs {
		t.rows = append(t.rows, r.row())
	}
	return []table{t}, nil
}

func (b *bench) poolsAtOnce(ctx context.Context, runs []*poolRun) error {
	for _, r := range runs {
		b.sayf("%s per second on %s", count(r.limit.Max), r.backend.name)
	}
	return atOnce(runs, func(r *poolRun) error { return r.measure(ctx, b.long(30*time.Second)) })
}

// atOnce does something with every item, each on a goroutine of its own.
func atOnce[T any](items []T, do func(T) error) error {
	var running sync.WaitGroup
	errs := make([]error, len(items))
	for i, item := range items {
		running.Go(func() { errs[i] = do(item) })
	}
	running.Wait()
	return errors.Join(errs...)
}

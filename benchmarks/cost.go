package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var storeCost = section{
	key: "cost", title: "What the store is asked",
	shows: "Syncs counted at the server: scripts run by Redis, writes to the bucket of NATS. Messages count all requests of a sync: on NATS two " +
		"reads and a write. Four processors, idle, and drawing 20,000 tokens a second. The load is steady; a change adds a few syncs.",
	measure: measureCost,
}

// steady is how many sync intervals after a change of the load the requests are
// counted: the change itself takes some.
const steady = 5

// A costRun is the requests of one pool at one store.
type costRun struct {
	backend *backend
	rows    []row
}

func (r *costRun) measure(ctx context.Context, d time.Duration) (err error) {
	const limit = 20_000
	p := newPool("cost", r.backend, throttle.Limit{Max: limit}, consensus.MinLease)
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.start(ctx, poolProcessors, 0); err != nil {
		return err
	}
	for _, phase := range []string{"idle", "at full rate"} {
		if phase != "idle" {
			for _, pr := range p.processors {
				pr.draw(16)
			}
		}
		if err := p.settle(ctx, steady); err != nil {
			return err
		}
		before, err := r.backend.requests(ctx)
		from := p.now()
		if err != nil {
			return err
		}
		if !pause(ctx, d) {
			return context.Cause(ctx)
		}
		after, err := r.backend.requests(ctx)
		if err != nil {
			return err
		}
		to := p.now()
		sum := after.minus(before)
		syncs := poolProcessors * float64(to-from) / float64(p.interval())
		steps := float64(sum.steps) / syncs
		drawn := float64(between(p.grants(), from, to)) / (to - from).Seconds()
		r.rows = append(r.rows, judged(steps <= 1.05, "1",
			r.backend.name+", "+phase, count(int64(drawn)), ratio(steps), ratio(float64(sum.messages)/syncs)))
	}
	return nil
}

// A crowd is a pool of a hundred on one Redis.
type crowd struct {
	pool *pool
	rows []row
}

const crowdSize = 100

func (c *crowd) start(ctx context.Context) error {
	return c.pool.start(ctx, crowdSize, 0)
}

func (c *crowd) measure(ctx context.Context, b *bench) error {
	for _, phase := range []string{"idle", "all busy"} {
		if phase != "idle" {
			for _, pr := range c.pool.processors {
				pr.draw(2)
			}
		}
		if err := c.pool.settle(ctx, steady); err != nil {
			return err
		}
		b.sayf("%d processors, %s", crowdSize, phase)
		be := c.pool.backend
		used, err := be.cpu(ctx)
		asked, err2 := be.requests(ctx)
		from := c.pool.now()
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if !pause(ctx, b.long(15*time.Second)) {
			return context.Cause(ctx)
		}
		usedThen, err := be.cpu(ctx)
		askedThen, err2 := be.requests(ctx)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		took := c.pool.now() - from
		core := float64(usedThen-used) / float64(took)
		sum := askedThen.minus(asked)
		c.rows = append(c.rows, judged(core < 0.05, "below 5 % of a core",
			fmt.Sprintf("%d processors, %s", crowdSize, phase), fmt.Sprintf("%.1f", float64(sum.steps)/took.Seconds()),
			milliseconds(sum.busy/time.Duration(max(sum.steps, 1))), percent(core)))
	}
	return nil
}

func measureCost(ctx context.Context, b *bench) (_ []table, err error) {
	many, err := b.redisBackend(ctx, consensus.DefaultLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, many.close()) }()
	redis, nats, stop, err := b.bothBackends(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	// The crowd's pool is frozen for 15 s at first; the others run meanwhile.
	c := &crowd{pool: newPool("crowd", many, throttle.Limit{Max: 10_000}, consensus.DefaultLease)}
	defer func() { err = errors.Join(err, c.pool.end()) }()
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	runs := []*costRun{{backend: redis}, {backend: nats}}
	b.sayf("four processors on each store")
	if err := atOnce(runs, func(r *costRun) error { return r.measure(ctx, b.long(9*time.Second)) }); err != nil {
		return nil, err
	}
	perInterval := table{
		caption: "Requests per processor and sync interval:",
		head:    []string{"store", "tokens per second", "syncs", "messages"},
	}
	for _, r := range runs {
		perInterval.rows = append(perInterval.rows, r.rows...)
	}
	if err := c.measure(ctx, b); err != nil {
		return nil, err
	}
	share := table{
		caption: "Processor time of a redis-server with one pool of a hundred, with the default lease of 10 s:",
		head:    []string{"pool", "syncs per second", "work on one sync", "of a core"},
		rows:    c.rows,
	}
	return []table{perInterval, share}, nil
}

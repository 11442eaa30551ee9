package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var behaviour = section{
	key: "behaviour", title: "Changes in a pool",
	shows: "Pools of 1,000 tokens per second on Redis, with the default lease of 10 s (a sync every second, removal after 15 s). Time from the " +
		"event until grants reach 0.95 of the expected rate, both in the next quarter of a second and in the next second. All load on one: " +
		"sixteen idle processors, then one gets all the work. The other events happen to four busy processors. Several independent pools run " +
		"at once.",
	measure: measureBehaviour,
}

const behaviourRate = 1_000

// An event is something that a pool must adapt to.
type event struct {
	name string
	// processors are in the pool before it, with so many drawing goroutines each.
	processors, goroutines int
	// do makes the event happen, and returns whose grants are judged (all when
	// none is named) and their fair share of the limit.
	do     func(ctx context.Context, p *pool) (of []*processor, fair float64, err error)
	target func(p *pool) time.Duration
	says   string
}

// patience is how much longer than its target an event is watched.
const patience = 5 * time.Second

var events = []event{
	{
		name: "all load on one of sixteen", processors: 16,
		do: func(_ context.Context, p *pool) ([]*processor, float64, error) {
			p.processors[5].draw(32)
			return nil, 1, nil
		},
		target: func(*pool) time.Duration { return 3 * time.Second }, says: "3 s",
	},
	{
		name: "one joins: its fair share", processors: 4, goroutines: 8,
		do: func(ctx context.Context, p *pool) ([]*processor, float64, error) {
			pr, err := p.join(ctx)
			if err != nil {
				return nil, 0, err
			}
			pr.draw(8)
			return []*processor{pr}, 1.0 / 5, nil
		},
		target: func(p *pool) time.Duration { return 2 * p.interval() }, says: "2 intervals",
	},
	{
		name: "one leaves: the others have all", processors: 4, goroutines: 8,
		do: func(_ context.Context, p *pool) ([]*processor, float64, error) {
			return p.processors[1:], 1, p.processors[0].leave()
		},
		target: func(p *pool) time.Duration { return p.interval() }, says: "1 interval",
	},
	{
		name: "one is killed: the others have all", processors: 4, goroutines: 8,
		do: func(_ context.Context, p *pool) ([]*processor, float64, error) {
			p.processors[0].die()
			return p.processors[1:], 1, nil
		},
		target: func(p *pool) time.Duration { return consensus.Removal(p.lease) + p.interval() }, says: "removal and 1 interval",
	},
}

// An eventRun is one event in one pool.
type eventRun struct {
	event event
	pool  *pool
	took  time.Duration
	// window is the largest number of grants in a second.
	window int
}

func (r *eventRun) measure(ctx context.Context) (err error) {
	p := r.pool
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.start(ctx, r.event.processors, r.event.goroutines); err != nil {
		return err
	}
	if err := p.settle(ctx, 3); err != nil {
		return err
	}
	from := p.now()
	of, fair, err := r.event.do(ctx, p)
	if err != nil {
		return fmt.Errorf("%s: %w", r.event.name, err)
	}
	if !pause(ctx, r.event.target(p)+patience) {
		return context.Cause(ctx)
	}
	to := p.now()
	took, ok := reached(p.grants(of...), from, to, 0.95*fair*behaviourRate)
	if !ok {
		took = to - from // longer than the target by far
	}
	r.took, r.window = took, worstSecond(p.grants())
	return nil
}

func measureBehaviour(ctx context.Context, b *bench) (_ []table, err error) {
	lease := consensus.DefaultLease
	if b.quick {
		lease = consensus.MinLease
	}
	redis, err := b.redisBackend(ctx, lease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.close()) }()

	var runs []*eventRun
	for i, e := range events {
		for k := range b.times(3) {
			name := fmt.Sprintf("event-%d-%d", i, k)
			runs = append(runs, &eventRun{event: e, pool: newPool(name, redis, throttle.Limit{Max: behaviourRate}, lease)})
		}
	}
	b.sayf("%d pools at once", len(runs))
	if err := atOnce(runs, func(r *eventRun) error { return r.measure(ctx) }); err != nil {
		return nil, err
	}
	return []table{behaviourTable(runs), boundTable(runs)}, nil
}

func behaviourTable(runs []*eventRun) table {
	t := table{head: []string{"event", "median", "slowest", "pools"}}
	for _, e := range events {
		var took []time.Duration
		var target time.Duration
		for _, r := range runs {
			if r.event.name == e.name {
				took = append(took, r.took)
				target = e.target(r.pool)
			}
		}
		slowest := quantile(took, 1)
		t.rows = append(t.rows, judged(slowest <= target, fmt.Sprintf("within %s (%s)", e.says, seconds(target)),
			e.name, seconds(median(took)), seconds(slowest), count(len(took))))
	}
	return t
}

// boundTable judges that no pool broke the bound meanwhile.
func boundTable(runs []*eventRun) table {
	window, bound := 0, 0
	for _, r := range runs {
		if r.window-r.pool.bound() > window-bound || bound == 0 {
			window, bound = r.window, r.pool.bound()
		}
	}
	return table{
		caption: "The pool that came closest to its bound:",
		head:    []string{"", "largest second", "bound"},
		rows:    []row{judged(window <= bound, "at most the bound", "grants", count(window), count(bound))},
	}
}

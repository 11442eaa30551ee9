package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var permits = section{
	key: "permits", title: "Permits issued by the store",
	shows: "Permits per second with a strict limit of 1,000,000 per second, which no store reaches. Each processor has its own connection, " +
		"Member and Throttle, and one caller that acquires one permit after the other. The bare step is `Store.Reserve` alone, on the same " +
		"pool: on Redis the script that issues permits, on NATS its read and write. The target is the part of that rate that the library " +
		"keeps. *Ten lines* is the least possible step, without freezes and other users. On Redis it is a script that keeps one time in one " +
		"key. On NATS it is a loop of get and update that doesn't read the time of its own write, which costs as much as the write.",
	measure: measurePermits,
}

// A permitClient takes permits once, and returns how many it got.
type permitClient func(ctx context.Context) (int, error)

func measurePermits(ctx context.Context, b *bench) (_ []table, err error) {
	redis, nats, stop, err := b.bothBackends(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	t := table{head: []string{"store", "clients", "the bare step", "Acquire", "ratio", "ten lines", "the step's ratio to them"}}
	for _, be := range []*backend{redis, nats} {
		for _, clients := range []int{1, 10, 50} {
			b.sayf("%s, %d clients", be.name, clients)
			row, err := (&permitRun{backend: be}).run(ctx, clients, b)
			if err != nil {
				return nil, fmt.Errorf("%s, %d clients: %w", be.name, clients, err)
			}
			t.rows = append(t.rows, row)
		}
	}
	return []table{t}, nil
}

// A permitRun is one pool that issues permits, and the clients beside it.
type permitRun struct {
	backend *backend
	pool    *pool
	closers []func()
}

func (r *permitRun) run(ctx context.Context, clients int, b *bench) (_ row, err error) {
	limit := throttle.Limit{Max: int(time.Second / driver.MinSpacing), Strict: true, MaxReserved: driver.MaxAhead}
	r.pool = newPool(fmt.Sprint("permits-", clients), r.backend, limit, consensus.MinLease)
	defer func() {
		for _, c := range r.closers {
			c()
		}
		err = errors.Join(err, r.pool.end())
	}()
	var acquiring, reserving, least []permitClient
	for range clients {
		acquire, err := r.acquirer(ctx)
		if err != nil {
			return row{}, err
		}
		reserve, bare, err := r.beside()
		if err != nil {
			return row{}, err
		}
		acquiring, reserving, least = append(acquiring, acquire), append(reserving, reserve), append(least, bare)
	}
	var rates [3][]float64
	for round := range b.times(9) {
		for k, of := range [][]permitClient{acquiring, reserving, least} {
			rate, err := rateOf(ctx, of, b.long(time.Second))
			if err != nil {
				return row{}, err
			}
			if round > 0 { // the first waits for the pool and makes the connections
				rates[k] = append(rates[k], rate)
			}
		}
	}
	kept, cost := median(ratios(rates[0], rates[1])), median(ratios(rates[1], rates[2]))
	return judged(kept >= 0.7, "0.70 or more", r.backend.name, count(clients), count(int(median(rates[1]))),
		count(int(median(rates[0]))), ratio(kept), count(int(median(rates[2]))), ratio(cost)), nil
}

// acquirer adds a processor and returns its caller.
func (r *permitRun) acquirer(ctx context.Context) (permitClient, error) {
	pr, err := r.pool.join(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int, error) {
		_, err := pr.limiter.Acquire(ctx, 1)
		return 1, err
	}, nil
}

// beside returns clients of the store's step and of the least there could be, each on a
// connection of its own.
func (r *permitRun) beside() (step, least permitClient, err error) {
	store, closeStore, err := r.backend.open()
	if err != nil {
		return nil, nil, err
	}
	r.closers = append(r.closers, closeStore)
	least, closeLeast, err := r.backend.bare(r.pool.name + "-bare")
	if err != nil {
		return nil, nil, err
	}
	r.closers = append(r.closers, closeLeast)
	var seen uint64
	return func(ctx context.Context) (int, error) {
		res, err := store.Reserve(ctx, driver.Reserve{
			Pool: r.pool.name, Count: 1, Spacing: driver.MinSpacing, Ahead: driver.MaxAhead, Revision: seen, Lease: consensus.MinLease,
		})
		seen = max(seen, res.Revision)
		return res.Count, err
	}, least, nil
}

// rateOf is how many permits per second clients get, each asking again at once.
func rateOf(ctx context.Context, clients []permitClient, d time.Duration) (float64, error) {
	var stop atomic.Bool
	var got atomic.Int64
	var failure atomic.Pointer[error]
	var running sync.WaitGroup
	began := time.Now()
	for _, take := range clients {
		running.Go(func() {
			for !stop.Load() {
				n, err := take(ctx)
				if err != nil {
					failure.Store(&err)
					return
				}
				got.Add(int64(n))
			}
		})
	}
	<-time.After(d)
	stop.Store(true)
	running.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return float64(got.Load()) / time.Since(began).Seconds(), nil
}

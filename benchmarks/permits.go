package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

var permits = section{
	key: "permits", title: "Permits issued by the store",
	shows: "Clients reserve permits over connections of their own, as fast as the store lets them: the spacing is 1 us, and a thousand may be " +
		"reserved ahead. One permit at a time, and eight, as a processor does for which several callers wait. Beside them, in turn, clients of " +
		"the bare store: on Redis a script of ten lines that keeps one time in one key, on NATS a loop of get and update of one entry. The " +
		"bare ones know neither freezes nor processors nor the limit's other users, and the loop does not learn the time of its own write, " +
		"which on NATS costs as much as the write. Permits per second, and their ratios to the bare ones.",
	measure: measurePermits,
}

// A permitClient takes permits once, and returns how many it got.
type permitClient func(ctx context.Context) (int, error)

func measurePermits(ctx context.Context, b *bench) (_ []table, err error) {
	redis, err := b.redisBackend(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.close()) }()
	nats, err := b.natsBackend(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, nats.close()) }()

	t := table{head: []string{"store", "clients", "bare", "one at a time", "ratio", "eight at a time", "ratio"}}
	for _, be := range []*backend{redis, nats} {
		for _, clients := range []int{1, 10, 50} {
			b.sayf("%s, %d clients", be.name, clients)
			r := &permitRun{pool: fmt.Sprint("permits-", clients), backend: be}
			row, err := r.run(ctx, clients, b)
			if err != nil {
				return nil, err
			}
			t.rows = append(t.rows, row)
		}
	}
	return []table{t}, nil
}

// A permitRun is one pool that issues permits, and its clients.
type permitRun struct {
	pool    string
	backend *backend
	keeper  caller
	closers []func()
}

func (r *permitRun) run(ctx context.Context, clients int, b *bench) (row, error) {
	defer func() {
		for _, c := range r.closers {
			c()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer cancel()
	if err := r.open(ctx, &keeping); err != nil {
		return row{}, err
	}
	ones, eights, bare := make([]permitClient, clients), make([]permitClient, clients), make([]permitClient, clients)
	for i := range clients {
		store, closeStore, err := r.backend.open()
		if err != nil {
			return row{}, err
		}
		r.closers = append(r.closers, closeStore)
		ones[i], eights[i] = r.reserver(store, 1), r.reserver(store, 8)
		var closeBare func()
		if bare[i], closeBare, err = r.backend.bare(r.pool + "-bare"); err != nil {
			return row{}, err
		}
		r.closers = append(r.closers, closeBare)
	}
	var rates [3][]float64
	for round := range b.times(9) {
		for k, of := range [][]permitClient{bare, ones, eights} {
			rate, err := rateOf(ctx, of, b.long(time.Second))
			if err != nil {
				return row{}, fmt.Errorf("%s, %d clients: %w", r.backend.name, clients, err)
			}
			if round > 0 { // the first makes the connections
				rates[k] = append(rates[k], rate)
			}
		}
	}
	one, eight := median(ratios(rates[1], rates[0])), median(ratios(rates[2], rates[0]))
	return judged(eight >= 0.7, "0.70 or more, eight at a time", r.backend.name, count(clients), count(int(median(rates[0]))),
		count(int(median(rates[1]))), ratio(one), count(int(median(rates[2]))), ratio(eight)), nil
}

// open makes the pool, waits for the end of its freeze, and keeps its clock going.
func (r *permitRun) open(ctx context.Context, keeping *sync.WaitGroup) error {
	store, closeStore, err := r.backend.open()
	if err != nil {
		return err
	}
	r.closers = append(r.closers, closeStore)
	r.keeper = caller{id: processorName(0), incarnation: rand.Text()}
	tick := time.NewTicker(100 * time.Millisecond)
	for {
		frozen, err := r.sync(ctx, store)
		if err != nil {
			return err
		}
		if !frozen {
			break
		}
		<-tick.C
	}
	keeping.Go(func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, _ = r.sync(ctx, store) // a conflict too many is no harm
			}
		}
	})
	return nil
}

// sync does one sync of a strict processor.
func (r *permitRun) sync(ctx context.Context, s consensus.Store) (frozen bool, err error) {
	c := &r.keeper
	c.seq++
	answer, err := s.Sync(ctx, consensus.Request{
		Pool: r.pool, ID: c.id, Incarnation: c.incarnation, Seq: c.seq, Nonce: mathrand.Uint64(),
		Revision: c.revision, Lease: consensus.MinLease, Spacing: consensus.MinSpacing, Strict: true,
		Tags: []consensus.TagReport{{}},
	})
	if err != nil {
		return true, err
	}
	if answer.Status != consensus.Granted {
		c.seq, c.incarnation = 0, rand.Text() // answers are not remembered here
	}
	return answer.Status != consensus.Granted || answer.Frozen > 0, nil
}

// reserver returns a client that reserves so many slots at a time.
func (r *permitRun) reserver(store consensus.Store, slots int) permitClient {
	var seen uint64
	return func(ctx context.Context) (int, error) {
		res, err := store.Reserve(ctx, consensus.Reserve{
			Pool: r.pool, Count: slots, Spacing: consensus.MinSpacing, Ahead: consensus.MaxAhead, Revision: seen, Lease: consensus.MinLease,
		})
		seen = max(seen, res.Revision)
		return res.Count, err
	}
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

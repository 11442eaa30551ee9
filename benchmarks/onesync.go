package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var oneSync = section{
	key: "sync", title: "One sync",
	shows: "Duration of one sync, by the number of processors in the pool; every answer lists all of them. A processor syncs in the background " +
		"once a second, less often in pools above a hundred.",
	measure: measureOneSync,
}

// A caller is a processor reduced to its requests.
type caller struct {
	id, incarnation  string
	seq              uint64
	lastSeq, lastNon uint64
	lastTime         int64
	revision         uint64
	share            consensus.Share
}

// sync does one sync of a pool of n processors, and returns the number of
// processors in the answer.
func (c *caller) sync(ctx context.Context, s consensus.Store, n int) (live int, err error) {
	c.seq++
	req := driver.Request{
		Pool: fmt.Sprint("pool-", n), ID: c.id, Incarnation: c.incarnation,
		Seq: c.seq, Nonce: mathrand.Uint64(), LastSeq: c.lastSeq, LastNonce: c.lastNon, LastTime: c.lastTime,
		Revision: c.revision, Lease: consensus.DefaultLease,
		Report: driver.Report{
			InUse: c.share, Wanted: consensus.Whole / consensus.Share(n), Demand: consensus.Whole, PoolSize: n,
		},
	}
	answer, err := s.Sync(ctx, req)
	if err != nil {
		return 0, err
	}
	if answer.Status != driver.Granted {
		return 0, fmt.Errorf("sync of %s in %s: %s", c.id, req.Pool, answer.Status)
	}
	c.lastSeq, c.lastNon, c.lastTime = req.Seq, req.Nonce, answer.Time
	c.revision, c.share = answer.Revision, answer.Share
	return len(answer.Roster), nil
}

// A syncRun is the syncs of one pool in one store.
type syncRun struct {
	size    int
	backend *backend
	store   consensus.Store
	close   func()
	callers []*caller
	next    int
	took    []time.Duration
	server  requests // during the syncs measured
}

// fill makes the pool: every processor syncs once.
func (r *syncRun) fill(ctx context.Context) error {
	for i := range r.size {
		c := &caller{id: processorName(i), incarnation: rand.Text()}
		r.callers = append(r.callers, c)
		if _, err := c.sync(ctx, r.store, r.size); err != nil {
			return err
		}
	}
	return nil
}

// measure lets the processors sync in turn for d.
func (r *syncRun) measure(ctx context.Context, d time.Duration) error {
	before, err := r.count(ctx)
	if err != nil {
		return err
	}
	for until := time.Now().Add(d); time.Now().Before(until); {
		c := r.callers[r.next%r.size]
		r.next++
		began := time.Now()
		live, err := c.sync(ctx, r.store, r.size)
		if err != nil {
			return err
		}
		r.took = append(r.took, time.Since(began))
		if live != r.size {
			return fmt.Errorf("%s shows %d processors in a pool of %d: the machine is too slow to keep them all alive", r.backend.name, live, r.size)
		}
	}
	after, err := r.count(ctx)
	sum := after.minus(before)
	r.server.steps += sum.steps
	r.server.busy += sum.busy
	return err
}

func (r *syncRun) count(ctx context.Context) (requests, error) {
	if r.backend.requests == nil {
		return requests{}, nil
	}
	return r.backend.requests(ctx)
}

func (r *syncRun) row() row {
	server := "-"
	if r.server.busy > 0 {
		server = milliseconds(r.server.busy / time.Duration(r.server.steps))
	}
	return plain(r.backend.name, count(r.size), milliseconds(quantile(r.took, 0.5)), milliseconds(quantile(r.took, 0.99)), server, count(len(r.took)))
}

func measureOneSync(ctx context.Context, b *bench) (_ []table, err error) {
	redis, nats, stop, err := b.bothBackends(ctx, consensus.MaxLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	t := table{head: []string{"store", "processors", "p50", "p99", "server's own work, mean", "syncs"}}
	backends := []*backend{memoryBackend(), redis, nats}
	rows := make([][]row, len(backends))
	for _, size := range []int{1, 10, 100, 1000} {
		runs, err := b.syncRuns(ctx, size, backends)
		if err != nil {
			return nil, err
		}
		for i, r := range runs {
			rows[i] = append(rows[i], r.row())
		}
	}
	for _, of := range rows {
		t.rows = append(t.rows, of...)
	}
	return []table{t}, nil
}

// syncRuns measures pools of one size in every store, in turn.
func (b *bench) syncRuns(ctx context.Context, size int, backends []*backend) ([]*syncRun, error) {
	b.sayf("pools of %s", count(size))
	var runs []*syncRun
	defer func() {
		for _, r := range runs {
			r.close()
		}
	}()
	for _, be := range backends {
		store, closeStore, err := be.open()
		if err != nil {
			return nil, err
		}
		r := &syncRun{size: size, backend: be, store: store, close: closeStore}
		runs = append(runs, r)
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
	for range 4 {
		for _, r := range runs {
			if err := r.measure(ctx, b.long(500*time.Millisecond)); err != nil {
				return nil, err
			}
		}
	}
	return runs, nil
}

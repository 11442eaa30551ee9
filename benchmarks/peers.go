package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var peerSection = section{
	key: "peers", title: "Peers",
	shows: "What users would take instead, on the same work, one after the other in one run. Four pods share a limit. Each has a limiter " +
		"and a connection of its own and 16 goroutines that wait for permits all the time, in one process. What keeps its count in a store keeps it " +
		"in the same redis-server. Who is refused tries again when its limiter says so. The burst is 100 ms worth where there is such a setting. " +
		"Limiters without a store have a quarter of the limit in each pod. First all pods have work; then only one of four has, for its first 8 s. " +
		"Worst second: the most grants in any second, as a fraction of the limit. Commands: what the clients sent to Redis, for each grant.",
	measure: measurePeers,
}

const (
	peerPods       = 4
	peerGoroutines = 16
)

// A peerRun is one way to limit four pods, at work once.
type peerRun struct {
	use      float64 // granted / limit
	worst    float64 // largest second / limit
	commands float64 // sent to the store for each grant; 0 without a store
	cpu      float64 // of the store: part of a core
	uses     bool    // a store
}

// A peerWork is what there is to do.
type peerWork struct {
	max    int
	busy   int // pods that have work, of peerPods
	from   time.Duration
	length time.Duration
}

func measurePeers(ctx context.Context, b *bench) (_ []table, err error) {
	be, err := b.redisBackend(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, be.close()) }()

	var tables []table
	for _, limit := range []int{1_000, 20_000} {
		t := table{
			caption: count(limit) + " per second.",
			head: []string{
				"limiter", "granted / limit", "worst second", "commands for each grant", "the store's processor, of a core",
				"one hot pod: granted / limit", "worst second",
			},
		}
		for _, p := range peers {
			all, err := b.runPeer(ctx, be, p, peerWork{max: limit, busy: peerPods, from: time.Second, length: b.long(10 * time.Second)})
			if err != nil {
				return tables, fmt.Errorf("%s, all pods: %w", p.name, err)
			}
			hot, err := b.runPeer(ctx, be, p, peerWork{max: limit, busy: 1, length: b.long(8 * time.Second)})
			if err != nil {
				return tables, fmt.Errorf("%s, one hot pod: %w", p.name, err)
			}
			t.rows = append(t.rows, peerRow(p.name, all, hot))
		}
		tables = append(tables, t)
	}
	return tables, nil
}

func peerRow(name string, all, hot peerRun) row {
	commands, cpu := "-", "-"
	if all.uses {
		commands, cpu = ratio(all.commands), fmt.Sprintf("%.3f", all.cpu)
	}
	return plain(name, ratio(all.use), ratio(all.worst), commands, cpu, ratio(hot.use), ratio(hot.worst))
}

// runPeer has the pods draw, and looks from a moment on for a while.
func (b *bench) runPeer(ctx context.Context, be *backend, p peer, w peerWork) (_ peerRun, err error) {
	b.sayf("%s: %s per second, %d of %d pods have work", p.name, count(w.max), w.busy, peerPods)
	env := peerEnv{backend: be, max: w.max, name: fmt.Sprintf("%s-%d-%d", p.name, w.max, w.busy)}
	pods, done, err := p.open(ctx, &env)
	if err != nil {
		return peerRun{}, err
	}
	defer func() { err = errors.Join(err, done()) }()

	began := time.Now()
	drawing, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	tracks := make([][]time.Duration, w.busy*peerGoroutines)
	for i := range tracks {
		wait := pods[i/peerGoroutines]
		running.Go(func() {
			for {
				if err := wait(drawing); err != nil {
					if drawing.Err() == nil {
						stop(err)
					}
					return
				}
				tracks[i] = append(tracks[i], time.Since(began))
			}
		})
	}
	pause(drawing, w.from)
	before, err := env.asked(ctx)
	from := time.Since(began)
	pause(drawing, w.length)
	to := time.Since(began)
	after, afterErr := env.asked(ctx)
	stopped := context.Cause(drawing)
	stop(nil)
	running.Wait()
	if err := errors.Join(err, afterErr, stopped); err != nil {
		return peerRun{}, err
	}

	grants := slices.Concat(tracks...)
	slices.Sort(grants)
	granted := float64(between(grants, from, to))
	return peerRun{
		use:      granted / (float64(w.max) * (to - from).Seconds()),
		worst:    float64(worstSecond(grants)) / float64(w.max),
		commands: float64(after.commands-before.commands) / max(granted, 1),
		cpu:      (after.cpu - before.cpu).Seconds() / (to - from).Seconds(),
		uses:     env.uses,
	}, nil
}

// A peerEnv is where the pods of a peer run.
type peerEnv struct {
	backend *backend
	max     int
	name    string // of the limit in the store
	uses    bool   // a store

	sent  atomic.Int64 // commands by the clients of connect
	steps bool         // the backend counts
}

// An asking is what a store has been asked, and what that has cost it, until a moment.
type asking struct {
	commands int64
	cpu      time.Duration
}

func (e *peerEnv) asked(ctx context.Context) (asking, error) {
	if !e.uses {
		return asking{}, nil
	}
	cpu, err := e.backend.cpu(ctx)
	if err != nil || !e.steps {
		return asking{commands: e.sent.Load(), cpu: cpu}, err
	}
	r, err := e.backend.requests(ctx)
	return asking{commands: r.steps, cpu: cpu}, err
}

// connect returns a client of the server that counts what it sends.
func (e *peerEnv) connect() redis.UniversalClient {
	client := redis.NewUniversalClient(redisstore.ClientOptions(e.backend.addr))
	client.AddHook(sentHook{&e.sent})
	e.uses = true
	return client
}

// A sentHook counts the commands that a client sends.
type sentHook struct{ sent *atomic.Int64 }

// DialHook implements redis.Hook.
func (sentHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h sentHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.sent.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h sentHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		h.sent.Add(int64(len(commands)))
		return next(ctx, commands)
	}
}

// openOurs makes a pool of this project. It has settled when it is returned, as a pool has that runs.
func openOurs(ctx context.Context, e *peerEnv) ([]waiter, func() error, error) {
	e.uses, e.steps = true, true
	p := newPool("peer-"+e.name, e.backend, throttle.Limit{Max: e.max}, consensus.MinLease)
	if err := p.start(ctx, peerPods, 0); err != nil {
		return nil, nil, errors.Join(err, p.end())
	}
	if err := p.settle(ctx, 2); err != nil {
		return nil, nil, errors.Join(err, p.end())
	}
	var pods []waiter
	for _, pr := range p.processors {
		pods = append(pods, func(ctx context.Context) error {
			_, err := pr.limiter.Acquire(ctx, 1)
			return err
		})
	}
	return pods, p.end, nil
}

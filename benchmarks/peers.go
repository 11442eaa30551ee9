package main

import (
	"cmp"
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
	shows: "Alternatives on the same work, one after the other in one run. Four pods share a limit, each with its own limiter, connection and " +
		"16 goroutines that always wait for permits, in one process. Limiters with a store use the same redis-server. A refused caller " +
		"retries when its limiter says so. The burst is 100 ms worth where it can be set. Limiters without a store have a quarter of the " +
		"limit in each pod. First all pods have work, then only one of four, for its first 8 s. Worst second: the most grants in any second, " +
		"as a fraction of the limit. Commands: requests to Redis per grant. A draw is timed with one goroutine per pod, at a tenth of the " +
		"limit in all. Then one of four busy pods is killed, and the store stands still for 3 s (SIGSTOP). A failing limiter is asked again " +
		"after 10 ms.",
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
	// grants are the moments of all grants, sorted, of which those in [from, to) were looked at.
	grants   []time.Duration
	from, to time.Duration
}

// A peerWork is what there is to do.
type peerWork struct {
	max    int
	busy   int // pods that have work, of peerPods
	from   time.Duration
	length time.Duration
	// broken, if not nil, breaks something at from, and returns when it is whole again or stays as it is. A limiter
	// that fails is asked again then.
	broken func(ctx context.Context, f *peerField) error
}

// A peerField is the pods of a peer at work.
type peerField struct {
	peerOpened

	backend *backend
	// halt ends the work of a pod.
	halt []context.CancelFunc
}

func measurePeers(ctx context.Context, b *bench) (_ []table, err error) {
	be, err := b.redisBackend(ctx, consensus.DefaultLease)
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
	for _, measure := range []func(context.Context, *backend) (table, error){b.measureDraws, b.measureFaults} {
		t, err := measure(ctx, be)
		tables = append(tables, t)
		if err != nil {
			return tables, err
		}
	}
	return tables, nil
}

func peerRow(name string, all, hot peerRun) row {
	commands, cpu := "-", "-"
	if all.uses {
		commands, cpu = fmt.Sprintf("%.3f", all.commands), fmt.Sprintf("%.3f", all.cpu)
	}
	return plain(name, ratio(all.use), ratio(all.worst), commands, cpu, ratio(hot.use), ratio(hot.worst))
}

// runPeer has the pods draw, and looks from a moment on for a while.
func (b *bench) runPeer(ctx context.Context, be *backend, p peer, w peerWork) (_ peerRun, err error) {
	b.sayf("%s: %s per second, %d of %d pods have work", p.name, count(w.max), w.busy, peerPods)
	env := peerEnv{backend: be, max: w.max, name: fmt.Sprintf("%s-%d-%d-%d", p.name, w.max, w.busy, runs.Add(1))}
	opened, err := p.open(ctx, &env)
	if err != nil {
		return peerRun{}, err
	}
	defer func() { err = errors.Join(err, opened.done()) }()

	began := time.Now()
	drawing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f := peerField{peerOpened: opened, backend: be}
	var running sync.WaitGroup
	tracks := make([][]time.Duration, w.busy*peerGoroutines)
	for pod := range w.busy {
		working, halt := context.WithCancel(drawing)
		f.halt = append(f.halt, halt)
		for i := range peerGoroutines {
			track := &tracks[pod*peerGoroutines+i]
			running.Go(func() {
				for working.Err() == nil {
					switch err := opened.pods[pod](working); {
					case err == nil:
						*track = append(*track, time.Since(began))
					case working.Err() != nil:
						return
					case w.broken == nil:
						stop(err)
						return
					default:
						pause(working, afterError)
					}
				}
			})
		}
	}
	pause(drawing, w.from)
	before, err := env.asked(ctx)
	from := time.Since(began)
	var fault error
	if w.broken != nil {
		fault = w.broken(drawing, &f)
	}
	pause(drawing, from+w.length-time.Since(began))
	to := time.Since(began)
	after, afterErr := env.asked(ctx)
	stopped := context.Cause(drawing)
	stop(nil)
	running.Wait()
	if err := errors.Join(err, afterErr, stopped, fault); err != nil {
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
		grants:   grants, from: from, to: to,
	}, nil
}

// runs tells the limits of runs apart in the store.
var runs atomic.Int64

// afterError is when a limiter that has failed is asked again.
const afterError = 10 * time.Millisecond

// A peerEnv is where the pods of a peer run.
type peerEnv struct {
	backend *backend
	max     int
	name    string        // of the limit in the store
	lease   time.Duration // of a pool; 0: the default
	uses    bool          // a store

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
func openOurs(ctx context.Context, e *peerEnv) (peerOpened, error) {
	e.uses, e.steps = true, true
	p := newPool("peer-"+e.name, e.backend, throttle.Limit{Max: e.max}, cmp.Or(e.lease, consensus.DefaultLease))
	if err := p.start(ctx, peerPods, 0); err != nil {
		return peerOpened{}, errors.Join(err, p.end())
	}
	if err := p.settle(ctx, 2); err != nil {
		return peerOpened{}, errors.Join(err, p.end())
	}
	o := peerOpened{done: p.end, kill: func(pod int) error { p.processors[pod].die(); return nil }}
	for _, pr := range p.processors {
		o.pods = append(o.pods, func(ctx context.Context) error {
			_, err := pr.limiter.Acquire(ctx, 1)
			return err
		})
	}
	return o, nil
}

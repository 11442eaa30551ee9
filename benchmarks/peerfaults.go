package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// peerFaultMax is the limit per second of the pods to which something happens, and of those whose draws are timed.
const peerFaultMax = 1_000

// measureDraws times single draws where nobody lacks tokens.
func (b *bench) measureDraws(ctx context.Context, be *backend) (table, error) {
	t := table{
		caption: "A draw, with " + count(peerFaultMax) + " per second and a tenth of that asked for.",
		head:    []string{"limiter", "median", "99 of 100 at most"},
	}
	for _, p := range peers {
		took, err := b.timeDraws(ctx, be, p)
		if err != nil {
			return t, fmt.Errorf("%s, draws: %w", p.name, err)
		}
		t.rows = append(t.rows, plain(p.name, short(median(took)), short(quantile(took, 0.99))))
	}
	return t, nil
}

// short shows a time of some nanoseconds or some milliseconds.
func short(d time.Duration) string {
	if d < 10*time.Microsecond {
		return fmt.Sprintf("%.1f us", float64(d)/float64(time.Microsecond))
	}
	return milliseconds(d)
}

// timeDraws has one goroutine in each pod draw at even times.
func (b *bench) timeDraws(ctx context.Context, be *backend, p peer) (_ []time.Duration, err error) {
	b.sayf("%s: single draws", p.name)
	env := peerEnv{backend: be, max: peerFaultMax, name: fmt.Sprintf("%s-draws-%d", p.name, runs.Add(1))}
	opened, err := p.open(ctx, &env)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.done()) }()
	const gap = time.Second * peerPods * 10 / peerFaultMax
	each := int(b.long(10*time.Second) / gap)
	tracks, failed := make([][]time.Duration, peerPods), make([]error, peerPods)
	var running sync.WaitGroup
	for pod, wait := range opened.pods {
		running.Go(func() {
			for range each {
				pause(ctx, gap)
				began := time.Now()
				if failed[pod] = wait(ctx); failed[pod] != nil {
					return
				}
				tracks[pod] = append(tracks[pod], time.Since(began))
			}
		})
	}
	running.Wait()
	return slices.Concat(tracks...), errors.Join(failed...)
}

// Times of what breaks.
const (
	faultSettles = 2 * time.Second  // before it
	faultLooks   = 20 * time.Second // from then on
	storeAway    = 3 * time.Second
)

// measureFaults breaks things.
func (b *bench) measureFaults(ctx context.Context, be *backend) (table, error) {
	t := table{
		caption: fmt.Sprintf("%s per second. One of four busy pods is killed: what is granted of the limit in the first 5 s, and from 5 to 20 s "+
			"after it. The store stands still for 3 s: what is granted in these, the worst second of the %.0f s that begin with them, and when "+
			"after them the pods have 95 %% of the limit again.", count(peerFaultMax), faultLooks.Seconds()),
		head: []string{"limiter", "pod killed: 0 to 5 s", "5 to 20 s", "store away: granted / limit", "worst second", "back after"},
	}
	for _, p := range peers {
		cells, err := b.breakPeer(ctx, be, p)
		if err != nil {
			return t, err
		}
		t.rows = append(t.rows, plain(append([]string{p.name}, cells...)...))
	}
	return t, nil
}

func (b *bench) breakPeer(ctx context.Context, be *backend, p peer) ([]string, error) {
	work := peerWork{max: peerFaultMax, busy: peerPods, from: b.long(faultSettles), length: b.long(faultLooks), broken: killLast}
	killed, err := b.runPeer(ctx, be, p, work)
	if err != nil {
		return nil, fmt.Errorf("%s, a pod killed: %w", p.name, err)
	}
	soon := b.long(5 * time.Second)
	cells := []string{
		ratio(killed.part(peerFaultMax, 0, soon)), ratio(killed.part(peerFaultMax, soon, killed.to-killed.from)),
	}
	if !killed.uses {
		return append(cells, "-", "-", "-"), nil
	}
	away := b.long(storeAway)
	work.broken = func(ctx context.Context, f *peerField) error { return haltStore(ctx, f.backend, away) }
	halted, err := b.runPeer(ctx, be, p, work)
	if err != nil {
		return nil, fmt.Errorf("%s, the store stopped: %w", p.name, err)
	}
	first, _ := slices.BinarySearch(halted.grants, halted.from)
	back := "never"
	if after, ok := reached(halted.grants, halted.from+away, halted.to, peerFaultMax*0.95); ok {
		back = seconds(after)
	}
	return append(cells, ratio(halted.part(peerFaultMax, 0, away)),
		ratio(float64(worstSecond(halted.grants[first:]))/peerFaultMax), back), nil
}

// part is what was granted of the limit in a time, which counts from the fault.
func (r *peerRun) part(limit int, from, to time.Duration) float64 {
	return float64(between(r.grants, r.from+from, r.from+to)) / (float64(limit) * math.Max((to-from).Seconds(), 1e-9))
}

// killLast kills the last pod.
func killLast(_ context.Context, f *peerField) error {
	pod := len(f.halt) - 1
	f.halt[pod]()
	if f.kill == nil {
		return nil
	}
	return f.kill(pod)
}

// haltStore makes the store stand still for a time.
func haltStore(ctx context.Context, be *backend, away time.Duration) error {
	if err := be.halt(ctx); err != nil {
		return err
	}
	pause(ctx, away)
	return be.resume()
}

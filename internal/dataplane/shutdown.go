package dataplane

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Grace is the platform's grace period for a pod that is to stop, by default that of Numaflow 1.8.3 and Kubernetes. Tests may divide it
// by any number, if they divide their own times, too: a handler sees none of it as long as its container gets no signal.
type Grace struct {
	// Calls bounds how long the core waits for outstanding calls of a map, batch map or transformer. It is unbounded for a stream map and a
	// sink. Defaults to 20 s.
	Calls time.Duration
	// Pod is when all the rest is killed. Defaults to 30 s.
	Pod time.Duration
}

func (g Grace) calls() time.Duration { return otherwise(g.Calls, defaultDrainTimeout) }
func (g Grace) pod() time.Duration   { return otherwise(g.Pod, 30*time.Second) }

func otherwise(d, instead time.Duration) time.Duration {
	if d == 0 {
		return instead
	}
	return d
}

// An End is how the core ended after SIGTERM.
type End struct {
	// Took is the time since SIGTERM.
	Took time.Duration
	// Killed reports whether it ended only with the pod's grace period.
	Killed bool
	// Failed reports whether it would exit with 1: it gave up on messages, or a stream broke. They are nacked.
	Failed bool
}

// Stop plays the core from SIGTERM on: it sends no more, gives up on unanswered messages when its time is over, and drops the stream. The
// handler receives no earlier signal. Callers of abandoned messages get ErrBroken, as for a nack.
func (m *Map) Stop(g Grace) End { return m.stop(g.calls(), false) }

// Stop is like Map.Stop.
func (t *Transform) Stop(g Grace) End { return t.stop(g.calls(), false) }

// Stop is like Map.Stop, but the core never gives up: unanswered messages are killed with the pod.
func (m *MapStream) Stop(g Grace) End { return m.stop(g.pod(), true) }

// stop closes the link within d. killed reports whether a timeout means a kill.
func (l *link[Req, Resp]) stop(d time.Duration, killed bool) End {
	began := time.Now()
	l.closeOnce.Do(func() {
		l.drainTimeout = d
		close(l.closing)
		l.closeErr = l.close()
	})
	e := End{Took: time.Since(began), Failed: l.closeErr != nil}
	e.Killed = killed && e.Failed && e.Took >= d
	return e
}

// Drain plays the core from SIGTERM on, with the batches that it has read by then, the one under way first. done receives the results of
// each answered one. The core gives up on all others when its time is over.
func (m *BatchMap) Drain(ctx context.Context, batches [][]Message, g Grace, done func(batch int, results [][]Result, err error)) End {
	began := time.Now()
	ctx, cancel := context.WithDeadlineCause(ctx, began.Add(g.calls()), errGivenUp)
	defer cancel()
	for i, msgs := range batches {
		results, err := m.Do(ctx, msgs)
		done(i, results, err)
	}
	return m.endOf(began, g.calls(), false)
}

// Drain is like BatchMap.Drain, but the core never gives up a batch: unanswered ones are killed with the pod. A vertex fetches one more
// batch after SIGTERM, so there are usually two. Once a message is answered with a failure nothing is retried: all of its batch is nacked,
// and so are all following ones; done then receives ErrNacked.
func (k *Sink) Drain(ctx context.Context, batches [][]Message, g Grace, done func(batch int, results []SinkResult, err error)) End {
	began := time.Now()
	ctx, cancel := context.WithDeadlineCause(ctx, began.Add(g.pod()), errGivenUp)
	defer cancel()
	nacked := false
	for i, msgs := range batches {
		if nacked {
			done(i, nil, fmt.Errorf("%w: %w", ErrNotSent, ErrNacked))
			continue
		}
		results, err := k.Do(ctx, msgs)
		for _, r := range results {
			nacked = nacked || r.Status == SinkFailure
		}
		if nacked {
			results, err = nil, ErrNacked
		}
		done(i, results, err)
	}
	e := k.endOf(began, g.pod(), true)
	e.Failed = e.Failed || nacked
	return e
}

// ErrNacked is the error of a sink's batch with a failure while the core stops.
var ErrNacked = errors.New("a message failed while the core was stopping: all of its batch is nacked")

var errGivenUp = errors.New("the core has given up")

// endOf drops the stream of batches, while one may still be under way.
func (l *link[Req, Resp]) endOf(began time.Time, d time.Duration, killed bool) End {
	e := l.stop(max(d-time.Since(began), 0), killed)
	e.Took = time.Since(began)
	e.Killed = killed && e.Failed && e.Took >= d
	return e
}

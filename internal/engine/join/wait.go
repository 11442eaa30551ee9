package join

import (
	"context"
	"errors"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// How long a caller pauses before it retries a draw that it waited for and could not use.
const (
	shortestPause = time.Millisecond
	LongestPause  = 100 * time.Millisecond
)

// A Host is what the package of the limiters knows of a call, and of limiters without a Source.
type Host[P Permit] interface {
	// HasFallback reports whether the caller has an alternative to draws that a budget refuses.
	HasFallback(ctx context.Context) bool
	// Guard returns a context that ends with sharing.ErrClosed as its cause when one of the limiters is closed.
	Guard(ctx context.Context, children []Child[P]) (_ context.Context, stop func())
	// Waits notes that limiters without a Source hold back a draw of n tokens, until over is called.
	Waits(ctx context.Context, others []Child[P], n int) (over func())
	// Ended returns the error of a call whose context has ended while others held back its draw.
	Ended(ctx context.Context, others []Child[P], n int) error
}

// A call is one Acquire of an All. It wins the limiters with a Source together (see waitqueue.Attempt), then tries the others. If one of
// these refuses, everything goes back, and the caller waits in its Acquire. Tokens granted there are used if all others have theirs at hand
// by then, and go back if not. So nothing is held while the caller waits.
type call[P Permit] struct {
	*All[P]
	attempt *waitqueue.Attempt[P] // nil without limiters that have a Source
	others  []Child[P]            // those without
	permits []P                   // of these
	waited  int                   // which of these was waited for; -1: none
}

// Wait waits until n tokens of each limiter are granted, or with upTo as many as all have. A caller that has waited before passes its age
// as came; 0: it comes now.
func (j *All[P]) Wait(ctx context.Context, n int, upTo bool, came uint64) (*Bundle[P], error) {
	r := &call[P]{All: j, others: j.Children[len(j.Parts):], waited: -1}
	if len(j.Parts) > 0 {
		r.attempt = waitqueue.NewAttempt(ctx, j.Parts)
		r.attempt.Fallback = j.host.HasFallback(ctx)
		if came > 0 {
			r.attempt.Since(came)
		}
	}
	if len(r.others) > 0 {
		r.permits = make([]P, len(r.others))
		guarded, stop := j.host.Guard(ctx, j.Children)
		defer stop()
		ctx = guarded
	}
	pause := shortestPause
	for most := n; ; {
		k, err := r.win(ctx, most, upTo)
		if err != nil {
			r.giveBack()
			return nil, err
		}
		lacks := -1
		if k >= 0 {
			if lacks = r.tryOthers(k); lacks < 0 {
				return r.grant(k), nil
			}
		}
		waited := r.waited >= 0
		r.giveBack()
		switch {
		case waited:
			if err := r.sleep(ctx, &pause, n); err != nil {
				return nil, err
			}
			most = n
		case upTo && k > 1:
			most = k / 2
		default:
			if err := r.waitAt(ctx, lacks, k); err != nil {
				return nil, err
			}
			most = k
		}
	}
}

// waitAt waits until one of the others has granted its part of a draw of n tokens.
func (r *call[P]) waitAt(ctx context.Context, i, n int) error {
	over := r.host.Waits(ctx, r.others, n)
	p, err := r.others[i].Limiter.Acquire(ctx, r.others[i].draws(n))
	over()
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, sharing.ErrClosed) { // by the guard
			return cause
		}
		return err
	}
	r.waited, r.permits[i] = i, p
	return nil
}

// win draws from the limiters with a Source. It does not wait while something is held; below 0 then means that they lack tokens.
func (r *call[P]) win(ctx context.Context, n int, upTo bool) (int, error) {
	switch {
	case r.attempt == nil:
		if ctx.Err() != nil {
			return -1, r.host.Ended(ctx, r.others, n)
		}
		return n, nil
	case r.waited < 0:
		return r.All.win(ctx, r.attempt, n, upTo)
	case r.attempt.WinNow(n):
		return n, nil
	default:
		return -1, nil
	}
}

// tryOthers draws from the limiters without a Source, and returns the first that refuses; -1 if none does.
func (r *call[P]) tryOthers(n int) int {
	for i, p := range r.others {
		if i == r.waited {
			continue
		}
		permit, ok := p.Limiter.TryAcquire(p.draws(n))
		if !ok {
			return i
		}
		r.permits[i] = permit
	}
	return -1
}

// giveBack gives back everything that was drawn.
func (r *call[P]) giveBack() {
	if r.attempt != nil {
		r.attempt.Undo()
	}
	for _, p := range r.permits {
		p.Cancel()
	}
	clear(r.permits)
	r.waited = -1
}

func (r *call[P]) grant(n int) *Bundle[P] {
	g := r.bundle(n)
	if r.attempt != nil {
		g.Permits = append(g.Permits, r.attempt.Permits()...)
	}
	g.Permits = append(g.Permits, r.permits...)
	return g
}

// sleep waits a while, longer each time, so that limiters that grant Acquire but refuse TryAcquire do not keep the caller busy.
func (r *call[P]) sleep(ctx context.Context, pause *time.Duration, n int) error {
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	*pause = min(2**pause, LongestPause)
	over := r.host.Waits(ctx, r.others, n)
	defer over()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return r.host.Ended(ctx, r.others, n)
	}
}

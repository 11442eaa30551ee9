package main

import (
	"context"
	"sync"
	"time"
)

// A gate holds calls back while no waiting helps: one call at a time, each after a while, tries whether calls succeed again. The zero gate
// is open. It is safe for concurrent use.
type gate struct {
	mu      sync.Mutex
	shut    bool
	until   time.Time // when the next one may try
	trying  bool
	changed chan struct{} // closed at the next change; nil without waiting callers
}

const (
	// tryEvery is how long the gate is shut before the next call tries, unless the provider names a later end.
	tryEvery = time.Minute
	// longestStop bounds that end: a day with a change of the clock.
	longestStop = 25 * time.Hour
)

// pass waits until a call may be made. If trial is true, the gate is shut and this call is the one that tries: call leave when it has
// ended.
func (g *gate) pass(ctx context.Context) (trial bool, err error) {
	for {
		g.mu.Lock()
		left := time.Until(g.until)
		if !g.shut || !g.trying && left <= 0 {
			trial = g.shut
			g.trying = trial
			g.mu.Unlock()
			return trial, nil
		}
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed := g.changed
		if g.trying {
			left = tryEvery // until that call has ended
		}
		g.mu.Unlock()
		timer := time.NewTimer(max(left, time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// tryPass is pass without a wait: open reports whether a call may be made now.
func (g *gate) tryPass() (trial, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut && (g.trying || time.Until(g.until) > 0) {
		return false, false
	}
	g.trying = g.shut
	return g.shut, true
}

// report reports the result of the call: shut if no waiting helps, and after what time it ends; 0 if unknown. It returns whether the gate was
// open until now.
func (g *gate) report(shut bool, after time.Duration) (wasOpen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wasOpen = !g.shut
	if shut {
		g.until = time.Now().Add(min(max(after, tryEvery), longestStop))
	}
	if g.shut != shut {
		g.shut = shut
		g.wake()
	}
	return wasOpen
}

// leave ends a trial, successful or not.
func (g *gate) leave(trial bool) {
	if !trial {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trying = false
	g.wake()
}

func (g *gate) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

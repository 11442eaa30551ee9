// Package throttletest has a limiter that follows a script and records draws and settlements, for tests of code that takes a
// [throttle.Limiter]. It has no clock: the script decides whether and when a caller gets its tokens, so that tests are exact and fast.
package throttletest

import (
	"context"
	"sync"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Method is a method of [throttle.Limiter].
type Method string

// The methods of throttle.Limiter.
const (
	Acquire     Method = "Acquire"
	AcquireUpTo Method = "AcquireUpTo"
	TryAcquire  Method = "TryAcquire"
)

// A Draw is the record of one call.
type Draw struct {
	// Method that was called.
	Method Method
	// Cost is the number of tokens asked for.
	Cost int
	// Waiting says that the call has not returned yet.
	Waiting bool
	// Granted is the number of tokens granted; 0 while waiting or when refused.
	Granted int
	// Err is the error of Acquire or AcquireUpTo; for a refused TryAcquire, the one they would have returned.
	Err error
	// Settled says that the permit was settled or cancelled.
	Settled bool
	// Used is what the permit was settled with, Granted when it was not settled.
	Used int
}

// A Limiter is a scripted [throttle.Limiter]. Each call takes the next step of the
// script, in the order of the calls; the last step goes on for ever. A call with a
// cost below zero is granted and takes no step. All methods may be called from any
// number of goroutines at once.
type Limiter struct {
	closed chan struct{}

	mu     sync.Mutex // guards the fields below
	script []Step
	draws  []*Draw
}

var _ throttle.Limiter = (*Limiter)(nil)

// New returns a Limiter for a script. Without steps it grants everything.
func New(script ...Step) *Limiter {
	if len(script) == 0 {
		script = []Step{Grant()}
	}
	return &Limiter{script: script, closed: make(chan struct{})}
}

// Acquire does what the script says; see [throttle.Limiter].
func (l *Limiter) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	d, step := l.begin(Acquire, n)
	return l.end(d, n, l.wait(ctx, step, n))
}

// AcquireUpTo does what the script says; see [throttle.Limiter]. It grants n unless
// the step is [GrantUpTo].
func (l *Limiter) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	d, step := l.begin(AcquireUpTo, n)
	return l.end(d, min(n, step.most), l.wait(ctx, step, n))
}

// TryAcquire does what the script says, without waiting: a step that would block
// is a refusal.
func (l *Limiter) TryAcquire(n int) (throttle.Permit, bool) {
	d, step := l.begin(TryAcquire, n)
	p, err := l.end(d, n, l.tryNow(step, n))
	return p, err == nil
}

// Close refuses later draws with [throttle.ErrClosed], and fails waiting callers. Calling it again does nothing.
func (l *Limiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
}

// Draws returns a copy of the record, in the order of the calls.
func (l *Limiter) Draws() []Draw {
	l.mu.Lock()
	defer l.mu.Unlock()
	draws := make([]Draw, len(l.draws))
	for i, d := range l.draws {
		draws[i] = *d
	}
	return draws
}

// Waiting returns how many calls have not returned yet.
func (l *Limiter) Waiting() int {
	n := 0
	for _, d := range l.Draws() {
		if d.Waiting {
			n++
		}
	}
	return n
}

// Used returns the tokens used by all draws together, as in [Draw.Used].
func (l *Limiter) Used() int {
	n := 0
	for _, d := range l.Draws() {
		n += d.Used
	}
	return n
}

func (l *Limiter) begin(m Method, n int) (*Draw, Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &Draw{Method: m, Cost: n, Waiting: true}
	l.draws = append(l.draws, d)
	if n < 0 {
		return d, Grant()
	}
	step := l.script[0]
	if len(l.script) > 1 {
		l.script = l.script[1:]
	}
	return d, step
}

func (l *Limiter) end(d *Draw, n int, err error) (throttle.Permit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.Waiting = false
	if d.Err = err; err != nil {
		return throttle.Permit{}, err
	}
	d.Granted = max(n, 0)
	d.Used = d.Granted
	return throttle.NewPermit(d.Granted, func(used int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		d.Settled, d.Used = true, used
	}), nil
}

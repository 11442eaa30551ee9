package virtual

import (
	"context"
	"iter"
	"time"
)

// A caller is a coroutine that runs the events of a world. When one of them waits, the caller stops in it, and another caller runs those that
// follow: so an event that need not wait costs no switch.
type caller struct {
	w     *World
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	wake  func()

	waits, woken bool
}

func newCaller(w *World) *caller {
	c := &caller{w: w}
	c.wake = c.awake
	c.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		for c.yield = yield; ; {
			w.loop()
			w.idle = append(w.idle, c)
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// resume lets the caller run until it stops.
func (c *caller) resume() { c.next() }

// awake lets the caller go on if it waits, after those that were woken before it.
func (c *caller) awake() {
	if c.waits && !c.woken {
		c.woken = true
		c.w.ready = append(c.w.ready, c)
	}
}

// Caller implements gate.Scheduler.
func (w *World) Caller() (wake func()) { return w.running.wake }

// Park implements gate.Scheduler. Of the contexts with a deadline only those of WithDeadline end a wait.
func (w *World) Park(ctx context.Context) {
	c := w.running
	if d, ok := ctx.(*deadline); ok && !d.noted {
		d.noted = true
		w.At(d.at, c.wake)
	}
	c.waits = true
	w.parked++
	c.yield(struct{}{})
	w.parked--
	c.waits, c.woken = false, false
}

// A deadline is a context that ends at a moment of the world's time.
type deadline struct {
	context.Context //nolint:containedctx // it is a context

	w     *World
	at    time.Duration
	noted bool // the world wakes its caller then
}

// WithDeadline returns a context that ends at a moment. Waits in Park end with it; nobody else learns of it but by its Err.
func (w *World) WithDeadline(at time.Duration) context.Context {
	return &deadline{Context: context.Background(), w: w, at: at}
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.w.epoch.Add(d.at), true }

// Err implements context.Context.
func (d *deadline) Err() error {
	if d.w.now < d.at {
		return nil
	}
	return context.DeadlineExceeded
}

package virtual

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A World runs functions at moments of its own time. They may call a limiter with the World as its clock, and wait there: a function that
// waits stops where it is, as a coroutine, and time goes on. Exactly one of them runs at any moment, so that they need no locks. A World is
// a gate.Scheduler, and must be used from one goroutine, or from the functions that it runs.
type World struct {
	epoch time.Time
	now   time.Duration
	until time.Duration
	queue Queue[func()]
	rng   *rand.Rand

	running *caller
	ready   []*caller // woken, in turn
	idle    []*caller
	parked  int
}

// NewWorld returns a world whose time begins at epoch. The seed determines its random numbers.
func NewWorld(epoch time.Time, seed uint64) *World {
	return &World{epoch: epoch, rng: rand.New(rand.NewPCG(seed, 1))}
}

// Since returns how much time has passed since the beginning.
func (w *World) Since() time.Duration { return w.now }

// Epoch returns when the time of the world began.
func (w *World) Epoch() time.Time { return w.epoch }

// Now implements gate.Clock.
func (w *World) Now() time.Time { return w.epoch.Add(w.now) }

// Float64 returns a random number from 0 up to 1, for limiters too.
func (w *World) Float64() float64 { return w.rng.Float64() }

// At runs f at a moment, or now if that is over.
func (w *World) At(at time.Duration, f func()) { w.queue.Push(at, f) }

// Waiting returns how many functions wait at present.
func (w *World) Waiting() int { return w.parked }

// Run lets everything happen up to and including a moment. It must not be called from a function of the world.
func (w *World) Run(until time.Duration) {
	w.until = until
	for w.step() {
	}
	w.now = max(w.now, until)
}

// step lets one caller run, until it waits or nothing is left to do. It reports whether there is more to do.
func (w *World) step() bool {
	var c *caller
	switch {
	case len(w.ready) > 0:
		c = w.ready[0]
		w.ready = w.ready[1:]
	default:
		if at, some := w.queue.Next(); !some || at > w.until {
			return false
		}
		if n := len(w.idle); n > 0 {
			c, w.idle = w.idle[n-1], w.idle[:n-1]
		} else {
			c = newCaller(w)
		}
	}
	w.running = c
	c.resume()
	return true
}

// loop runs events that are due, until a waiting caller can go on.
func (w *World) loop() {
	for len(w.ready) == 0 {
		if at, some := w.queue.Next(); !some || at > w.until {
			return
		}
		at, f, _ := w.queue.Pop()
		w.now = max(w.now, at)
		f()
	}
}

// AfterFunc implements gate.Clock: it runs f once d has passed.
func (w *World) AfterFunc(d time.Duration, f func()) sharing.Timer {
	t := &timer{w: w, f: f}
	t.fire = t.due
	t.Reset(d)
	return t
}

// A timer has at most one event in the queue that counts. Limiters set theirs at every grant, mostly to a later time: then the event stays,
// and moves when its time has come.
type timer struct {
	w       *World
	f, fire func()
	on      bool
	at      time.Duration // when it is due
	queued  time.Duration // the moment of its event; 0: there is none
}

// Reset implements sharing.Timer.
func (t *timer) Reset(d time.Duration) bool {
	was := t.on
	d = max(d, 0)
	if t.on = d < math.MaxInt64/2; !t.on {
		return was // never
	}
	t.at = t.w.now + d
	if t.queued == 0 || t.at < t.queued {
		t.queue()
	}
	return was
}

func (t *timer) queue() {
	t.queued = max(t.at, 1)
	t.w.queue.Push(t.queued, t.fire)
}

// Stop implements sharing.Timer.
func (t *timer) Stop() bool {
	was := t.on
	t.on = false
	return was
}

// due handles one of its events.
func (t *timer) due() {
	if t.queued > t.w.now {
		return // a nearer one has come since
	}
	t.queued = 0
	switch {
	case !t.on:
	case t.at > t.w.now:
		t.queue()
	default:
		t.on = false
		t.f()
	}
}

// Package callmeter measures how busy a process is with calls under a limit, and says how many pods the limit needs.
package callmeter

import (
	"sync"
	"time"
)

// The measurement looks back for window; marks are a sixth of that apart.
const (
	window   = time.Minute
	interval = window / 6
)

// full is the part of the concurrency from which a process counts as full: the platform fetches whole batches, so that some of the places are
// always free. Below it nothing waits upstream, and the calls under way are all that there are.
const full = 0.7

// A Limit is the state of the limit at one moment.
type Limit struct {
	// Drawn counts the tokens that were drawn and not returned, and Held is for how long at least one caller waited, both since the start.
	Drawn int64
	Held  time.Duration
	// Share is what this process may use: tokens per second, or slots if Slots is set.
	Share float64
	Slots bool
}

// A Meter measures the calls of one process under one limit. All methods may be called from any goroutine.
type Meter struct {
	concurrency float64
	limit       func() Limit

	mu    sync.Mutex
	open  int // messages under way, those that wait for the limit included
	total totals
	marks []totals // at most a window old, but for the first
}

// totals are sums since the start.
type totals struct {
	at    time.Time
	open  time.Duration // of all messages that were under way
	ran   time.Duration // of all calls that have ended
	calls int64
	drawn int64
	held  time.Duration
}

// New returns a Meter for a process that has at most so many messages under way. It calls limit every ten seconds at most, and for Wanted. That
// happens in the goroutines of callers, without a lock.
func New(concurrency int, limit func() Limit) *Meter {
	return &Meter{concurrency: float64(concurrency), limit: limit, total: totals{at: time.Now()}}
}

// Meters are those of all limits of a call.
type Meters []*Meter

// Open notes that a message has come, and Close that it is done with or that it gets no tokens.
func (m Meters) Open() { m.note(1, 0, 0) }

// Close is described at Open.
func (m Meters) Close() { m.note(-1, 0, 0) }

// Ran notes that a call has ended which took so long, without its waits for tokens.
func (m Meters) Ran(took time.Duration) { m.note(0, took, 1) }

func (m Meters) note(open int, ran time.Duration, calls int64) {
	for _, meter := range m {
		meter.note(open, ran, calls)
	}
}

func (m *Meter) note(open int, ran time.Duration, calls int64) {
	now := time.Now()
	m.mu.Lock()
	m.advance(now)
	m.open += open
	m.total.ran += ran
	m.total.calls += calls
	due := len(m.marks) == 0 || now.Sub(m.marks[len(m.marks)-1].at) >= interval
	m.mu.Unlock()
	if due {
		m.mark(now, m.limit())
	}
}

// advance adds the time since the last event. The lock is held.
func (m *Meter) advance(now time.Time) {
	if since := now.Sub(m.total.at); since > 0 {
		m.total.open += since * time.Duration(m.open)
		m.total.at = now
	}
}

// mark keeps the present sums, from which a later reading is counted.
func (m *Meter) mark(now time.Time, l Limit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.total.drawn, m.total.held = l.Drawn, l.Held
	if n := len(m.marks); n > 0 && m.total.at.Sub(m.marks[n-1].at) < interval {
		return // another goroutine was first
	}
	for len(m.marks) > 1 && m.total.at.Sub(m.marks[1].at) >= window {
		m.marks = m.marks[1:]
	}
	if n := len(m.marks); n > 0 && m.total.at.Sub(m.marks[n-1].at) >= 2*window {
		m.marks = nil // nothing has happened, and nobody has looked, for so long
	}
	m.marks = append(m.marks, m.total)
}

// Wanted returns this process' part of the pods that the limit needs; the sum over all processes is their number. ok is false while that
// cannot be told: no call has ended yet, or messages wait and no call has ended for a minute.
func (m *Meter) Wanted() (pods float64, ok bool) {
	l, now := m.limit(), time.Now()
	m.mark(now, l)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	from := m.marks[0]
	elapsed := float64(m.total.at.Sub(from.at))
	if elapsed <= 0 || m.total.calls == 0 {
		return 0, false
	}
	open := float64(m.total.open-from.open) / elapsed
	running := min(float64(m.total.ran-from.ran)/elapsed, open) // calls count when they end: of few long ones too much may come together
	switch {
	case m.total.calls == from.calls:
		return 0, open == 0
	case open < full*m.concurrency:
		return running / (full * m.concurrency), true
	case float64(l.Held-from.held) >= elapsed/2: // the limit holds calls back, not the process
		return running / m.concurrency, true
	case l.Slots:
		return max(l.Share, running) / m.concurrency, true
	case l.Drawn <= from.drawn || l.Share <= 0:
		return 0, false
	}
	used := float64(l.Drawn-from.drawn) / elapsed * float64(time.Second)
	return running * max(l.Share/used, 1) / m.concurrency, true
}

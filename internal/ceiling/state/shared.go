// Package state has the states that a pool shares and that move with time: of a ramp or of a backoff. It reads and writes them, carries
// them into the next epoch of the pool and onto another clock, and says when a step is due. It is pure: no clock, I/O or goroutine.
package state

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Moving is a state that moves with time.
type Moving[S any] interface {
	comparable
	// Time is the logical time of the last step, in microseconds.
	Time() int64
	// Resume returns the state with the same ceiling at now, on another clock.
	Resume(now int64) S
}

// A Law moves states of one kind.
type Law[S any] interface {
	// Renew returns the state with which an epoch of the pool begins at now, after a silence in microseconds. due: the pool should learn of
	// it at once.
	Renew(s S, now, silence int64) (next S, due bool)
	// Rests reports whether time alone changes nothing.
	Rests(s S) bool
}

// A Shared is a state that belongs to a pool.
type Shared[S Moving[S]] struct {
	State S
	// Epoch is the logical start time of the pool's epoch in which the state was made; 0: unknown.
	Epoch int64
	// Changed means that State differs from the record, because the pool restarted or its clock changed. It should be proposed at once.
	Changed bool
	// Unreadable means that the record has the state of another release. State is then zero, and no step is made.
	Unreadable bool
}

// A Present is the pool's clock in an answer of the store.
type Present struct {
	// Now is the logical time in microseconds.
	Now int64
	// Epoch is the logical start time of the pool's epoch. Silence is how long no step had been recorded before it, in microseconds. Both
	// are 0 while unknown.
	Epoch, Silence int64
	// Clamp is the most that one step adds to the logical clock.
	Clamp time.Duration
}

// stale returns the age of a state in which the pool was active without a step.
func (p Present) stale() time.Duration { return max(2*p.Clamp, 5*time.Second) }

// Settle brings the state into the present epoch of the pool, and onto its clock.
func (s *Shared[S]) Settle(l Law[S], p Present) {
	if s.Unreadable {
		return
	}
	var none S
	gap := time.Duration(p.Now-s.State.Time()) * time.Microsecond
	switch {
	case s.State == none,
		p.Epoch != 0 && p.Epoch != s.Epoch && (s.Epoch != 0 || s.State.Time() < p.Epoch):
		next, due := l.Renew(s.State, p.Now, p.Silence)
		s.State, s.Changed = next, s.Changed || due
	case l.Rests(s.State):
	case gap > p.stale() || gap < -p.Clamp:
		s.State, s.Changed = s.State.Resume(p.Now), true
	}
	if p.Epoch != 0 {
		s.Epoch = p.Epoch
	}
}

// stepEvery is the minimum time between two steps: a pool makes one a second.
const stepEvery = 900 * time.Millisecond

// Aged reports whether the last step is so long ago that another one makes a difference.
func (s *Shared[S]) Aged(l Law[S], t int64) bool {
	return !l.Rests(s.State) && time.Duration(t-s.State.Time())*time.Microsecond >= stepEvery
}

// A Field is one number of a state, with the bounds that the other numbers leave.
type Field struct {
	Name      string
	Value     *int64
	Low, High int64
}

// A Listed is a pointer to a state that lists its fields.
type Listed[S any] interface {
	*S
	Fields() []Field
}

const (
	// form is the first word of every text that this release writes and reads.
	form = "1"
	// MaxMicros is the largest time in microseconds.
	MaxMicros = 1<<53 - 1
)

// Text returns the only text form: the form, the epoch, and the state's fields in order, as decimal numbers between blanks. So equal states
// are equal documents. It fails for a state that no step returns.
func Text[S Moving[S], P Listed[S]](s Shared[S]) ([]byte, error) {
	var none S
	fields := append([]Field{{"epoch", &s.Epoch, 0, MaxMicros}}, P(&s.State).Fields()...)
	b := []byte(form)
	for i, f := range fields {
		if known := i == 0 || s.State != none; known && (*f.Value < f.Low || *f.Value > f.High) {
			return nil, fmt.Errorf("ceiling: %s of a state is %d, allowed: %d to %d", f.Name, *f.Value, f.Low, f.High)
		}
		b = strconv.AppendInt(append(b, ' '), *f.Value, 10)
	}
	return b, nil
}

// Parse reads what Text writes, and nothing else.
func Parse[S Moving[S], P Listed[S]](text string) (Shared[S], error) {
	var s Shared[S]
	_, rest, _ := strings.Cut(text, " ")
	for _, f := range append([]Field{{Value: &s.Epoch}}, P(&s.State).Fields()...) {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		*f.Value, _ = strconv.ParseInt(word, 10, 64)
	}
	again, err := Text[S, P](s)
	if err == nil && string(again) != text {
		err = errors.New("ceiling: a state of another release")
	}
	if err != nil {
		return Shared[S]{}, err
	}
	return s, nil
}

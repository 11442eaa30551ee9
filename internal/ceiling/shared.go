package ceiling

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Moving is a state that moves with time: of a ramp or of a backoff.
type Moving[S any] interface {
	comparable
	// Time is the logical time of the last step, in microseconds.
	Time() int64
	// Resume returns the state with the same ceiling at now, on another clock.
	Resume(now int64) S
	// AppendText appends the only text form. It fails for a state that no step returns.
	AppendText(b []byte) ([]byte, error)
}

// A mover moves states of one kind.
type mover[S any] interface {
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

// settle brings the state into the present epoch of the pool, and onto its clock.
func (s *Shared[S]) settle(m mover[S], p Present) {
	if s.Unreadable {
		return
	}
	var none S
	gap := time.Duration(p.Now-s.State.Time()) * time.Microsecond
	switch {
	case s.State == none,
		p.Epoch != 0 && p.Epoch != s.Epoch && (s.Epoch != 0 || s.State.Time() < p.Epoch):
		next, due := m.Renew(s.State, p.Now, p.Silence)
		s.State, s.Changed = next, s.Changed || due
	case m.Rests(s.State):
	case gap > p.stale() || gap < -p.Clamp:
		s.State, s.Changed = s.State.Resume(p.Now), true
	}
	if p.Epoch != 0 {
		s.Epoch = p.Epoch
	}
}

// stepEvery is the minimum time between two steps: a pool makes one a second.
const stepEvery = 900 * time.Millisecond

// aged reports whether the last step is so long ago that another one makes a difference.
func (s *Shared[S]) aged(m mover[S], t int64) bool {
	return !m.Rests(s.State) && time.Duration(t-s.State.Time())*time.Microsecond >= stepEvery
}

// form is the first word of every text that this release writes and reads.
const form = "1"

const maxMicros = 1<<53 - 1

// AppendText appends the only text form to b: the form, the epoch, and the state's form. It fails for a state that no step returns.
func (s *Shared[S]) AppendText(b []byte) ([]byte, error) {
	b = strconv.AppendInt(append(b, form+" "...), s.Epoch, 10)
	return s.State.AppendText(append(b, ' '))
}

// Parse reads what AppendText writes, and nothing else; parse reads the state.
func Parse[S Moving[S]](text string, parse func(string) (S, error)) (Shared[S], error) {
	word, rest, _ := strings.Cut(text, " ")
	epoch, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(epoch, 10, 64)
	if word != form || err != nil || n < 0 || n > maxMicros || strconv.FormatInt(n, 10) != epoch {
		return Shared[S]{}, errors.New("ceiling: a state of another release")
	}
	s, err := parse(rest)
	if err != nil {
		return Shared[S]{}, err
	}
	return Shared[S]{State: s, Epoch: n}, nil
}

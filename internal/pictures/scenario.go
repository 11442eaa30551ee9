package main

import "time"

// tick is the step of the virtual clock. Everything in a run happens at a multiple of it.
const tick = 10 * time.Millisecond

// limitPerSecond is the limit of every run, and burst the maximum that the whole pool can save up.
const (
	limitPerSecond = 100
	burst          = limitPerSecond / 10
)

// names are the pods of every run.
var names = []string{"A", "B", "C"}

// A scenario lists the changes of pods and of their work over time.
type scenario struct {
	length time.Duration
	events []event // in the order of their times
}

// An event changes one pod.
type event struct {
	at   time.Duration
	pod  int // index in names
	what change
	text string // its label in the picture; empty: none
}

// A change is the effect of an event on a pod.
type change uint8

const (
	starts change = iota // joins, without work
	dies                 // ends without a word
	leaves               // tells the store that it ends
	works                // has more work than the limit allows, from now on
	rests                // has none
)

// lifeOfAPool has three busy pods: one joins late, one dies and comes back, and one leaves.
func lifeOfAPool() scenario {
	s := scenario{length: 80 * time.Second}
	s.begin(0, 0)
	s.begin(0, 1)
	s.begin(10*time.Second, 2)
	s.events = append(
		s.events,
		event{at: 10 * time.Second, pod: 2, what: works, text: "C joins"},
		event{at: 22 * time.Second, pod: 1, what: dies, text: "B is killed"},
	)
	s.begin(50*time.Second, 1)
	s.events = append(
		s.events,
		event{at: 50 * time.Second, pod: 1, what: works, text: "B is back"},
		event{at: 65 * time.Second, pod: 2, what: leaves, text: "C leaves"},
	)
	return s
}

// begin adds a pod that is busy from its start.
func (s *scenario) begin(at time.Duration, pod int) {
	s.events = append(s.events, event{at: at, pod: pod, what: starts}, event{at: at, pod: pod, what: works})
}

// sameWork has three busy pods, then only one, then all again, until that one is killed. The work begins late in a second of the wall
// clock, like real work.
func sameWork() scenario {
	s := scenario{length: 100 * time.Second}
	for pod := range names {
		s.events = append(s.events, event{what: starts, pod: pod})
	}
	at := 5*time.Second + 900*time.Millisecond
	s.events = append(
		s.events,
		event{at: at, pod: 0, what: works, text: "all have work"}, event{at: at, pod: 1, what: works}, event{at: at, pod: 2, what: works},
		event{at: 25 * time.Second, pod: 1, what: rests, text: "only A has work"}, event{at: 25 * time.Second, pod: 2, what: rests},
		event{at: 45 * time.Second, pod: 1, what: works, text: "all again"}, event{at: 45 * time.Second, pod: 2, what: works},
		event{at: 60 * time.Second, pod: 0, what: dies, text: "A is killed"},
	)
	return s
}

// happen calls f for each event due at now, and returns the remaining ones.
func happen(left []event, now time.Duration, f func(event) error) ([]event, error) {
	for len(left) > 0 && left[0].at <= now {
		if err := f(left[0]); err != nil {
			return nil, err
		}
		left = left[1:]
	}
	return left, nil
}

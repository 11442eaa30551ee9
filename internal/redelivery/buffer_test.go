package redelivery

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A buffer holds messages until they are read, those first that were delivered before, as JetStream has it. Those who read at the same
// time get them in turn, one each, as the pull requests of a JetStream consumer do.
type buffer struct {
	mu      sync.Mutex
	ready   []int
	again   []int     // were delivered before, and come first
	mixed   bool      // they do not, as in many a user-defined source
	readers []*reader // that wait
}

// A reader wants messages.
type reader struct {
	n    int // so many at most
	ids  []int
	full bool          // it waits until it has so many, as a fetch from JetStream does; else for the first
	done chan struct{} // closed when it waits no more
}

func (b *buffer) put(id int, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.readers) == 0 {
		if again && !b.mixed {
			b.again = append(b.again, id)
			return
		}
		b.ready = append(b.ready, id)
		return
	}
	r := b.readers[0]
	b.readers = b.readers[1:]
	if r.ids = append(r.ids, id); r.full && len(r.ids) < r.n {
		b.readers = append(b.readers, r) // behind the others
		return
	}
	close(r.done)
}

// roundTrip is how long a read takes at least. It varies by a little, as in a network: which of the pods has waited longest, and so gets
// the next message, changes by that in the course of minutes. Until then some get more than others, the more so the shorter a read is.
const roundTrip = 5 * time.Millisecond

// read takes up to n messages, and waits for timeout at most.
func (b *buffer) read(n int, timeout time.Duration, full bool) []int {
	time.Sleep(roundTrip + rand.N(time.Millisecond))
	b.mu.Lock()
	again := min(n, len(b.again))
	k := again + min(n-again, len(b.ready))
	r := &reader{n: n, full: full, ids: slices.Concat(b.again[:again], b.ready[:k-again]), done: make(chan struct{})}
	b.again, b.ready = b.again[again:], b.ready[k-again:]
	if k == n || k > 0 && !full {
		b.mu.Unlock()
		return r.ids
	}
	b.readers = append(b.readers, r)
	b.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers = slices.DeleteFunc(b.readers, func(other *reader) bool { return other == r })
	return r.ids
}

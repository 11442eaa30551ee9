package whatif

import (
	"math/bits"
	"time"
)

// A waits counts waits by their length, to 1.6 % and to a microsecond. The zero waits is empty.
type waits struct {
	counts []int64
	n      int64
	most   time.Duration
}

// steps is how many counts there are for each doubling of the wait.
const steps = 64

// add counts n calls that waited d.
func (h *waits) add(d time.Duration, n int64) {
	v := uint64(max(d.Microseconds(), 0))
	i := int(v)
	if v >= 2*steps {
		e := bits.Len64(v) - 7 // so that v>>e is steps to 2*steps-1
		i = e*steps + int(v>>e)
	}
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]int64, i+1-len(h.counts))...)
	}
	h.counts[i] += n
	h.n += n
	h.most = max(h.most, d)
}

// quantile returns the wait that a part of the calls does not exceed; 0 without calls.
func (h *waits) quantile(part float64) time.Duration {
	rank := int64(part * float64(h.n))
	for i, n := range h.counts {
		if rank -= n; rank < 0 {
			return min(middle(i), h.most)
		}
	}
	return h.most
}

// middle returns the middle of the waits that count i counts.
func middle(i int) time.Duration {
	if i < 2*steps {
		return time.Duration(i) * time.Microsecond
	}
	e := i/steps - 1
	v := (uint64(i-e*steps) << e) + 1<<e/2
	return time.Duration(v) * time.Microsecond
}

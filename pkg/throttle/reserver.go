package throttle

import (
	"time"
)

// A reserver keeps tokens of a limit for callers that do not stand in its queue. The limit's lock is held in every call.
type reserver interface {
	// kept returns how many units of the bucket w leaves to these callers. The result may differ the next time.
	kept(now int64, w *waiter) int64
	// keptUntil returns when the last tokens are no longer kept. That may be in the past.
	keptUntil() int64
	// passes reports whether w, which comes now, may take kept tokens before the callers in the queue.
	passes(now int64, w *waiter) bool
	// coming estimates how many tokens callers will want that wait for something else now. It counts as demand, so that the share is there
	// by then.
	coming() int
	// cut says that the limit has been cut, because the called service refuses calls.
	cut()
}

// kept returns how many units of the bucket w leaves there; see reserver. The lock is held.
func (t *rateLimiter) kept(now int64, w *waiter) int64 {
	if t.reserver == nil {
		return 0
	}
	return t.reserver.kept(now, w)
}

// keptFor returns how much longer anything can be kept. There is a reserver. The lock is held.
func (t *rateLimiter) keptFor(now int64) time.Duration {
	return time.Duration(max(t.reserver.keptUntil()-now, 1))
}

// isNext reports whether it is w's turn: nobody stands before it, or it arrives now and asks for kept tokens. So it overtakes no waiting
// caller, for none of them may have these. The lock is held.
func (t *rateLimiter) isNext(now int64, w *waiter) bool {
	return t.queue.IsNext(w) || t.reserver != nil && !w.Queued() && t.reserver.passes(now, w)
}

// weigh puts weights of tag queues of the queue in force.
func (t *rateLimiter) weigh(now int64, tagQueues []*tagQueue, weights []float64) {
	t.gate.Lock()
	defer t.gate.Unlock()
	for i, l := range tagQueues {
		t.queue.SetWeight(l, weights[i])
	}
	if !t.queue.Empty() {
		t.retime(now)
		t.serve(now)
	}
}

package throttle

// This file handles tokens collected for a waiter that asks for more than the bucket holds. In a fair queue others may come before it: they
// take from the collected tokens, and the rest stays for it.

// collectedFor returns how many collected units a draw of the first waiter can use: at least a token is left to draw. The lock is held.
func (t *rateLimiter) collectedFor(units int64) int64 {
	return max(min(t.queue.Collected, units-t.bucket.Units(1)), 0)
}

// dequeue removes w, which was granted its tokens, from the queue. used is how many collected units it took. The lock is held.
func (t *rateLimiter) dequeue(now int64, w *waiter, used int64) {
	rest := t.queue.Remove(w) - used
	switch {
	case rest <= 0:
	case !t.queue.Fair() || t.queue.Empty():
		t.uncollect(now, rest)
	default:
		t.queue.Collected = rest
	}
}

// leaveQueue removes w, which was granted nothing, from the queue. Collected tokens go back if they were for w. The lock is held.
func (t *rateLimiter) leaveQueue(now int64, w *waiter) {
	collected := t.queue.Remove(w)
	if t.queue.Fair() && collected > 0 && t.units(w) <= t.bucket.Law().Capacity && !t.queue.Empty() {
		t.queue.Collected = collected
		return
	}
	t.uncollect(now, collected)
}

package throttle

// heldBack says why a draw of one token would have to wait at now; empty: it would not. The lock is held.
func (t *Throttle) heldBack(now int64) Reason {
	least := t.bucket.Units(1)
	if !t.queue.Empty() {
		least = t.queue.First.Units // whatever holds that back holds back all behind it
	}
	if wait, ok := t.due(now, t.queue.Tokens+1); ok && wait == 0 && t.queue.Empty() {
		return ""
	}
	return t.reason(now, least)
}

// heldBack says why a call would have to wait; empty: it would not. The lock is held.
func (f *InFlight) heldBack() Reason {
	if f.queue.Empty() && f.inUse < f.allowed() && !f.gate.Paused(f.gate.Now()) {
		return ""
	}
	return f.reason()
}

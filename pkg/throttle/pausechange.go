package throttle

// pausesChanged applies the pauses in force at now. The lock is held.
func (t *rateLimiter) pausesChanged(now int64) {
	t.publish()
	t.bucket.Fence() // draws must not use earlier reads
	t.dismiss(now)
	t.retime(now)
	t.serve(now)
}

// pauseOver reports whether the gate is shut by a pause that is over. The lock is held.
func (t *rateLimiter) pauseOver() bool {
	return t.bucket.Current().Paused > 0 && !t.gate.Paused(t.gate.Now())
}

// pausesChanged applies the pauses in force at now. The lock is held.
func (f *InFlight) pausesChanged(now int64) {
	f.stopped.Store(f.gate.Pauses.Until)
	f.noteHeld()
	f.serve()
	f.rouse(now)
}

// rouse wakes the waiters, so that those with deadlines before the end of the pause fail, and sets a timer for it. The lock is held.
func (f *InFlight) rouse(now int64) {
	if f.waker != nil {
		f.waker.Stop()
		f.waker = nil
	}
	if !f.gate.Pauses.Holds(now) {
		return
	}
	for w := range f.queue.All() {
		w.Attempt.Wake()
	}
	if left, known := f.gate.PauseLeft(now); known {
		f.waker = f.gate.AfterFunc(left, f.onPauseOver)
	}
}

func (f *InFlight) onPauseOver() {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.noteHeld()
	f.serve()
	f.rouse(f.gate.Now())
}

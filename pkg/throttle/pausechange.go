package throttle

// pausesChanged goes on under the pauses that are in force at now. The lock is held.
func (t *Throttle) pausesChanged(now int64) {
	t.tags.pausesChanged()
	t.publish()
	t.bucket.Fence() // no draw goes by what it has read before
	t.sendElsewhere(now)
	t.retime(now)
	t.serve(now)
}

// pauseOver tells whether the gate is shut by a pause that is over. The lock is held.
func (t *Throttle) pauseOver() bool {
	return t.bucket.Gate().Paused > 0 && !t.gate.Paused(t.gate.Now())
}

// pausesChanged goes on under the pauses that are in force at now. The lock is held.
func (f *InFlight) pausesChanged(now int64) {
	f.stopped.Store(f.gate.Pauses.Until)
	f.noteHeld()
	f.serve()
	f.rouse(now)
}

// rouse sees to it that the first waiter looks again when the pause is over, and that those
// learn of it whose deadlines come before. The lock is held.
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

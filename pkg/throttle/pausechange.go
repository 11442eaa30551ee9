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

package throttle

// pausesChanged applies the pauses in force at now. The lock is held.
func (t *rateLimiter) pausesChanged(now int64) {
	t.publish()
	t.bucket.Fence() // draws must not use earlier reads
	t.dismiss(now)
	t.retime(now)
	t.serve(now)
}

package throttle

// Flow returns running totals for a ramp; see Holder.
func (t *Throttle) Flow() Flow {
	if t.limit.Max == 0 {
		return Flow{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	f := t.flowAt(now)
	f.Served = t.served(now)
	return f
}

// flowAt returns the totals without what was reported. t.mu is held.
func (t *Throttle) flowAt(now int64) Flow {
	drawn := t.bucket.Drawn() - t.queue.Collected
	return Flow{
		Used: t.bucket.Tokens(drawn - t.bucket.Credited()), Offered: t.bucket.Tokens(t.bucket.Law().By(now)),
		Granted: drawn >> t.bucket.Shift, Refused: t.refused.Load(),
		// Who waits for the end of a pause says nothing of whether the limit is used.
		Waiting: !t.queue.Empty() && !t.paused(now), Empty: t.bucket.Level(now) < t.bucket.Units(1) && !t.paused(now),
	}
}

// InUse is 0: tokens are used when they are granted; see Holder.
func (t *Throttle) InUse() int64 { return 0 }

// raised is by how much the limit in force differs from the configured one. t.mu is held.
func (t *Throttle) raised() float64 {
	if t.bucket.Law().Lease.Ceiling <= 0 {
		return 1
	}
	return t.bucket.Law().Lease.Ceiling / float64(t.limit.Max)
}

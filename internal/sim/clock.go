package sim

import "time"

// maxDrift bounds the rate error of a clock, in parts per million: 8.33 %, the maximum slew of chrony.
const maxDrift = 83_300

const million = 1_000_000

// A clock maps true time to a machine's clock. It uses integers only, so that a seed means the same everywhere.
type clock struct {
	since, base time.Duration // at true time since it read base
	rate        int64         // parts per million of true time
	stopped     bool
}

// read returns the clock's reading at a moment of true time.
func (c *clock) read(at time.Duration) time.Duration {
	if c.stopped {
		return c.base
	}
	return c.base + time.Duration(int64(at-c.since)*c.rate/million)
}

// when returns the first moment of true time at which the clock, left alone, reads at least reading.
func (c *clock) when(reading time.Duration) time.Duration {
	if reading <= c.base {
		return c.since
	}
	return c.since + time.Duration((int64(reading-c.base)*million+c.rate-1)/c.rate)
}

// set changes the rate from a moment on, and whether the clock stands still.
func (c *clock) set(at time.Duration, rate int64, stopped bool) {
	c.base, c.since = c.read(at), at
	c.rate, c.stopped = rate, stopped
}

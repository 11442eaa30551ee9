package sourcer

import "time"

const (
	// soonAgain is the part of a Read's time within which a platform returns that does not hold back batches that are not full.
	soonAgain = 4
	// quickReads is the number of such batches in a row that prove this.
	quickReads = 4
	// tryAfter is when a source whose batches were all full tests it with a smaller one.
	tryAfter = time.Minute
)

// A cadence records when the platform comes back for more.
//
// A MonoVertex hands a batch that is not full on only after readTimeout, and reads nothing meanwhile. There it pays to wait for the tokens
// of a full batch, if they come within the time of a Read. Where batches of any size pass at once, smaller ones more often are smoother.
// The former is assumed until the latter is known.
type cadence struct {
	quick   int  // batches in a row that were not full, after which the platform soon came back
	slow    bool // it once did not
	first   time.Time
	ended   time.Time // when the last batch was handed over; the zero Time: it was empty
	full    bool      // that batch was
	timeout time.Duration
	// The platform's absence with the last batch that was not full, and with the last that was; 0: not known.
	part, whole time.Duration
}

// began notes that a Read begins.
func (c *cadence) began(now time.Time) {
	if c.first.IsZero() {
		c.first = now
	}
	if c.ended.IsZero() {
		return
	}
	away := now.Sub(c.ended)
	c.ended = time.Time{}
	if c.full {
		c.whole = away
		return
	}
	c.part = away
	if away < c.timeout/soonAgain {
		c.quick = min(c.quick+1, quickReads)
	} else {
		c.quick, c.slow = 0, true
	}
}

// handed notes that a Read has brought n of the count messages that the platform asked for.
func (c *cadence) handed(now time.Time, n, count int, timeout time.Duration) {
	c.ended = time.Time{}
	if n > 0 {
		c.ended, c.full, c.timeout = now, n >= count, timeout
	}
}

// waits reports whether to wait for a full batch.
func (c *cadence) waits(now time.Time) bool {
	if c.quick >= quickReads {
		return false
	}
	return c.slow || now.Sub(c.first) < tryAfter
}

// away returns the expected absence of the platform; 0: not known, or none.
func (c *cadence) away() time.Duration {
	switch {
	case c.ended.IsZero():
		return 0
	case c.full:
		return c.whole
	}
	return c.part
}

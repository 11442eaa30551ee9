package sourcer

import "time"

const (
	// soonAgain is the part of a Read's time within which a platform comes back that does not
	// keep a batch which is not full.
	soonAgain = 4
	// quickReads is how many such batches in a row show that it does not.
	quickReads = 4
	// tryAfter is when a source whose batches were all full learns it by a smaller one.
	tryAfter = time.Minute
)

// A cadence is what was learned of when the platform comes back for more.
//
// A MonoVertex hands a batch that is not full on only after readTimeout, and reads
// nothing meanwhile. There it pays to wait for the tokens of a full batch, if they
// come within the time of a Read. Where batches of any size are through at once,
// smaller ones more often are the smoother way. It is taken for the former until the
// latter is known.
type cadence struct {
	quick   int  // batches in a row that were not full, after which the platform soon came back
	slow    bool // it once did not
	first   time.Time
	ended   time.Time // when the last batch that was not full was handed over; the zero Time: the last was full, or empty
	timeout time.Duration
}

// began notes that a Read begins.
func (c *cadence) began(now time.Time) {
	if c.first.IsZero() {
		c.first = now
	}
	if c.ended.IsZero() {
		return
	}
	if now.Sub(c.ended) < c.timeout/soonAgain {
		c.quick = min(c.quick+1, quickReads)
	} else {
		c.quick, c.slow = 0, true
	}
	c.ended = time.Time{}
}

// handed notes that a Read has brought n messages of count that the platform asked for.
func (c *cadence) handed(now time.Time, n, count int, timeout time.Duration) {
	c.ended = time.Time{}
	if n > 0 && n < count {
		c.ended, c.timeout = now, timeout
	}
}

// whole tells whether to wait for a full batch.
func (c *cadence) whole(now time.Time) bool {
	if c.quick >= quickReads {
		return false
	}
	return c.slow || now.Sub(c.first) < tryAfter
}

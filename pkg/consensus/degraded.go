package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// StoreLoss says what a processor does when its lease runs out because the store
// does not answer.
type StoreLoss int

const (
	// Degrade continues with the smaller of the last share and an even one, for at most an
	// hour. It requires that the processor asks the store on time: after a stop of 0.6 leases
	// it has no share until the store answers. The pool keeps its bound when the store is down
	// for all. While only k of n processors are cut off, the pool may use up to 1 + k/n of the
	// limit. Here n is the pool size that they saw last.
	Degrade StoreLoss = iota
	// Stop grants nothing until the store answers. The bound holds without exception.
	Stop
)

// degradeFor is the longest time that a share is used without the store.
const degradeFor = driver.MaxOutlasts * 4 / 5

// outlasts is Request.Outlasts.
func (c *core) outlasts() time.Duration {
	if c.cfg.OnStoreLoss == Degrade {
		return driver.MaxOutlasts
	}
	return 0
}

// grace is how long after its last request a processor may use a share without the store's
// consent. A store that has come back removes the row 1.5 leases after the last request that
// it received, and then gives the share to others. Its clock may jump by a quarter of a lease
// when it comes back, and by another quarter when it is set. That leaves one lease minus the
// gap between the last received request and the next one. A gap of a quarter leaves 0.75
// leases, which are 0.63 on a clock that is 8.33 % slow while the store's is 8.33 % fast.
func (c *core) grace() time.Duration {
	return max(0, min(c.lease*6/10, (c.lease-c.gap)*84/100))
}

// rest sets the end of a share without consent: it rests on the newest request.
func (c *core) rest() {
	c.until = min(c.degradedEnd, c.attempt+c.grace())
}

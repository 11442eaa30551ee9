package protocol

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// StoreLoss is consensus.StoreLoss.
type StoreLoss int

// The values of StoreLoss are those of package consensus.
const (
	Degrade StoreLoss = iota
	Stop
)

// degradeFor is the longest time that a share is used without the store.
const degradeFor = wire.MaxOutlasts * 4 / 5

// outlasts is Request.Outlasts.
func (c *core) outlasts() time.Duration {
	if c.Cfg.OnStoreLoss == Degrade {
		return wire.MaxOutlasts
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
	return max(0, min(c.Lease*6/10, (c.Lease-c.gap)*84/100))
}

// rest sets the end of a share without consent: it rests on the newest request.
func (c *core) rest() {
	c.until = min(c.degradedEnd, c.attempt+c.grace())
}

package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// StoreLoss says what a processor does when its lease runs out because the store
// does not answer.
type StoreLoss int

const (
	// Degrade goes on with the smaller of the last share and an even one, for at most an hour,
	// and for as long as the processor asks for the store on time: one that was stopped for
	// 0.6 leases has no share until the store answers. The pool keeps its bound when the store
	// is down for all. While k of n processors alone are cut off, the pool may use up to
	// 1 + k/n of the limit; n is the pool size that they saw last.
	Degrade StoreLoss = iota
	// Stop grants nothing until the store answers. The bound holds without exception.
	Stop
)

// degradeFor is the longest time that a share is used without the store.
const degradeFor = driver.MaxOutlasts * 4 / 5

// outlasts is Request.Outlasts.
func (p *Processor) outlasts() time.Duration {
	if p.cfg.OnStoreLoss == Degrade {
		return driver.MaxOutlasts
	}
	return 0
}

// grace is how long after its last request a processor may use a share without the store's
// consent. A store that has come back removes the row 1.5 leases after it last heard of the
// processor, and then gives the share to others. Its clock may jump by a quarter of a lease
// when it comes back, and by another when it is set. That leaves a lease without the gap
// between the last request that the store heard of and the next one. A gap of a quarter leaves
// 0.75 leases, which are 0.63 on a clock that is slow by 8.33 % while the store's is as fast.
func (p *Processor) grace() time.Duration {
	return max(0, min(p.lease*6/10, (p.lease-p.gap)*84/100))
}

// rest sets the end of a share without consent: it rests on the newest request.
func (p *Processor) rest() {
	p.until = min(p.degradedEnd, p.attempt+p.grace())
}

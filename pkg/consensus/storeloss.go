package consensus

import "github.com/numaproj-contrib/numathrottle/internal/protocol"

// StoreLoss says what a processor does when its lease runs out because the store
// does not answer.
type StoreLoss protocol.StoreLoss

const (
	// Degrade continues with the smaller of the last share and an even one, for at most an
	// hour. It requires that the processor asks the store on time: after a stop of 0.6 leases
	// it has no share until the store answers. The pool keeps its bound when the store is down
	// for all. While only k of n processors are cut off, the pool may use up to 1 + k/n of the
	// limit. Here n is the pool size that they saw last.
	Degrade = StoreLoss(protocol.Degrade)
	// Stop grants nothing until the store answers. The bound holds without exception.
	Stop = StoreLoss(protocol.Stop)
)

package throttle

import (
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// maxReplicas is the largest number of processors that a Static share divides
// a limit by.
const maxReplicas = 1_000_000

// Static is a Sharer without a pool: it leases a fixed part of the limit, without end. It keeps the limit only while no more processors run
// than it was made for: at a fixed scale, and with no overlap of old and new pods. One Static may serve any number of Throttles; each of
// them gets the share. Use Replicas to make one.
type Static struct{ share int64 }

var _ Sharer = (*Static)(nil)

// Replicas returns the share of one of n processors that divide a limit evenly:
// wholeShare / n, rounded down. n is 1 to 1,000,000; the error says so otherwise.
func Replicas(n int) (*Static, error) {
	if n < 1 || n > maxReplicas {
		return nil, fmt.Errorf("throttle: replicas is %d, allowed: 1 to %d", n, maxReplicas)
	}
	return &Static{share: wholeShare / int64(n)}, nil
}

// Attach leases the share to h, without end.
func (s *Static) Attach(h sharing.Holder) { h.Lease(limit.Lease{Share: s.share}) }

// Poke does nothing: the share does not follow the demand.
func (s *Static) Poke() {}

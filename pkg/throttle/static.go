package throttle

import (
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// maxReplicas is the largest number of processors that a static share divides
// a limit by.
const maxReplicas = 1_000_000

// A static is a Sharer without a pool: it leases a fixed part of the limit, without end. It keeps the limit only while no more processors run
// than it was made for: at a fixed scale, and with no overlap of old and new pods. One may serve any number of Throttles; each of
// them gets the share.
type static struct{ share int64 }

var _ Sharer = (*static)(nil)

// Replicas returns a [Sharer] without a pool, for one of n processors that divide a limit evenly: it leases 1/n of the limit, rounded down to
// 1e-9, without end. It keeps the limit only while no more processors run than that: at a fixed scale, and with no overlap of old and new
// pods. It may serve any number of limiters; each of them gets the share. n is 1 to 1,000,000; the error says so otherwise.
func Replicas(n int) (Sharer, error) {
	if n < 1 || n > maxReplicas {
		return nil, fmt.Errorf("throttle: replicas is %d, allowed: 1 to %d", n, maxReplicas)
	}
	return &static{share: wholeShare / int64(n)}, nil
}

// Attach leases the share to h, without end.
func (s *static) Attach(h sharing.Holder) { h.Lease(limit.Lease{Share: s.share}) }

// Poke does nothing: the share does not follow the demand.
func (s *static) Poke() {}

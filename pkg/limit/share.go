package limit

import (
	"time"
)

// WholeShare is the share that stands for the whole limit. Shares are integers of 1e-9, so that every store adds them up exactly. Rates
// that are parts of a limit use the same unit.
const WholeShare = 1_000_000_000

// A Lease is a share of the limit, valid until a given time.
type Lease struct {
	// Share is the usable fraction of the configured limit in 1e-9: 0 to MaxShare, and at most WholeShare unless an override has raised the
	// limit.
	Share int64
	// Even is the share that this processor soon gets if it lacks tokens, however small its share is now for lack of demand. It is at most
	// this processor's equal part of the pool, in the unit of Share. 0 means unknown.
	Even int64
	// Soon is set where a pool divides the limit by quotas: how long it takes until this processor has what its tags should get, which may be
	// all of the limit, however small Share is now. 0 means unknown.
	Soon time.Duration
	// Ceiling is the most that the whole pool may use now, in tokens per Per of the configured limit. It is below Max while the limit ramps
	// up or an override lowers it. 0 means Max. Share already includes it.
	Ceiling float64
	// Until is the local monotonic time at which the share becomes void unless a later lease arrives. Nothing is granted at or after it.
	// The zero Time means that the lease does not end.
	Until time.Time
	// Reason says why Share is 0, or the reason to give once the lease has expired. It defaults to ReasonNoShare for a Share of 0, and to
	// ReasonStoreLost for an expired lease.
	Reason Reason
	// Frozen is the local monotonic time until which the share cannot grow, because the store has lost some state. The zero Time means that
	// it can grow.
	Frozen time.Time
	// Degraded marks a share that is used without the store's consent, under the policy for a lost store.
	Degraded bool
	// Adapted says that Ceiling was lowered because the called service refuses calls; see Limit.Adaptive. Cuts counts how often: once it
	// has changed, the refusals that the holder knows of have been dealt with. Settling says that the last cut is so recent that other
	// processors may not know it yet. Then refusals of calls granted now say nothing about the new ceiling.
	Adapted  bool
	Cuts     uint64
	Settling bool
	// Issuing says that the pool has no shares now: tokens are issued one by one, because the limit is strict or too low to be divided.
	// Share is 0 then. A sharer that returns such leases is an Issuer.
	Issuing bool
}

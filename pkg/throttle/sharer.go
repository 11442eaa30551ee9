package throttle

import "github.com/numaproj-contrib/numathrottle/internal/sharing"

// The edge between a limiter and its pool stands in internal/sharing. These are its names for those who write
// a Sharer of their own.
type (
	// A Sharer tells a Throttle, or an InFlight, which share of the limit it may use, and learns from it what it
	// would use. *consensus.Member is one, which can do more: reserve slots for a strict limit, and pause the whole pool.
	// One Sharer serves one limiter.
	Sharer = sharing.Sharer

	// A Holder is what a Sharer sees of a Throttle or an InFlight.
	Holder = sharing.Holder

	// Terms are what a limiter tells its Sharer of itself.
	Terms = sharing.Terms
)

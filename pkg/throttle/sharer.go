package throttle

import "github.com/numaproj-contrib/numathrottle/internal/sharing"

// A Sharer tells a Throttle, or an [InFlight], which share of the limit it may use, and learns how much it would use. *consensus.Member is one,
// and can do more: reserve slots for a strict limit, and pause the whole pool. One Sharer serves one limiter. Its methods have internal
// types: other packages cannot implement it.
type Sharer = sharing.Sharer

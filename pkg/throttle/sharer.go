package throttle

import "github.com/numaproj-contrib/numathrottle/internal/sharing"

// Package internal/sharing defines the edge between a limiter and its pool. These are its names for users who write a Sharer.
type (
	// A Sharer tells a Throttle, or an InFlight, which share of the limit it may use, and learns how much it would use. *consensus.Member
	// is one, and can do more: reserve slots for a strict limit, and pause the whole pool. One Sharer serves one limiter.
	Sharer = sharing.Sharer

	// A Holder is a Throttle or an InFlight as a Sharer sees it.
	Holder = sharing.Holder

	// Terms describe a limiter to its Sharer.
	Terms = sharing.Terms
)

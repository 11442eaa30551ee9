// Package limit holds the types that a limiter and its pool share: quotas, reasons, pauses, leases, permit slots and usage.
//
// A Quota says what one tag (a tenant, a model, a key) may use of a limit, and Quotas are those of the whole limit. A Reason says why a call
// waits or is refused. Paused describes a pause. These are plain values: nothing here counts, waits or talks to a store. Package throttle
// has the names that users need most as aliases.
//
// The other types are the edge between a limiter and its Sharer: a Lease is a share of the limit that is good until a time, a Report says
// what a limiter used and could use, TagReport and TagGrant are the same for one tag.
package limit

import "math"

// Never is a time, in nanoseconds, that no clock reaches.
const Never = math.MaxInt64

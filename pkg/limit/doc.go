// Package limit holds the types that a limiter and its pool share: quotas, reasons, pauses, leases, permit slots and usage.
//
// A Quota says how much of a limit one tag (a tenant, a model, a key) may use. Quotas holds the quotas of the whole limit. A Reason says
// why a call waits or is refused. Paused describes a pause. These are plain values: nothing here counts, waits or talks to a store. Package
// throttle has aliases for the names that users need most.
//
// The other types connect a limiter with its Sharer. A Lease is a share of the limit, valid until a given time. A Report says how much a
// limiter used and could use. TagReport and TagGrant are the same for one tag.
package limit

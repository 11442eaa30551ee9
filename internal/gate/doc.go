// Package gate is what every limiter has in common, whatever it counts: a lock, an origin of
// its times, pauses, statistics of waits, its end, and the way to the pool for pauses. A
// limiter of rates adds a bucket to it, one of calls in flight adds slots.
package gate

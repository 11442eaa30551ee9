// Package gate is the common part of all limiters: a lock, an origin of times, pauses, statistics of waits, closing, and the way to the
// pool for pauses. A limiter of rates adds a bucket to it, a limiter of calls in flight adds slots.
package gate

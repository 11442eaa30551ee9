// Package bucket is the token bucket of one limiter.
//
// Three running totals describe it, so that a draw is one clock reading and one compare-and-swap:
//
//	level = earned(now) - forfeited - granted
//
// The term earned follows from the time alone and never goes back; granted counts every token ever handed out. The term forfeited counts
// the rest: tokens that overflowed, tokens cut off by a smaller share, and debt, less refunds.
//
// A Segment is the law by which a bucket earns between two changes of its share; hard.go holds the rules of hard limits, and their proof.
// Deposits are tokens that the store issues one by one. A Demand computes the share that a limiter asks for. The package has no clock, no
// lock, no goroutine and no I/O: the time comes in as a value.
package bucket

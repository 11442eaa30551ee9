// Package ceiling is the one law of the limit in force: how many tokens may be used at a
// moment, by a whole pool or by a single process. It is pure: no clock, I/O or goroutine.
//
// # The law
//
//	limit    the override if there is one, else the lowest limit that a live
//	         processor is configured with (Law.Limit)
//	ramp     where the ramp stands that leads from Min to that limit (package ramp)
//	backoff  what refusals of the called service leave of that limit (package backoff)
//
//	ceiling  = min(limit, ramp, backoff)
//
// An override is at most MaxRaise times the configured limit, and never raises a hard
// one. A ramp and a backoff count only for processors whose own limit asks for them.
//
// With a hard limit a bucket may be too small for one token. So neither the ramp nor the
// backoff goes below what leaves each processor one token (Law.tokenEach).
//
// # Whose state it is
//
// The ramp and the backoff move with time, and each has a state. A Shared state belongs
// to a pool: a document carries it, and it knows in which epoch of the pool it was made.
// The rules for that stand here once for both: how a state begins with a new epoch, goes
// on by another clock, and when its next step is due.
//
// A single process drives the same Law. Its states are then its own, and it makes a step
// whenever it looks. It also goes by the backoff's law at once, before the pool can: it
// uses a part of its share (Config.Part).
package ceiling

// Package ceiling is the law of the limit in force: how many tokens may be used at a moment, by a whole pool or by a single process. It is
// pure: no clock, I/O or goroutine.
//
// # The law
//
//	limit    the override if there is one, else the lowest configured limit of
//	         all live processors, or the lower one that the called service
//	         announces, if that is to be followed (Law.Limit, Agree)
//	ramp     the current value of the ramp from Min to that limit (package ramp)
//	backoff  what refusals by the called service leave of that limit (package backoff)
//
//	ceiling  = min(limit, ramp, backoff)
//
// An override is at most MaxRaise times the configured limit, and never raises a hard one. A ramp and a backoff apply only to processors
// whose own limit configures them.
//
// A bucket of a hard limit may be too small for one token. So neither the ramp nor the backoff goes below the ceiling that leaves each
// processor one token (Law.tokenEach).
//
// # State
//
// The ramp and the backoff move with time, and each has a state. A Shared state belongs to a pool: a document carries it, with the pool's
// epoch in which it was made. The rules for that are here, once for both: how a state begins with a new epoch, how it continues by another
// clock, and when its next step is due.
//
// A single process uses the same Law with its own states, and takes a step at each look. It also applies the backoff's law at once, before
// the pool can, by using only a part of its share (Config.Part).
package ceiling

// Package virtual is a world with a clock of its own: a loop over future events, without goroutines that run at once and without a wall
// clock. The shipped limiters run in it through gate.Scheduler. So an hour of calls takes as long as its draws do, and comes out the same
// each time.
package virtual

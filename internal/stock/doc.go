// Package stock is what one tag of a limit has in hand: the tokens that its quota lets it draw at one processor.
//
// With a pool these are lots that the pool has granted, each good for a while. Without one they come from a till of the process's
// own, by the rule that the pool's tills have: a number says up to when everything is paid for, each token takes it
// Per / Total further, and it is never further back than what Burst is worth. Budgets are amounts for a calendar window.
//
// It is pure: no lock, no clock, no I/O. Times are nanoseconds since the limiter was made.
package stock

// Package tagbucket holds one tag's tokens in hand: those that its quota lets it draw at one processor.
//
// With a pool these are batches that the pool has granted, each valid for a while. Without one they come from a tag bucket of the process's own, by
// the rule of the pool's tag buckets. A number says up to when everything is paid for. Each token takes it Per / Total further, and it is never
// further back than the worth of Burst. Budgets are amounts for a calendar window.
//
// It is pure: no lock, no clock, no I/O. Times are nanoseconds since the limiter was made.
package tagbucket

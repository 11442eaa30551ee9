// Package brownout simulates processors that share a limit, and a service whose capacity is below the limit for a while. It compares three
// ways to handle refusals. The first is fixed shares, whose refused calls are retried without coordination. The second is the law of
// package internal/ceiling/backoff in each processor for itself. The third is the law for the whole pool, to which each processor adds its
// own until the pool's next cut is known. Time is virtual, and a run depends only on its seed.
//
// The model is small: even shares, a store that keeps one document and the notes, and processors that are always busy. The law and the
// counting for it are real.
package brownout

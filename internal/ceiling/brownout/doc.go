// Package brownout simulates processors that share a limit, and a service that can do less than
// the limit allows for a while. It compares three ways to deal with the refusals: fixed
// shares, whose refused calls are tried again without asking anybody; the law of package
// internal/ceiling/backoff in each processor for itself; and the law for the whole pool, to which each
// processor adds its own until the pool's next cut is known. Time is virtual, and a run depends on
// its seed alone.
//
// The model is a small one: even shares, a store that keeps one document and the notes, and
// processors that always have something to do. The law and what is counted for it are the real ones.
package brownout

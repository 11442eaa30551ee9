// Package allocs measures, for tests, what a call allocates.
package allocs

import "runtime"

// Bytes returns the bytes that one of n calls of f allocates, on average; a first call, which may allocate what the later
// ones use again, does not count. Everything in the process counts, so it is not for parallel tests. It runs on one
// processor: which goroutine is first does not depend on the machine then.
func Bytes(n int, f func()) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	f()
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

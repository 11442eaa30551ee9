package testkit

import "runtime"

// Allocated returns the average number of bytes that one of n calls of f allocates. A first call does not count, because later calls may reuse
// its allocations. Everything in the process counts, so it is not for parallel tests. It runs on one processor, so that the order of
// goroutines does not depend on the machine.
func Allocated(n int, f func()) float64 {
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

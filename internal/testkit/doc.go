// Package testkit has what tests of many packages need: less work under the race detector and with -short, the allocations of a call, and a log
// to read while others write. The race detector makes everything ten times as slow. With it tests repeat less, and skip parts that only
// measure, count, or test the judge of other tests.
//
// `make norace` runs the tests that ask for less work under the race detector, directly or through a helper, in full and without it:
// scripts/asks-race.sh finds them.
//
// In a bubble of testing/synctest the race detector crashes (a SIGSEGV, or "CHECK failed") when two goroutines at once receive from timers
// that had already expired, such as time.NewTimer(0) or time.After(0): golang/go#78156, in Go 1.26. So nothing here waits on a timer of
// zero.
package testkit

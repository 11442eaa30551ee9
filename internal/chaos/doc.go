// Package chaos breaks real stores under real processes, and judges what the processes draw meanwhile. It holds tests
// only, under the build tag numathrottle_faults:
//
//	go test -tags numathrottle_faults ./internal/chaos
//
// A pool is some processes, each of them this test binary started again, that share one limit and call a counting
// service as often as they are let. The service notes for each call when it was asked for, when it was granted and when
// it arrived, all on this machine's monotonic clock, which every process reads by itself. Nothing of what the processes
// think of themselves takes part in the judgement.
//
// A lane is a pool and its store. Lanes run side by side; each of them goes through its faults one after the other, and
// after each fault waits until the limit is used again. The judge looks at this:
//
//   - Bound: in every window of 0.1, 1 and 10 s, by the time of grant, at most max x window + burst + processors calls
//     were granted.
//   - Under a strict limit, distances: of any two calls, by the time of grant, the later one is at most a validity nearer
//     than their slots, and nothing is granted while the store is away, once what may have been reserved is over.
//   - Under a hard limit: at most max calls in any second, whatever the burst; the stamps may be 30 ms late. In a ramp:
//     no process goes by more than a ramp that began with the pool, or by less than one that stood still for each fault and
//     three seconds more. Of calls in flight: no more than there are slots at any time.
//   - Recovery: the time from the moment at which the store can be reached again to the first second of two in a row in
//     which at least 95 % of the limit is used; 80 % of a strict one, of which a second holds few calls, 40 % of what calls
//     in flight could be at best, and 40 % of a hard limit, whose processes rest now and then. An override also has to be in
//     force on every processor by then, as they tell with each call.
//
// Order and timing of the faults are drawn from a seed. Variables:
//
//	NUMATHROTTLE_FAULT_ROUNDS  how often every lane goes through its faults; 1 when unset
//	NUMATHROTTLE_FAULT_SEED    the seed; 1 when unset
package chaos

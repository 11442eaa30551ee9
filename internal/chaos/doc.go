// Package chaos breaks real stores under real processes, and judges the draws of the processes in the meantime. It holds tests only, under
// the build tag numathrottle_faults:
//
//	go test -tags numathrottle_faults ./internal/chaos
//
// A pool is some processes that share one limit and call a counting service as often as they may. Each process is this test binary, started
// again. For each call the service records when it was requested, when it was granted and when it arrived, all on this machine's monotonic
// clock, which every process reads by itself. The judgement uses no statements of the processes about themselves.
//
// A lane is a pool and its store. Lanes run in parallel. Each goes through its faults one after the other, and waits after each fault until
// the limit is used again. The judge checks:
//
//   - Bound: in every window of 0.1, 1 and 10 s, by the time of grant, at most max x window + burst + processors calls were
//     granted.
//   - Under a strict limit, distances: of any two calls, by the time of grant, the later one is at most a validity nearer
//     than their slots. Nothing is granted while the store is away, once all possible reservations are over.
//   - Under a hard limit: at most max calls in any second, whatever the burst; the stamps may be 30 ms late. In a ramp: no
//     process exceeds a ramp that began with the pool, or stays below one that stood still for each fault and three seconds
//     more. Calls in flight never exceed the slots.
//   - Recovery: the time from the store's return to the first of two consecutive seconds in which at least 95 % of the limit
//     is used. For a strict limit, which allows few calls a second, it is 80 %. For calls in flight it is 40 % of the
//     possible maximum, and for a hard limit, whose processes rest now and then, 40 %. An override must also be in force on
//     every processor by then, as each call reports.
//
// Order and timing of the faults are drawn from a seed. Variables:
//
//	NUMATHROTTLE_FAULT_ROUNDS  how often every lane goes through its faults; 1 when unset
//	NUMATHROTTLE_FAULT_SEED    the seed; 1 when unset
package chaos

// Package shell tests the goroutines around the pure state machines. It checks that consensus.Member and throttle.Throttle, joined as by
// numathrottle.Open, behave as the state machines say, under faults and with many concurrent callers.
//
// Both are the real ones. A pool of them runs in a testing/synctest bubble, whose clock is the true time for all. Its store makes each step
// by the real consensus.Record under a lock (or is a memstore). The network and the server between them are simulated, and inject the
// faults.
//
// # A run
//
// A run is ten virtual minutes of twenty processors, with callers that draw in every possible way. The seed draws the limit, leases,
// network, demand, and which faults occur, a random half of them. A tenth of the runs continues without the store (Degrade). In half of
// these all processors lose it alike, as if its server were down. In the others only some are cut off, and the bound is neither promised
// nor checked. Then the faults end, all are busy, and the pool has to recover.
//
// # What is checked
//
// Only behaviour visible from outside, on the bubble's clock:
//
//   - Tokens granted in any window of 0.1, 1, 10 and 60 s: at most max/per x T + burst + P x m. P counts the processors
//     that granted in it, and m is the largest draw of the run. Returned tokens are subtracted from their draw, and such
//     runs may have one max more.
//
//     Limits too low to be divided are issued one by one: then the rate is that of the store's clock, and a validity's
//     worth of tokens may be late.
//
//   - The shares in force of all Throttles, at random moments at which everything else stands still, add up to at most
//     one, and match those of their Members.
//
//   - Every call ends: with tokens or with one of the documented errors, at the latest at its deadline, and at once if the
//     deadline cannot be met. Close fails all waiting callers in the same instant; nothing is granted after it.
//
//   - Every granted permit is counted once, and no more is credited than was returned.
//
//   - Within two removal times and three sync intervals after the last fault every share is within 5 % of even, and then
//     at least 0.99 of the limit is granted; or tokens are issued, and at least 0.9 of the slots are used.
//
//   - In the end all have left, and no goroutine remains.
//
// # Calls in flight
//
// Other runs, of ten processors for five minutes, have a second pool with a limit on calls in flight, whose store breaks when the first
// does. Most calls draw on both limits (throttle.All), some on one. They have further checks:
//
//   - At each grant the calls in flight are at most the slots. A call counts from its grant to its end while its process
//     runs, or has left, and the store has received it at least once in a removal time since the call began. Nothing is
//     promised of other calls, nor of a replaced process. The calls of a crashed process are over.
//
//   - In the second phase all slots may be used, and 0.9 of them are (0.6 with fewer slots than processors).
//
//   - Once all calls have ended, however they did, no slot is in use and no caller waits; one processor can have all
//     slots, and draw from both limits; and every grant was counted once.
//
// # Replaying
//
// A seed fixes the plan and the timetable of faults. It does not fix which of two goroutines runs first at one instant, nor the random
// numbers that a Member draws itself: reproducing a failure may take a few tries.
//
//	go test -race ./internal/shell                                             five runs, a hundred without -race
//	NUMATHROTTLE_SHELL_RUNS=5000 go test -race -timeout 0 ./internal/shell     more
//	NUMATHROTTLE_SHELL_SEED=17 go test -race -run TestShell -count 5 -v ./internal/shell
package shell

// Package shell tests the goroutines around the pure state machines: that
// consensus.Member and throttle.Throttle, joined as numathrottle.Open joins them, do
// what the state machines say, under faults and with many callers at once.
//
// Nothing of them is replaced. A pool of them runs in a testing/synctest bubble, whose
// clock is the true time for all, over a store that takes each step by the real
// consensus.Record under a lock (or is a memstore). What lies between, the network
// and the server, is played here and injects the faults.
//
// # A run
//
// Ten virtual minutes of twenty processors, each with callers that draw in every way
// there is. The seed draws limit, leases, network, demand, and which faults occur, a
// random half of them. A tenth of the runs goes on without the store (Degrade). In half
// of these it is lost to all alike, as if its server were away; some are cut off in the others, where the bound is not
// promised, and not judged. Then the faults end, all are busy, and
// the pool has to recover.
//
// # What is judged
//
// Only what can be seen from outside, on the bubble's clock:
//
//   - Tokens granted in any window of 0.1, 1, 10 and 60 s: at most
//     max/per x T + burst + P x m, with P the processors that granted in it and m the
//     largest draw of the run. What is given back is taken off the draw that it was
//     part of, and such runs may have one max more.
//
//     Limits too low to be divided are issued one by one: then the rate is that of the
//     store's clock, and a validity's worth of tokens may be late.
//
//   - The shares in force of all Throttles, at random moments at which everything
//     else stands still, add up to at most one, and are those of their Members.
//
//   - Every call ends: with tokens or with one of the documented errors, not later
//     than its deadline, and at once when the deadline cannot be met. Close fails all
//     who wait, in the same instant; nothing is granted after it.
//
//   - Every permit granted is counted once, and no more is credited than was given back.
//
//   - Within two removal times and three sync intervals after the last fault every
//     share is within 5 % of even, and then at least 0.99 of the limit is granted; or
//     tokens are issued, and at least 0.9 of the slots are used.
//
//   - In the end all have left, and no goroutine remains.
//
// # Calls in flight
//
// Other runs, of ten processors for five minutes, have a second pool with a limit on calls in flight, whose store
// breaks when the first does. Most calls draw on both limits (throttle.All), some on one. What is judged beside the above:
//
//   - At each grant the calls in flight are at most the slots. A call counts from its grant to its end while its
//     process runs, or has left, and the store has heard of it at least once in a removal time since the call began; nothing is
//     promised of others, nor of a process that another one has replaced. The calls of one that crashes are over.
//
//   - In the second phase all slots may be used, and 0.9 of them are (0.6 where there are fewer than processors).
//
//   - Once all calls have ended, whatever became of them, no slot is in use and nobody waits; one processor can
//     have all slots, and draw from both limits; and all that was granted was counted once.
//
// # Replaying
//
// A seed fixes the plan and the timetable of faults. It does not fix which of two
// goroutines runs first at one instant, nor the random numbers that a Member draws
// itself: a failure may need a few tries to show again.
//
//	go test -race ./internal/shell                                             a dozen runs, a hundred without -race
//	NUMATHROTTLE_SHELL_RUNS=5000 go test -race -timeout 0 ./internal/shell     more
//	NUMATHROTTLE_SHELL_SEED=17 go test -race -run TestShell -count 5 -v ./internal/shell
package shell

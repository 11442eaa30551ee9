// Package sim runs a whole pool with its processors, network, clocks and store: a deterministic event loop over the shipped state machines
// driver.Record and protocol.Processor. It injects faults and checks on true time that the shares in use never exceed the whole. Only the
// environment is modelled, not the protocol. There are no goroutines and no wall clock; a seed determines a run, to the event.
//
// # A run
//
// The first phase takes half an hour of virtual time by default. The seed determines everything in it: the number of processors, leases,
// clock rates up to 8.33 % off, delays, loss, demand, and which faults occur and how often. Each seed enables a random half of the faults,
// because faults that always occur together hide each other. In the second phase the faults are off and the pool has to recover.
//
// # What is checked
//
// Some runs have extras, drawn from a stream of their own:
//
//   - Limits that change (F15). An operator overrides the limit through protocol.SaveOverride, higher and lower, and
//     clears the override; rollouts restart processors one after the other with another limit. Under a hard limit, which
//     is the same for all processors of a pool, there are overrides only, and some are above it and must not count.
//
//   - Ramps, in every mode.
//
//   - Permits: strict limits, and limits so low that the pool changes between shares and permits as it grows, shrinks
//     and receives another limit. Requests for slots are lost, late and doubled like all messages; dying processes
//     give some back.
//
//   - LastStates. A dying process leaves one in a place that the next process under its ID mostly finds and then names the
//     death. Twins may share a place, and a cloned machine has a copy of it.
//
//   - Pauses, made by processors, proposed with their syncs, and ended by an operator. News of them reaches some of
//     the others, sooner or later. There are none where the store's clock is set by hours: a pool that sleeps takes
//     that for time.
//
//   - Tags with totals, and one with a budget for an hour that ends in the run, in the seeds from FirstTagged on. The
//     demand of tags affects shares, so these are separate runs, of ten minutes. Callers use tokens at once, at the last
//     moment, or all together. A tag's use in 1 s, 10 s and a minute is at most total x (W + V + h), plus the burst and
//     the largest reservation, with clocks that diverge, plus the effect of clones and of small steps of the store's
//     clock. The use in a budget window is at most the budget, plus debts, plus copies that clones hold, plus spending
//     that the store lost and nobody reported again.
//
//   - Calls in flight with quotas of tags, in the seeds from FirstSlotted on, through the shipped throttle.InFlight: each caller is a coroutine.
//     Totals change, and callers give up. No more calls are in flight than slots, and none of a tag than its total, but for calls of processes
//     that did not reach the store for a removal time. In a healthy pool a tag below its reservation comes before tags without one where it
//     waits, no slot is free for more than ten sync intervals while a caller waits who may have it, and equal tags have equal slot-time.
//
// At every event:
//
//   - The shares that all processes may use at that moment, including replaced, stalled and cloned ones, add up to at
//     most driver.Whole.
//
//   - No process may use more than its claim on record, unless the store has lost the record since it granted the share.
//
//   - The claims on record rise above the whole only by facts that the store had lost, never by an answer, and the record
//     is well formed.
//
//   - The calls in every window are at most what the limits allow: at each instant the largest limit in force in the
//     removal time before it, by the record or by an override that its holder has not restored yet. With a hard limit no
//     second has more than the largest of those, to the token.
//
//   - The ceiling that a processor applies is one of those, or between it and the ramp's Min.
//
//   - Any two granted permits are at least the spacing apart that was in force for the later one, without tolerance, on
//     the store's clock. None lies further ahead than requested. The permits of a store that lost its state come after
//     all lost ones.
//
//   - The shares in use and the issuer's claim, which determined the spacing of the valid permits, add up to at most the
//     whole.
//
//   - The version of an override on record does not fall unless the store loses its state.
//
//   - A process draws nothing between the request that is its receipt and the end of the pause. The same holds for the
//     process that paused, whatever happens to the store. From a lease after the pause was recorded it holds for all,
//     unless the store has lost its state since. A pause by a process that does not know yet that somebody resumed is
//     not checked: it acts on outdated state.
//
// In the second phase, the pool must become healthy in time, by the slowest clock: two removal times of the longest lease plus three gaps
// of a quarter of a lease between syncs. It is healthy if it passes ten checks in a row. The shares must add up to at least 0.99, each be
// within 5 % of the fair one, and all processors hold one; or the pool must issue permits. All processors are busy in that phase.
// Afterwards every processor must apply the newest override that any of them had loaded or the store has. The ramp must be at its end,
// permits flow, and nobody be paused.
//
// The checks of the bound hold for consensus.Stop. A tenth of the seeds uses consensus.Degrade, which gives up the bound while only some
// processors are cut off. Three checks apply to them. The shares with the store's consent add up to at most one, except for a removal time
// after the store lost its state: then it counts reported use as granted. A processor continues without the store with at most its last
// share, and at most an even part. The pool recovers. In half of the runs without extras, all processors lose the store alike, and then
// keep it for long enough to ask it. There the sum of all shares, the claims and the windows are checked, too.
//
// # What is excused
//
// Three things do not count as violations:
//
//   - A clone, in the first lease after the cloning: the larger of its share and the original's counts then, afterwards
//     both. No protocol can help in that time, because neither has contacted the store yet. If the store loses its record
//     in that time, it has lost what one of them reported, and the lease counts from then; their shares count for no more
//     than the lost claim.
//
//   - A suspended machine, from its waking to the next check of its watchdog, at most 100 ms later: its own clock does
//     not show that time has passed. A process that is merely stopped has no such exemption.
//
//   - For permits, in true time: the error of the processors' clocks while they wait for a slot, and small steps of the
//     store's clock. On the store's clock there is no exemption.
//
// A store that is rolled back without a change of identity answers nobody until a processor comes that has seen a newer revision, because
// nobody else can notice. After 30 s without one it gets a new identity.
//
// # Running it
//
//	go test ./internal/sim                                                    a few hundred seeds
//	NUMATHROTTLE_SIM_SEEDS=10000 go test -timeout 0 ./internal/sim            more
//	NUMATHROTTLE_SIM_SEED=17 go test -run TestReplay -v ./internal/sim        one, with a readable trace; with
//	                                                                          NUMATHROTTLE_SIM_PROCESSORS=12 of make sim
//	go run ./internal/mutants/run -run Mutant -v ./internal/sim               every rule left out once
package sim

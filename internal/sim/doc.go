// Package sim runs a whole pool, processors, network, clocks and store, as a
// deterministic event loop over the shipped state machines (driver.Record on
// the store's side, consensus.Processor on the processors'), throws faults at it
// and checks on true time that the shares in use never add up to more than the
// whole. Nothing of the protocol is modelled: only what surrounds it is. There
// are no goroutines and no wall clock; one seed gives one run, to the event.
//
// # A run
//
// The first phase, by default half an hour of virtual time, draws everything from the
// seed: how many processors there are, leases, clock rates up to 8.33 % off,
// delays, loss, demand, which faults occur and how often. Each seed enables a
// random half of the faults, because faults that always occur together hide each
// other. In the second phase the faults are off and the pool has to recover.
//
// # What is checked
//
// What part of the runs has, drawn from a stream of its own:
//
//   - Limits that change (F15). An operator overrides the limit through
//     consensus.SaveOverride, higher and lower, and ends that; rollouts restart
//     processors one after the other with another limit. Under a hard limit, which all processors of a
//     pool have in common, there are overrides only, and some are above it, which must not count.
//
//   - Ramps, in every mode.
//
//   - Permits: strict limits, and limits so low that the pool changes between shares and
//     permits as it grows, shrinks and is told of another limit. Requests for slots are
//     lost, late and doubled as all messages; who dies gives some back.
//
//   - Wills. Who dies leaves one in a place that the next process under its ID mostly finds, which then names the
//     death. Twins share a place or do not, and a cloned machine has a copy of it.
//
//   - Pauses, made by processors and proposed with their syncs, and ended by an operator. News of them
//     reach some of the others, sooner or later. None where the store's clock is set by hours: for a
//     pool that sleeps that is time.
//
//   - Tags with totals, and one with a budget for an hour that ends in the run, in the seeds from FirstTagged on: what tags ask for
//     decides about shares, so these are runs of their own, of ten minutes. Callers use tokens at once, at the last moment, or all
//     together. What is used of a tag in 1 s, 10 s and a minute is at most total x (W + V + h), the burst and the largest
//     reservation, with clocks that run apart, and what clones and small steps of the store's clock add; what is used in a
//     budget window at most the budget, with what is owed, what clones have twice, and what a store forgot that nobody told it.
//
// At every event:
//
//   - The shares that all processes may use at that moment, also the replaced,
//     stalled and cloned ones, add up to at most driver.Whole.
//
//   - No process may use more than its row has as its claim on the record, unless
//     the store has lost the record since the share was granted.
//
//   - The claims on record rise above the whole only by facts that the store had
//     lost, never by an answer, and the record is well formed.
//
//   - The calls in every window are at most what the limits allow: at each instant the
//     largest one in force in the removal time before it, by the record or by an override that
//     its holder has not given back yet. With a hard limit no second has more than the largest
//     of those, to the token.
//
//   - The ceiling that a processor goes by is one of those, or between it and the ramp's Min.
//
//   - Any two permits that processors were told of are the spacing apart on the store's clock that was in
//     force for the later one, exactly, and none lies further ahead than was asked for. Those
//     of a store that has forgotten something come after all that it has forgotten.
//
//   - The shares in use and the issuer's claim, by which the permits that are good
//     were spaced, add up to the whole at most.
//
//   - The version of an override on record does not fall while the store forgets nothing.
//
//   - A process draws nothing between the request that is its receipt and the end of the pause, nor does
//     the one that has paused, whatever becomes of the store; and nobody does from a lease after the pause was
//     recorded, unless the store has forgotten something since. A pause by a process that does not know
//     yet that somebody has resumed is not judged: it acts on what was true before.
//
// In the second phase, within two removal times of the longest lease and three gaps
// of a quarter of a lease between syncs, by the slowest clock: the shares add up to at
// least 0.99, each is within 5 % of the fair one with all processors busy, and all hold
// one, ten looks in a row; or the pool issues permits. After that every processor goes by the newest override that one of them had loaded
// or the store remembers, the ramp is at its end, permits flow, and nobody is paused.
//
// The checks on the bound hold for consensus.Stop. A tenth of the seeds runs with
// consensus.Degrade, which gives the bound up while processors alone are cut off. Of these it is
// checked that the shares with the store's consent add up to at most one (but not for a removal time after the
// store forgot something: it takes what is reported in use for what it has granted), that a
// processor goes on without it with no more than it had and than an even part, and the
// recovery. Half of them, those without extras, lose the store all alike, and keep it afterwards for long enough
// to ask it; there the sum of all shares, the claims and the windows are checked, too.
//
// # What is excused
//
// Three things are not held against the protocol:
//
//   - A clone, in the first lease after the cloning: the larger of its share and
//     the original's is counted then, afterwards both. In that time no protocol can
//     help, for neither has spoken to the store yet. If the store loses its record in that
//     time, it has forgotten what one of them said, and the lease counts from then; of their
//     share no more is counted than the claim that was lost.
//
//   - A suspended machine, from the moment it wakes to the next look of its
//     watchdog, at most 100 ms later: its own clock does not tell that time has
//     passed. A process that is merely stopped is excused from nothing.
//
//   - Of permits, in true time: what the processors' clocks are off in waiting for a slot,
//     and small steps of the store's clock. On the store's clock nothing is excused.
//
// A store that is rolled back without a change of identity answers nobody until
// the first processor comes that has seen more than it remembers, for nobody
// else can tell. After 30 s without one it gets a new identity.
//
// # Running it
//
//	go test ./internal/sim                                                    a few hundred seeds
//	NUMATHROTTLE_SIM_SEEDS=10000 go test -timeout 0 ./internal/sim            more
//	NUMATHROTTLE_SIM_SEED=17 go test -run TestReplay -v ./internal/sim        one, with a readable trace; with
//	                                                                          NUMATHROTTLE_SIM_PROCESSORS=12 of make sim
//	go run ./internal/mutants/run -run Mutant -v ./internal/sim               every rule left out once
package sim

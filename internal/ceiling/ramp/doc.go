// Package ramp computes the ceiling of a limit that ramps up from Min to Max, with Numaflow's modes. The ramp is state of the pool: one
// ceiling for all processors, which neither a rolling restart nor a new processor moves. The package is pure: no clock, I/O or goroutine.
// It uses whole numbers, so that no fraction is lost.
//
// # State
//
// The position of the ramp, its progress, is a time: 0 is Min, RampUpDuration is Max. Processors that draw compute the ceiling in tokens,
// Min + (Max - Min) x progress / RampUpDuration. The record keeps only progress, so that no fraction is lost: 10 to 20 over a minute rises
// by one every six seconds.
//
// State.Fields has the bounds of all numbers: no product of them overflows 64 bits. Only a changed configuration is rounded, alike everywhere.
//
// # The rules
//
// Time is divided into seconds, beginning with the ramp. A second is judged when it is over. The progress moves in the second after it,
// evenly, by one second of the ramp: up, down or not at all.
//
//	scheduled    up with time, from the first moment in which it is not halted, whatever is used
//	relaxed      up if there was traffic
//	onlyIfUsed   up if there was traffic and used x 100 >= threshold x offered
//	goBackN      the same, and down with traffic below the threshold. After missed
//	             seconds without traffic, if (missed + 1) s > coolDownPeriod, the
//	             progress is Base - missed x rampDownPercentage / 100 s: counted from
//	             the last second with traffic (Base), whose own verdict is void
//
// The progress never leaves 0 to RampUpDuration. Without traffic relaxed, onlyIfUsed and (until its cool-down is over) goBackN do not move.
// Nothing rises while nothing is offered, in any mode: a pool that is frozen, paused or without shares grants nothing.
//
// Where Numaflow's ceiling jumps from 10 to 20 at the start of a second, this one moves from 10 to 20 during that second. With scheduled,
// whose future is known, it moves from 20 to 30. When the penalty of a gap begins, it falls at once: nobody uses it.
//
// A pool that was silent for longer than TTL starts from Min. An empty pool starts from Min as well, unless ResumedRampUp is set. Then it
// continues from its last position, and the empty time counts neither as time of the ramp nor as a gap. Numaflow does so for each
// processor. Here the pool starts: a processor that joins others, or restarts beside them, begins at their position, with and without
// ResumedRampUp.
//
// A changed configuration keeps the ceiling as a rate, clamps it, and continues. While two configurations alternate, during a rollout,
// every step is such a change: the ceiling stays within both, scheduled continues, and the other modes may stand still.
//
// # Steps
//
// A pool keeps one State, as a document that stores do not interpret. Its form is State.Fields, 12 decimal numbers. About once a
// second, the next processor that asks the store makes a step and proposes the result. Of two proposals the store takes the first, and
// returns it to the other processor. A step is a function of the state, the time and the pool's use, so it does not matter which processor
// makes it. Package consensus does this (pkg/consensus/ceiling.go); a limiter without a pool makes its own steps.
//
// # Reports
//
// A processor reports two rates, over the time since it sent the last answered request, in 1e-9 of its configured limit:
//
//   - Offered: the earnings of the share under the ceiling, rounded down. Time without a share earns nothing, and neither
//     does a request that ends in a pause.
//   - Used: the draws, minus returned tokens, rounded up. At least 1 if there was a call, even if its tokens were returned or
//     refused: a call is traffic. All of Offered if a caller waits, or was refused and less than a token is left: the rest
//     is then too little, not unused.
//
// # Merging reports
//
// Reports of n processors come at irregular times, and each covers a time of its own. The rule: a processor uses at its last reported rate
// until it reports another. A step uses the sums over all live rows, including its processor's newest rates. So rates are weighted by time
// and never by the number of reports: between two steps they are constant, and an additional report changes no sum. A processor alone in
// its pool is judged by exactly its own use. Among n, a change of use is visible at the latest with the second step after it. Since use and
// offer come in one report, they lag alike, and their ratio is steady. Next accepts sums up to ten times Max; callers with larger sums
// scale both down, because only their ratio counts.
//
// # Empty, Silence and other clocks
//
// Empty and Silence give facts that the logical clock cannot show, since it counts a gap beyond the clamp as no time. Empty: a processor
// joined when no other was live. Silence: how long no step had been recorded before that, on the store's own clock. If a store's clock is
// set forward by more than TTL just when the first processor joins, the ramp restarts, which is on the safe side.
//
// A store that was emptied, or that went back to an older copy, gets the State back from a processor that holds it. The clocks of two
// stores cannot be compared, so a State whose time is far from the present continues as State.Resume at the present.
//
// # Use of the state
//
// Config.Ceiling returns the ceiling as a function of the logical time: it moves until the second ends (with scheduled until the ramp
// ends), and stays there. A processor derives the logical time from the time in the answer and its own monotonic clock since it received
// that. It is late by at most the round trip, so that a rising ceiling is never anticipated. The processor draws share x Ceiling.At(t) /
// Max of the limit, and at most its own Max.
package ramp

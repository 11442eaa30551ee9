// Package ramp works out the ceiling of a limit that ramps up from Min to Max, with
// Numaflow's modes, as state of the pool: one ceiling for all processors, which
// neither a rolling restart nor a new processor moves. It is pure: no clock, I/O or
// goroutine, and whole numbers, so that no fraction is ever lost.
//
// # What is kept
//
// Where the ramp stands, its progress, is a time: 0 is Min, RampUpDuration is Max. The
// ceiling in tokens, Min + (Max - Min) x progress / RampUpDuration, is worked out by
// those who draw. The record keeps only progress, so that no fraction is lost: 10 to
// 20 over a minute rises by one every six seconds.
//
//	number                       unit                              largest
//	At, Second                   microseconds, logical             2^53 - 1
//	From, To, Base, Ramp         microseconds of the ramp          2.7e12 (31 days)
//	Missed                       seconds                           1e9
//	Step.Used, Step.Offered      1e-9 of the limit's Max           1e10
//	State.Used, State.Offered    1e-9 of Max, times milliseconds   1e13
//	Min, Max                     tokens per Per                    1e9
//	Per                          microseconds                      2.7e12
//
// All of these, and the products below, are integers that a double holds exactly,
// with one exception that is rounded alike everywhere: a changed configuration.
//
// # The rules
//
// Time is divided into seconds, the first of which begins with the ramp. A second is
// judged when it is over, and the progress moves in the one after it, evenly, by one
// second of the ramp: up, down or not at all.
//
//	scheduled    up with time, from the first moment in which it is not halted, whatever is used
//	relaxed      up if there was traffic
//	onlyIfUsed   up if there was traffic and used x 100 >= threshold x offered
//	goBackN      the same, and down with traffic below the threshold. After missed
//	             seconds without traffic, if (missed + 1) s > coolDownPeriod, the
//	             progress is Base - missed x rampDownPercentage / 100 s: counted from
//	             the last second with traffic (Base), whose own verdict is void
//
// The progress never leaves 0 to RampUpDuration. Without traffic relaxed, onlyIfUsed
// and, until its cool-down is over, goBackN stand still. Nothing rises while nothing is offered, in any mode: a pool
// that is frozen, paused or without shares grants nothing.
//
// Where Numaflow's ceiling jumps from 10 to 20 when a second begins, this one goes
// from 10 to 20 in that second. With scheduled, whose future is known, it goes from 20
// to 30. Where the penalty of a gap begins it falls at once: nobody uses it.
//
// A pool that was silent for longer than TTL starts from Min. One that everybody had
// left starts from Min as well, unless ResumedRampUp is set: then it goes on where it
// was, and the time in which nobody was there counts neither as time of the ramp nor as
// a gap. Numaflow does so for each processor. Here it is the pool that starts: a
// processor that joins others, or restarts beside them, begins where they are, with
// and without ResumedRampUp.
//
// A changed configuration keeps the ceiling as a rate, clamps it, and goes on. While
// two configurations alternate, during a rollout, every step is such a change: the
// ceiling stays within both, scheduled goes on, and the other modes may stand still.
//
// # Who makes the steps
//
// A pool keeps one State, as a document that stores do not look into; State.AppendText
// is its form, 12 decimal numbers. Whichever processor asks the store next when about a second
// has passed makes the next step and proposes what comes of it; of two proposals the store
// takes the first, and the other gets that with its answer. A step is a function of the
// state, the time and what the pool uses, so it does not matter who makes it. Package
// consensus does this (pkg/consensus/ceiling.go); a limiter without a pool makes its own steps.
//
// # What a processor reports
//
// Two rates, over the time since the request that was answered last was sent, in 1e-9 of
// the limit that it is configured with:
//
//   - Offered: what the share earned under the ceiling, rounded down. Time without a
//     share earns nothing, nor does a request that ends in a pause.
//   - Used: what was drawn of it, less what was given back, rounded up. At least 1 if
//     anybody called, though all was given back or refused: a call is traffic. All of
//     Offered if a caller waits, or was refused and less than a token is left: what is left
//     is less than is needed, and no want of use.
//
// # Merging reports
//
// Reports of n processors come at irregular times, and each tells about a time of its
// own. The rule: a processor uses at the rate that it reported last, until it reports
// another. Who makes a step takes the sums over all live rows, its own newest rates
// among them. So rates are weighed by time and never by the number of reports: between two
// steps they are constant, and one report more or less changes no sum. A processor alone
// in its pool is judged by exactly what it did. Among n, a change of use is seen with
// the second step after it at the latest; since use and offer come in one report, they lag
// alike, and their ratio does not waver. Next takes the sums up to ten times Max; whoever
// adds up more scales both down, for it is their ratio that counts.
//
// # Empty, Silence and other clocks
//
// Empty and Silence say what the logical clock cannot, since it counts a gap beyond the
// clamp as no time. Empty: a processor joined when no other was live. Silence: how long no
// step had been recorded before that, on the store's own clock. A store's clock that is set
// forward by more than TTL just when the first processor joins restarts the ramp, which is
// on the safe side.
//
// A store that was emptied, or that went back to an older copy, gets the State back from
// whoever holds it. The clocks of two stores cannot be compared, so a State whose time is far
// from the present goes on as State.Resume at the present.
//
// # What a processor does with the state
//
// Config.Ceiling of it is the ceiling as a function of the logical time: it moves until the
// second ends (with scheduled until the ramp ends), and stays there. A processor tells the
// logical time from the time in the answer and its own monotonic clock since it
// received that: it is late by at most the round trip, so that a rising ceiling is never
// anticipated. It draws share x Ceiling.At(t) / Max of the limit, and no more than Max of its
// own.
package ramp

// Package ramp works out the ceiling of a limit that ramps up from Min to Max, with
// Numaflow's modes, as state of the pool: one ceiling for all processors, which
// neither a rolling restart nor a new processor moves. It is pure: no clock, I/O or
// goroutine, and whole numbers, so that every store can do the same.
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
//	scheduled    up with time, from the first moment, whatever is used
//	relaxed      up if there was traffic
//	onlyIfUsed   up if there was traffic and used x 100 >= threshold x offered
//	goBackN      the same, and down with traffic below the threshold. After missed
//	             seconds without traffic, if (missed + 1) s > coolDownPeriod, the
//	             progress is Base - missed x rampDownPercentage / 100 s: counted from
//	             the last second with traffic (Base), whose own verdict is void
//
// The progress never leaves 0 to RampUpDuration. Without traffic relaxed, onlyIfUsed
// and, until its cool-down is over, goBackN stand still. A second with traffic in which
// nothing was offered, as while a pool is frozen, moves onlyIfUsed and goBackN nowhere.
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
// # The place in the record
//
// The pool's record keeps one State, at first the zero State, and each entry of a row
// keeps what its processor reported last, Used and Offered. Redis keeps their sums over
// all live rows in its meta field, as it keeps the claims; the others add them up.
// State.AppendText is the form in a text, 12 decimal numbers; a binary record keeps
// them as varints.
//
// # What a request reports
//
// For every tag two rates, over the time since the request that was answered last was
// sent, in 1e-9 of Max, from 0 to Whole:
//
//   - Offered: what the share earned under the ceiling, rounded down. 0 in the first
//     request of an incarnation; time without a share earns nothing.
//   - Used: what was drawn of it, less what was given back, rounded up. At least 1 if
//     anybody called, though all was given back or refused: a call is traffic. All of
//     Offered if a caller lacks tokens at that moment: what is left then is less than
//     is needed, and no want of use.
//
// It brings its Config, and the State of its last answer in case the store has
// forgotten that.
//
// # Merging reports
//
// Reports of n processors come at irregular times, and each tells about a time of its
// own. The rule: a processor uses at the rate that it reported last, until it reports
// another. In the step of a request that is recorded:
//
//  1. The clock moves on, and silent rows go, with their rates.
//  2. The sender's rates take the place of those it reported last. Rows that have left,
//     are replaced or are closed as clones count 0 from then on.
//  3. Next is called with Now = the record's clock, and Used and Offered = the sums
//     over all entries of all live rows.
//
// So rates are weighed by time and never by the number of reports: between two steps
// they are constant, and one report more or less changes no sum. A processor alone in
// its pool is judged by exactly what it did. Among n, a change of use is seen with
// the next report of whoever changed, at most a sync interval later; since use and
// offer come in one report, they lag alike, and their ratio does not waver. Steps that
// record nothing (late, repeated or refused requests) and leaves need not call Next: the
// next one covers the time.
//
// Empty and Silence say what the logical clock cannot, since it counts a gap beyond
// the clamp as no time. Empty: no live row is left after removal, and the request is
// the first of its sender. Silence: At.Now - Record.Wall before the clock moves on, at
// least 0; and 0 if the sender has taken an answer before, for its process was there,
// and what was silent was the store. A store's clock that is set forward by more than TTL
// just when a processor joins restarts the ramp, which is on the safe side.
//
// A store that has lost its record, or has gone back to an older one (it freezes then),
// takes the State that the request brings if its own is the zero State or has an older
// At. It takes it as State.Resume at the record's clock, for the clocks of two stores
// cannot be compared.
//
// In Lua a step is a few additions and comparisons of the 12 numbers, four divisions
// (to whole milliseconds, and to whole seconds), and the products rate x milliseconds,
// used x 100, threshold x offered, and missed x percent x 10^4. Where a ramp is resumed or
// changed within a second, it is (to - from) x microseconds / 10^6 as well, with to and
// from at most a second apart. All are below 2^53.
//
// # What a processor does with the answer
//
// The answer carries the State after the step. Config.Ceiling of it is the ceiling as
// a function of the logical time until the next answer: it moves until the second ends
// (with scheduled until the ramp ends), and stays there. A processor tells the logical
// time from the time in the answer and its own monotonic clock since it received that:
// it is late by at most the round trip, so that a rising ceiling is never anticipated.
// It draws share x Ceiling.At(t) / Max of the limit. One whose configuration is not
// that of the State takes the smaller of that ceiling and its own Max. Without a store
// it keeps the ceiling that it had.
package ramp

// Package backoff works out the ceiling of a limit from what the called service makes of the
// calls: it falls when calls are refused, and rises again while they are not. It is
// one ceiling for a whole pool. It is pure: no clock, I/O or goroutine.
//
// # The ceiling
//
// What a pool may use is
//
//	Target = max(reserved, min(configured, adaptive))
//
// the rule by which FoundationDB limits a tag (GlobalTagThrottler). configured is the limit in
// force without this package; reserved is a rate that is always allowed, at most the configured
// one; adaptive is what this package works out. It never raises anything.
//
// # The law
//
// It is that of TCP's CUBIC (RFC 9438), with rates in place of windows and refusals in
// place of lost packets:
//
//	cut       good = ceiling x accepted
//	          low  = 0.7 x max(good, 0.7 x ceiling), at least reserved
//	recovery  good - (good - low) x (1 - t / 5 s)^3            for t up to 5 s
//	probing   good x (1 + 0.1 x (t - 5 s)^3)                   after that, t in seconds
//
// accepted is the part of the calls that the service accepted. (The rate that it accepted says
// less: it is low as well where few calls were made.) One look at it is trusted for no more
// than 0.7, because it is short: a cut takes the ceiling to between 0.49 and 0.7 of what it was.
// Where at most a tenth of the calls was refused the ceiling is only a little too high, and a
// cut is mild: good = ceiling, low = 0.85 x ceiling (RFC 8511 does so for CUBIC's mild signal,
// ECN). A pool that stays at its service's limit for long uses more of it that way.
//
// The recovery is CUBIC's with K = 5 s, fast at first and flat near the rate that was
// good. CUBIC probes beyond that on the same curve. Here a steeper one follows, by
// which a service that can do four times as much again gets 80 % of it within ten seconds.
//
// Probing ends at the configured limit: the ceiling is then free, and needs no further
// steps. Time in which less than 90 % of what was offered was used counts neither as recovery
// nor as probing, because nothing is learnt in it: the ceiling stays where it is. Whoever
// makes the steps sees that one step late.
//
// # One cut per lag
//
// It takes a while until a cut is known everywhere and its effect can be seen: the lag.
// Calls that were granted before that say nothing about the new ceiling. So every cut
// begins another generation, and only calls count that were granted under it, and not
// before its lag is over (State.Counts). Neither does the ceiling rise before that. Whoever
// reports names the generation, and reports of another one cut nothing.
//
// # One bad processor
//
// A Report is what one processor was told by the service. The processor with the most
// refusals is left out of the judgement, as FoundationDB's Ratekeeper ignores the worst zones,
// where there are at least three processors, whether they make calls or not. So one whose calls
// are refused for a reason of its own, such as a wrong key, cannot cut the pool. Of the calls of all others,
// more than one in fifty must have been refused for a cut. With one or two processors there is
// nobody to compare with: every report counts. With two, a bad one cuts the pool;
// that is the safe side.
//
// # What is kept
//
// A State, whose text form (State.AppendText) is 10 decimal numbers. A pool keeps it as a
// document, and whoever asks the store next when a step is due makes it; of two
// proposals the store takes the first. All rates are in 1e-9 of the configured limit, all times
// in microseconds of a clock that the processors share.
package backoff

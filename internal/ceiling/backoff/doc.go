// Package backoff computes the ceiling of a limit from the called service's responses: it falls when calls are refused, and rises again
// while they are not. A pool has one ceiling. The package is pure: no clock, I/O or goroutine.
//
// # The ceiling
//
// A pool may use
//
//	max(reserved, min(configured, adaptive))
//
// This is the rule by which FoundationDB limits a tag (GlobalTagThrottler). The configured rate is the limit in force without this package.
// The reserved rate is always allowed, and is at most the configured one. The adaptive rate is computed by this package. It never raises
// anything.
//
// # The law
//
// The law is that of TCP's CUBIC (RFC 9438), with rates in place of windows and refusals in place of lost packets:
//
//	cut       good = ceiling x accepted
//	          low  = 0.7 x max(good, 0.7 x ceiling), at least reserved
//	recovery  good - (good - low) x (1 - t / 5 s)^3            for t up to 5 s
//	probing   good x (1 + 0.1 x (t - 5 s)^3)                   after that, t in seconds
//
// accepted is the fraction of calls that the service accepted. The rate of accepted calls says less: it is also low if few calls were made.
// One observation is short. So accepted counts for at least 0.7 in low, and a cut lowers the ceiling to between 0.49 and 0.7 of its value.
//
// A cut is mild if at most a tenth of the calls was refused, because the ceiling is only a little too high: good = ceiling, low = 0.85 x
// ceiling. RFC 8511 does the same for CUBIC's mild signal, ECN. With mild cuts a pool uses more of a service at whose limit it stays.
//
// The recovery is CUBIC's with K = 5 s, fast at first and flat near the good rate. CUBIC probes beyond that on the same curve. Here a
// steeper one follows: if a service can suddenly do four times as much, the pool uses 80 % of that within ten seconds.
//
// Probing ends at the configured limit: the ceiling is then free, and needs no further steps. Time with less than 90 % of the offered
// tokens used counts neither as recovery nor as probing, because it shows nothing: the ceiling stays the same. A processor that makes the
// steps sees that one step late.
//
// # One cut per lag
//
// The lag is the time until a cut is known everywhere and its effect is visible. Calls granted before that say nothing about the new
// ceiling. So every cut begins another generation. Only calls count that were granted under it and after its lag (State.Counts), and the
// ceiling does not rise earlier. A report names its generation, and reports of other generations cause no cut.
//
// # One bad processor
//
// A Report contains the service's responses to one processor. With at least three processors, whether they make calls or not, the one with
// the most refusals is ignored, as FoundationDB's Ratekeeper ignores the worst zones. So a processor whose calls are refused for a reason
// of its own, such as a wrong key, cannot cut the pool. A cut requires that more than one in fifty of all others' calls were refused. With
// one or two processors every report counts, because there is no comparison. With two, a bad one cuts the pool; that is the safe side.
//
// # State
//
// A State has a text form (State.Fields) of 10 decimal numbers. A pool keeps it as a document. When a step is due, the next processor
// that asks the store makes it; of two proposals the store takes the first. All rates are in 1e-9 of the configured limit, all times in
// microseconds of a clock that the processors share.
package backoff

// Package fairtags divides a limit first among tags and then among processors, by the tags' demands and quotas. It is pure: rates in, rates
// out. A plan cannot break a bound: it decides only how much a processor asks the store for, and in which order it serves its own callers.
package fairtags

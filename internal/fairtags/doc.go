// Package fairtags divides a limit among tags first and processors then, by what the tags ask for and what
// their quotas say. It is pure: rates in, rates out. A plan cannot break a bound: it says only what a processor asks
// the store for, and in which order it serves its own callers.
package fairtags

// Package benchmarks measures numathrottle beside its alternatives in one run; `make bench` runs it. It is a module of its own, so that
// users of numathrottle do not resolve the alternatives.
package benchmarks

// Package world is what surrounds a pool in tests: the ways of its processors to the store, on which requests and answers can be late, lost,
// refused or wrong.
package world

//go:build race

package consensus

// RaceEnabled: with the race detector everything takes ten times as long, and what is only
// counted is counted without it, too.
const RaceEnabled = true

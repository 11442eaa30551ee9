// Package redelivery measures what a nack costs: how much of a limit is used, and how often a message is delivered, when
// messages whose tokens do not come in time are nacked and delivered again. It holds tests only:
//
//	go test -v -run TestNack ./internal/redelivery
//
// The wrappers are the real ones, and time is virtual. What is played is the platform around them, in the cadence of
// Numaflow 1.8.3:
//
//   - A vertex of a pipeline reads from its buffer while it has places left, at most a batch at a time and for the time that
//     a read may take; a nacked message is in the buffer again after its delay. A batch map and a sink get chunks: as many
//     messages as a batch has, or what has come within the time of a read.
//   - A MonoVertex reads a batch from a user-defined source, has all of it mapped, then waits for a whole chunk at the sink, or
//     for the time of a read, and reads again only then; with read-ahead it does not wait.
package redelivery

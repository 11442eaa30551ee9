// Package redelivery measures the cost of a nack: the use of a limit and the deliveries per message, if messages that do not get tokens in
// time are nacked and redelivered. It holds tests only:
//
//	go test -v -run TestNack ./internal/redelivery
//
// The wrappers are real, and time is virtual. The platform around them is simulated, with the cadence of Numaflow 1.8.3:
//
//   - A vertex of a pipeline reads from its buffer while it has places left, at most a batch at a time and for at most the
//     read timeout. A nacked message is in the buffer again after its delay. A batch map and a sink get chunks: as many
//     messages as a batch has, or as came within the read timeout.
//   - A MonoVertex reads a batch from a user-defined source and has all of it mapped. Then it waits for a whole chunk at
//     the sink, or for the read timeout, and only then reads again; with read-ahead it does not wait.
package redelivery

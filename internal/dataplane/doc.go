// Package dataplane plays Numaflow's side of a unary map: it opens one MapFn
// stream to a numaflow-go mapper server over the server's unix socket, keeps
// many messages in flight on it, and matches the answers to the messages by ID.
// It serves tests, the demo and benchmarks.
//
// # What it does as the platform does
//
//   - It waits for the socket and for IsReady, and then opens one stream, on
//     which both sides send a handshake before anything else.
//   - At most 500 messages are in flight (the platform's default
//     readBatchSize); further callers wait for a place.
//   - A message keeps its place until it is answered. There is no time limit on
//     an answer, and no order among answers.
//   - When the stream breaks, everything in flight fails at once. The platform
//     would send those messages again on another stream; here the caller may.
//   - It sends no more, lets what is in flight be answered for up to 20 s, and
//     only then gives up.
//
// # Where it is stricter
//
// The platform logs an answer that it cannot match and goes on. Here an unknown
// ID, an ID answered twice, an ID that was never answered, a second handshake
// and an end-of-transmission mark are errors that name the ID, and each of them
// breaks the stream, so that a test cannot miss it.
//
// Every message is accounted for: Stats.Sent is at all times the sum of
// Answered, Failed and Outstanding.
package dataplane

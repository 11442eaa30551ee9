// Package dataplane plays Numaflow's side of every kind of handler. It opens the streams to a numaflow-go server over the server's unix
// socket, sends messages, and matches the answers to the messages by ID. It serves tests, the demo and benchmarks.
//
//	Dial           a Map        unary map: many messages in flight, answered in any order
//	DialMapStream  a MapStream  the same, with many results for a message, and an end
//	DialTransform  a Transform  unary, as a source transformer
//	DialBatchMap   a BatchMap   one batch at a time
//	DialSink       a Sink       one batch at a time; SinkWriter adds retries and routing
//	DialSource     a Source     reads, acknowledgements, refusals and questions
//
// # Same as the platform
//
//   - It waits for the socket and for IsReady, and then opens one stream (a source
//     has two), on which both sides send a handshake before anything else.
//   - At most 500 messages are in flight (the platform's default
//     readBatchSize); further callers wait for a place.
//   - A message keeps its place until it is answered. There is no time limit on
//     an answer, and no order among answers.
//   - A batch is its messages and an end-of-transmission mark. It has ended when the
//     server has answered every message and sent a mark of its own; the next is not
//     sent before. If the stream breaks earlier, all of the batch has failed.
//   - When the stream breaks, everything in flight fails at once. The platform
//     would send those messages again on another stream; here the caller may.
//   - A sink's failures are retried, 1 ms apart, under the same ID; routed messages go to the fallback or on-success
//     sink.
//   - All calls to a source are serialised, as through the platform's actor.
//   - At the end it sends no more, waits for the answers in flight for up to 20 s, and only then gives up. Stop and Drain
//     are SIGTERM for each kind: a stream map and a sink are never given up, and killed after 30 s.
//
// # Stricter than the platform
//
// The platform logs an answer that it cannot match and continues, or does not see it. Here each of these is an error that names the ID, and
// breaks the stream, so that a test cannot miss it. The faults are an unknown ID, an ID answered twice, and an ID that was never answered.
// Others are a missing or unexpected end-of-transmission mark, a result after it, a second handshake, and an empty answer of a transformer.
// For a source they are an offset that is missing, or delivered again before it was settled, and more messages than requested.
//
// Every message is accounted for: Stats.Sent is at all times the sum of
// Answered, Failed and Outstanding; SourceStats does the same for offsets.
package dataplane

// Package noloss ends real handler processes in the middle of their work, and accounts for every message. It holds tests only:
//
//	go test ./internal/noloss
//
// A lane is one kind of handler. Its server is this test binary, restarted as a numaflow-go server with a handler wrapped by this module.
// Its driver plays the platform over the server's socket (package dataplane). The driver offers numbered messages and resends those that
// failed. The handler records the number of each finished message, in a file that outlives it, before it answers. The faults come one after
// the other, while messages are in flight:
//
//   - kill: SIGKILL, and another process in its place.
//   - terminate: SIGTERM; the driver waits for the answers of messages in flight, and closes the stream.
//   - cut off: SIGTERM, and the stream is broken at once.
//   - panic: the next message makes the handler panic; the process ends by itself.
//   - close: the stream is broken, and the contexts of all messages end. The process continues and gets a new stream,
//     unless numaflow-go was sending, or in the middle of a sink's batch: then it mostly ends its server.
//   - forced stop: SIGTERM, and the stream stays open until numaflow-go ends it after 15 s. The contexts end then.
//
// The judge uses only the records of the driver and the handler. For every message:
//
//   - It was answered once, with the handler's result for it.
//   - If it was answered, the handler had finished it.
//   - It was sent as often as it was answered or seen to fail.
//   - It was finished at most as often as it was sent: only resent messages can be duplicates.
//
// TestAPodIsStoppedWhileMessagesWait does the same with a pod that has more to do than its grace period allows, in both orders of stopping
// its containers. The platform's times are divided by ten.
//
// TestMemoryStaysFlat is another test with the same processes. It measures their memory after garbage collections, while processors come
// and go and the limit changes.
//
// Variables:
//
//	NUMATHROTTLE_FLAT_FOR    how long memory is measured; 20s when unset
//	NUMATHROTTLE_LOSS_KILLS  how many faults are injected over all lanes, each with 400 messages, and 1,000 after the last of a lane; 50 when unset
//	NUMATHROTTLE_LOSS_SEED   the seed of their order and timing; 1 when unset
package noloss

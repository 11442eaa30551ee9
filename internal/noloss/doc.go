// Package noloss ends real handler processes in the middle of their work, and accounts for every message. It holds tests
// only:
//
//	go test ./internal/noloss
//
// A lane is one kind of handler: this test binary, started again as a numaflow-go server whose handler is wrapped by
// this module, and a driver that plays the platform over the server's socket (package dataplane). The driver offers
// numbered messages and sends again what it has seen fail. The handler notes the number of each message that it has
// finished, in a file that outlives it, before it answers. The faults, one after the other, while messages are in flight:
//
//   - kill: SIGKILL, and another process in its place.
//   - terminate: SIGTERM; the driver lets what is in flight be answered, and closes the stream.
//   - cut off: SIGTERM, and the stream is broken off at once.
//   - panic: the next message makes the handler panic; the process ends by itself.
//   - close: the stream is broken off, and the contexts of all messages end. The process goes on and gets a new stream,
//     unless numaflow-go was sending, or in the middle of a sink's batch: then it mostly ends its server.
//   - forced stop: SIGTERM, and the stream stays open until numaflow-go ends it after 15 s. The contexts end then.
//
// The judge looks at the driver's and the handler's notes alone. For every message:
//
//   - It was answered once, with what the handler returns for it.
//   - What was answered was finished by the handler.
//   - It was sent as often as it was answered or seen to fail.
//   - It was finished at most as often as it was sent: duplicates are only those that were sent again.
//
// TestAPodIsStoppedWhileMessagesWait is the same with a pod that has more to do than its grace allows, in both orders in which
// containers are told to stop. The platform's times are divided by ten.
//
// TestMemoryStaysFlat is another test with the same processes: it looks at what they hold after a collection of garbage, while
// processors come and go and the limit is changed.
//
// Variables:
//
//	NUMATHROTTLE_FLAT_FOR    how long memory is looked at; 20s when unset
//	NUMATHROTTLE_LOSS_KILLS  how many faults are injected, over all lanes, 400 messages for each, and 1,000 after the last of each lane; 50 when unset
//	NUMATHROTTLE_LOSS_SEED   the seed of their order and timing; 1 when unset
package noloss

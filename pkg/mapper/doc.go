// Package mapper puts a throttle in front of numaflow-go map handlers.
//
//	limiter, err := throttle.New(throttle.Limit{Max: 50})
//	...
//	err = mapsdk.NewServer(mapper.Wrap(handler, limiter)).Start(ctx)
//
// # Waiting
//
// Each message draws its tokens before the handler sees it, and waits for them
// without a time limit of its own: it ends with the tokens or with the context.
// That is safe, since the platform has no timeout on a map call. A waiting
// message keeps its place among those that the platform has in flight, so a
// vertex that is throttled should have a concurrency of at least four times its
// readBatchSize.
//
// # When there are no tokens
//
// The platform acknowledges a message as soon as it has an answer, and an empty
// answer means that there is nothing to forward. A wrapper that answered for a
// message which the handler never saw would lose it. So Map of the wrapped
// handler returns only what the handler returned; in every other case it does
// not return at all, the message stays without an answer, and the platform
// delivers it again:
//
//   - The context was cancelled: the goroutine ends by runtime.Goexit. numaflow-go
//     cancels it when the stream is over, and nobody waits for the answer any
//     more. Returning is not enough, because numaflow-go may still send what a
//     handler returns after another handler has panicked. A panic would also
//     withhold the answer, but numaflow-go takes it for a failure of the handler
//     and shuts the server down; with Goexit the process outlives the loss of a
//     connection, as it does without the wrapper.
//   - The limiter was closed: the message waits for its context, and then as
//     above. A limiter is closed while the process shuts down; messages that
//     arrive later belong to the next process. If the context can never end, it
//     is a panic.
//   - Anything else, such as a cost that can never be granted, or the deadline of
//     a context that another wrapper put around this one: a panic with the
//     limiter's error. The stream is still in use then, and a message without an
//     answer would hold its place for ever. numaflow-go recovers the panic, fails
//     the stream with the error's text and shuts the server down; the platform
//     shows the cause. As long as the cause lasts this repeats, so the cost
//     function should stay within what the limit allows.
//
// A wrapper around this one that cancels a context of its own making, without a
// deadline, has to answer for the message itself: the call to Map does not come
// back to it, only its deferred functions run.
//
// A test that calls Map with a context which it cancels does so in a goroutine of
// its own, for Goexit would end the test.
package mapper

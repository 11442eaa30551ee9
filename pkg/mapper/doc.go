// Package mapper puts a throttle in front of numaflow-go map handlers: [Wrap] for a unary map, [WrapBatch] for a batch map and [WrapStream] for a
// stream map.
//
//	limiter, err := numathrottle.FromEnv(ctx) // or throttle.New(throttle.Limit{Max: 50}) for one process
//	if err != nil {
//		return err
//	}
//	defer limiter.Close()
//	return mapsdk.NewServer(mapper.Wrap(handler, limiter, mapper.WithMaxWait(time.Minute))).Start(ctx)
//
// # Waiting
//
// Each message draws its tokens before the handler sees it. The wait has no time limit of its own: it ends with the tokens or with the
// context. That is safe, since the platform has no timeout on a map call. A waiting message counts as in flight, so a throttled vertex
// should have a concurrency of at least four times its readBatchSize.
//
// Tags do not hold up each other, except in a batch. The platform promises the order of a batch, so its messages are admitted one after the
// other and reach the handler in that order.
//
// # When tokens do not come in time
//
// [WithMaxWait] limits the wait, and [OnDenied] sets what happens to the message then; the handler never sees it. MaxWait bounds the wait of
// each message. In a batch it also bounds the total time during which any message waits.
//
//	Action    what the platform does             useful for
//	Wait      nothing: the message waits on      the default; loses nothing
//	Nack      delivers it again after a delay    freeing the place of a message that waits long
//	Drop      acknowledges it, forwards nothing  messages that are worth nothing when they are late
//	Forward   forwards the input under tags      a conditional edge to a queue, or to a cheaper model
//	DenyFunc  what the function answers          everything else: an answer from a cache
//
// Nack is safe only with some sources, and from Numaflow 1.8.2 on:
//
//	what the vertex reads from         what a nack does
//	JetStream buffer between vertices  delivers again after the delay
//	user-defined source                notifies the source, with the delay
//	SQS                                delivers again after the delay, in whole seconds
//	JetStream source                   delivers again at once
//	Pulsar                             delivers again, by Pulsar's own settings
//	Kafka, plain NATS, generator       LOSES the message
//
// Nacked messages come again one after the other, at the pace of this pod's share of the limit. So a backlog is delivered twice and not
// again and again. See docs/wrappers.md for figures, and for the settings of a MonoVertex and a batch map that leave tokens unused
// otherwise.
//
// # When tokens do not come at all
//
// The platform acknowledges a message as soon as it has an answer, and an empty answer means that there is nothing to forward. A wrapper
// that answered for a message that the handler never saw would lose it. So Map of the wrapped handler returns only the handler's result or
// [OnDenied]'s. In every other case it does not return at all, the message stays without an answer, and the platform delivers it again:
//
//   - The context was cancelled: the goroutine ends by runtime.Goexit. numaflow-go cancels the context when the stream is over and nobody
//     waits for the answer any more. Returning is not enough: numaflow-go may still send a handler's result after another handler has
//     panicked. A panic would also withhold the answer, but numaflow-go takes it for a failure of the handler and shuts the server down.
//     With Goexit the process survives the loss of a connection as it does without the wrapper, unless numaflow-go is sending an answer at
//     that moment.
//   - The limiter was closed: the message waits for its context, and then as above. A limiter is closed while the process shuts down;
//     messages that arrive later belong to the next process. If the context can never end, the wrapper panics.
//   - Anything else, such as the deadline of a context that another wrapper put around this one: a panic with the limiter's error. The
//     stream is still in use then, and a message without an answer would hold its place for ever. numaflow-go recovers the panic, fails the
//     stream with the error's text and shuts the server down; the platform shows the cause. This repeats as long as the cause lasts.
//
// A message whose cost can never be granted (throttle.ReasonTooLarge) is denied at once, alone, and logged. [OnDenied] answers for it; with
// Wait it is nacked.
//
// The same holds for a batch as a whole, and for the answer to a message of a stream map. A stream map's outputs are passed on one by one,
// and the platform acknowledges the message only after the mark of the answer's end. Outputs that were sent before may come again with the
// message, as without the wrapper. A stream map handler that closes its channel in a deferred function would end its answer even when it
// panics or gives up. The wrapper prevents that, unless Direct is set.
//
// A wrapper around this one that cancels its own context, without a deadline, has to answer for the message itself. The call to Map does
// not return to it; only its deferred functions run.
//
// A test that cancels the context of a call to Map must call it in a goroutine of its own, for Goexit would end the test.
//
// # Shutdown
//
// When a pod is stopped the platform reads no more. Nothing informs the handler: on Kubernetes 1.29 and later its container gets SIGTERM
// only after Numaflow's own has ended, and the stream stays open until then. Numaflow 1.8.3 treats messages that wait for tokens as
// follows:
//
//	map        after 20 s it nacks unanswered messages, and exits with 1
//	batch map  the same, for all batches that it had read
//	stream map waits for ever; all is killed when the pod's 30 s are over
//
// A container in spec.sidecars can inform the handler, see numathrottle.StopContext: then all of them end after 15 s. Older kubelets signal
// all containers at once. Then numaflow-go ends the stream 15 s later. In every case messages without an answer are delivered again to
// another pod. To end sooner, and without the exit code, bound the wait: use [WithMaxWait] of at most 8 s and an Action other than Wait. A
// batch map handles as many batches as the vertex has places for (limits.concurrency / readBatchSize). Each has a MaxWait of its own, so
// take 16 s divided by their number. The limiter is closed after the server has stopped.
//
// # Concurrency
//
// Wrapped handlers may be called from any number of goroutines at once, if the handler may. A unary or stream map gets a call for each
// message, up to the vertex's limits.concurrency (by default its readBatchSize). A batch map gets one batch at a time. [WrapBatch] and
// [WrapStream] add a goroutine for each call, which ends with it; Direct does without.
//
// # Autoscaling
//
// A throttled vertex has pending messages, and the autoscaler responds with more pods. They share the same limit and only wait. So such a
// vertex should have a fixed scale (scale: {min: N, max: N}), or in a pipeline a built-in rateLimit of each pod as a hint for the
// autoscaler, as docs/autoscaling.md describes. Nacked messages count as pending too, and their redeliveries as read.
package mapper

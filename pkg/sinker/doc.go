// Package sinker puts a throttle in front of numaflow-go sink handlers, with [Wrap].
//
//	limiter, err := numathrottle.FromEnv(ctx) // or throttle.New(throttle.Limit{Max: 50}) for one process
//	if err != nil {
//		return err
//	}
//	defer limiter.Close()
//	return sinksdk.NewServer(sinker.Wrap(handler, limiter)).Start(ctx)
//
// The same handler, wrapped in the same way, serves as main sink, fallback sink and on-success sink: numaflow-go picks the socket by the
// container that it runs in.
//
// # A batch
//
// The platform sends a batch of messages, marks its end, and waits for one response to each message. The wrapped handler streams as before.
// A message comes through its channel as soon as its tokens are there, while later ones still wait. The channel is closed after the last.
//
// At most one message that has its tokens waits for a busy handler; with tags, one of each tag. With a fast limit a few do, so that the
// handler finds the next one ready. Their number is what the limit earns here in a millisecond, what the handler takes in ten at the pace
// of its last batch, or 64, whichever is least. That is not so with [WithCost] or [WithTag], with a hard or strict limit, with several limits
// at once. Messages that the handler does not take give their tokens back. A limit on calls in flight (a [throttle.InFlight], also in an
// All) makes Wrap panic: it does not know when a call of the handler has ended. Draw slots in the handler, around the call.
//
// Without tags messages reach the handler in the order of the batch. With tags ([WithTag]) those of one tag do. Messages of different tags
// pass each other, so that one tag that is short of tokens does not hold up the others. The platform promises no order within a batch,
// except for a vertex with ordered processing, to which it sends one message at a time. A handler that relies on the order of a batch
// across tags asks for [InOrder]. With tags and without [InOrder] the wrapper reads the whole batch ahead; its messages are in memory until the
// handler took them.
//
// # Which response goes to the platform
//
// The platform takes a batch only with exactly one response for each of its messages. If one is missing, duplicate or unknown, it nacks the
// whole batch and ends the pod. The wrapper never returns such a batch. It takes IDs to be unique in a batch, as the platform guarantees.
//
//	what happened to the message                        response
//	the handler took it and answered                    the handler's, unchanged
//	the handler took it and did not answer              failure
//	the handler answered it twice                       the one that claims less, the other is left out
//	the handler answered a message it never took        left out; see the next lines
//	no tokens within WithMaxWait or WithBatchBudget     OnDenied's
//	its cost can never be granted                       OnDenied's, and with Wait failure
//	the limiter failed in another way                   failure, with the limiter's error
//	the handler returned before it took it              failure; its tokens are given back
//	the context ended before the handler took it        failure; its tokens are given back
//
// Of two responses to one message failure claims least, then nack, fallback, on success, serve, success: handling a message twice is better
// than losing it. A failure is never a loss by the wrapper: the platform offers the message to the sink again, as its retryStrategy says.
// Each of these cases but the first and the last is logged, once for each batch. Messages that the handler took keep their tokens, answered
// or not; see [WithSettle].
//
// When the handler panics, or a function given as an option does, no message of the batch is answered. Then numaflow-go recovers the panic,
// fails the stream with its text and shuts the server down. The platform then delivers the batch again.
//
// # When tokens do not come
//
// By default a message waits without a time limit of its own: the wait ends with the tokens or with the context. With [WithMaxWait] or
// [WithBatchBudget] it is answered:
//
//	Nack()      delivered again when it is its turn, one after the other at the pace of the limit
//	Fallback()  goes to the fallback sink, which must be there
//	Fail()      offered to the sink again at once, or as the retryStrategy says
//	Drop()      acknowledged without being handled: lost by intent
//	DenyFunc    what the function says
//
// A nack needs Numaflow 1.8.2 or later: an older one takes it for a success and the message is lost. Redelivery depends on where the
// message came from:
//
//	a pipeline's inter-step buffer (any sink vertex)   after the delay
//	MonoVertex with a user-defined source              after the delay, if the source obeys it
//	MonoVertex with SQS                                after the delay, in whole seconds
//	MonoVertex with JetStream                          at once
//	MonoVertex with Pulsar                             as Pulsar is configured, whatever the delay
//	MonoVertex with Kafka, plain NATS, generator       never: THE MESSAGE IS LOST
//
// The platform offers a failed message again after 1 ms, up to 65,535 times, and then the pod ends. All that time the rest of the batch is
// not acknowledged and no other batch begins. With a retryStrategy that has steps and onFailure: fallback or drop, Fail leaves the decision
// to the vertex. A failure while the platform shuts down makes it nack the whole batch, handled messages included. Each offer is another
// call, and draws tokens again.
//
// In a fallback sink and in an on-success sink the platform takes no fallback, and Check refuses OnDenied(Fallback()) there. Their nack has
// the message delivered from the start. The main sink handles it again, which for an on-success sink means that it is stored twice. Wait
// and Fail concern only the sink that says so.
//
// # Batches and shutdown
//
// The platform acknowledges nothing of a batch before all of it is answered, and does not interrupt it when the pod is to stop. It even
// fetches one whole batch more. Nothing informs the handler: on Kubernetes 1.29 and later its container gets SIGTERM only after Numaflow's
// own has ended. See numathrottle.StopContext for a way to inform it; then it is 15 s. After the pod's grace of 30 s all is killed, and the
// batches are delivered again, including the messages already handled. A batch of 500 at 10 messages a second takes 50 s. Older kubelets
// signal all containers at once; then it is 17 s.
//
// To end within 20 s, do one of these:
//
//	WithBatchBudget(8*time.Second), OnDenied(Fail())   the first failure ends it: at most 8 s. In operation the
//	                                                   platform offers what failed again at once, and it waits on.
//	                                                   Not with a retryStrategy that ends in fallback or drop.
//	WithBatchBudget(8*time.Second), OnDenied(Nack())   the rest of a batch and a whole one: at most 16 s
//	a small readBatchSize                              at most what this pod's share lets through in some 8 s
//
// When the context ends, nothing is drawn any more. Messages that the handler did not take are answered with a failure; numaflow-go then
// sends no end of transmission, and the platform takes none of the batch. When the connection is lost it cannot send them, and ends the
// server, as it does with a slow handler that is not wrapped. No action (least of all Drop) is applied, so a wait that the context ended
// never acknowledges a message.
//
// When the limiter was closed, messages wait for the context, and then as above. A limiter is closed while the process shuts down; later
// messages belong to the next process. If the context can never end they are answered with a failure.
//
// # Autoscaling
//
// Throttling lowers the rate of a vertex and lets its pending messages grow. The platform responds with more pods, which share the same
// limit and only wait. Give the vertex a fixed number of replicas (scale: {min: N, max: N}) or a low max, and no rateLimit of its own.
// Nacked messages count as pending.
package sinker

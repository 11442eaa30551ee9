// Package sourcer puts a throttle in front of numaflow-go sources and source transformers.
//
//	limiter, err := numathrottle.FromEnv(ctx) // or throttle.New(throttle.Limit{Max: 1000}) for one process
//	if err != nil {
//		return err
//	}
//	defer limiter.Close()
//	return sourcesdk.NewServer(sourcer.Wrap(source, limiter)).Start(ctx)
//
// [Wrap] limits the reads of a user-defined source. [WrapTransformer] limits the output of any source, including those built into Numaflow, but
// holds messages that were read already. Where both are possible, prefer Wrap.
//
// # Reading at the limit
//
// Each Read draws tokens first, at most as many as the request's Count, and then has the source read that many messages. Every message that
// the source sends is passed on and paid for: messages above the requested count are debt, for which later Reads wait.
//
// The platform sends Read, Ack, Nack, Pending and Partitions one after the other, so a blocking Read delays the acknowledgements. It also
// asks again at once after a Read without messages. So a Read takes all of its TimeOut when it gets no messages, and never more:
//
//   - Tokens must come in the first three quarters of the time; the source has the rest for reading. The first token that comes ends the
//     wait.
//   - Then the Read goes on collecting. It collects a whole batch where it pays (see below) and its tokens come within seven eighths of the
//     time. Otherwise it collects until the bucket would be nearly full, for 100 ms or a quarter of its time at most. So a busy source is
//     read ten to twenty times a second, and not once for each message.
//   - When no token can come in time, the Read ends without messages: at the end of its time, or in the last quarter of it once there are
//     tokens, which the next Read then finds.
//   - When the limiter is closed, which happens while the process shuts down, or fails, nothing is read, and each Read waits out its time.
//     Messages stay in the source.
//   - When the context ends, the Read ends at once, and its tokens are given back.
//
// A Read draws before its messages are known, so all messages of a source have one tag, if any. Give Wrap the limiter of that tag,
// throttle.Throttle.ForTag. It then reads as the tag's quota allows, and Pending is clamped to that.
//
// A source that had fewer messages than tokens is asked for fewer the next time, down to one. So sources without messages do not hold
// tokens that others could use, and the pool sees that they need none.
//
// # What is kept for the next Read
//
// By default a MonoVertex reads a batch only after the one before it was written downstream and acknowledged (read-ahead is off). It writes
// a batch that is not full only after readTimeout, a second. A bucket of the default burst, 100 ms worth of Max, would overflow meanwhile,
// and the source would deliver a tenth of its limit. So while the platform is away, tokens are drawn for the next Read. Their number is at
// most one batch, the most that Read may ask for, and no more than the source had messages lately. Nothing waits for that. A timer polls
// the bucket as often as it would half fill, until there is a batch, or for a minute.
//
// And a Read waits for a whole batch if its tokens come in time and the platform is known to keep smaller ones back. It also waits in the
// first minute, when that is not known. Four smaller batches in a row show that it does not, if it was back within a quarter of the Read's
// time after each, as in a pipeline.
//
// The bound: a pod never has more than one batch of drawn, unused tokens for each Read under way at once, which is one on the platform. So
// in any window T the sources of the pool deliver at most
//
//	Max / Per x T + Burst + pods x (1 + batch)
//
// Kept tokens are void, and go back, when there was a pause between, when the share is lost, the lease may have ended or the limiter is
// closed. A share or a limit that has fallen leaves no more of them than it would have earned itself since the last Read, and its burst.
// When the source had fewer messages than a Read had tokens, one token is kept and the rest goes back.
//
// Nothing is kept where a token that was granted long ago would come on top of the present grants, or cannot be used later:
//
//   - Under a hard limit. In the cadence above a source gets its burst with each Read, and its earnings during the Read: with the defaults
//     a tenth of the limit if it is 100/s or more. With readTimeout 100ms it gets all that a hard limit earns.
//   - Tokens that are issued one by one, in strict mode or because the limit is too low to be divided: a source without messages uses one
//     with each Read.
//   - Limits at once (throttle.All) among which there are slots or weighed costs, and a Limiter of your own without a method Status: only
//     Limit.Burst covers the time between two Reads there.
//
// With more sources than one on a limiter, each keeps a batch of its own.
//
// # Pending and the autoscaler
//
// The platform computes the replicas of a source as
//
//	replicas x pending / (rate x targetProcessingSeconds)
//
// where pending and rate are means over lookbackSeconds (120 s by default), pending is asked of replica 0, and rate is that of all pods.
// Throttling keeps rate at the limit while pending grows. So the platform would add pods up to the maximum, and all of them would only
// wait. Therefore, for two minutes after a Read that had more to read than tokens, Pending reports at most
//
//	Max / Per x targetProcessingSeconds
//
// divided by the cost of a message. An override, a ramp, a hard or an adaptive limit counts as it is in force. As long as the vertex uses
// up the limit, the quotient is then one, and the number of replicas stays as it is. When it uses less, the quotient says how many pods it
// would take to use it up. A source's report of unknown (below zero) is passed on unchanged.
//
// It needs the platform's settings: [WithTargetProcessing] when the vertex has a targetProcessingSeconds of its own, and [WithVertexRate] when
// other vertices draw from the same pool. A limit of less than one message per pod and targetProcessingSeconds makes the platform remove
// pods, since it never keeps more pods than there are messages pending. WithPendingClamp(false) turns it off, for dashboards that show
// pending or a vertex with a fixed scale. A fixed scale is the simplest choice of all: scale {min: N, max: N}. Leave the vertex without
// Numaflow's own rateLimit, which counts Reads.
//
// # Transformers
//
// The platform transforms a batch that it has read, waits for all of it, and reads and acknowledges nothing meanwhile. So a message that
// waits for a token holds up its batch. Nothing is lost by that, and there is no time limit on it. But a source that takes messages back
// after a while, as many brokers do, will deliver them again. So set limits.readBatchSize to the limit's earnings in a second or two.
//
// [OnDenied] sets what happens to a message whose tokens do not come within [WithMaxWait]:
//
//	OnDenied   the message                       the source                     tokens
//	Wait       waits; the default, no MaxWait    is not read meanwhile          drawn
//	Nack       is read again, later              has to support it, see below   none
//	Drop       is lost by intent                 gets an acknowledgement        none
//	Forward    passes as it came, with tags      gets an acknowledgement        none
//	                                             once it is through
//	DenyFunc   is what the function returns      as it says                     none
//
// A nack needs Numaflow 1.8.2 or later, and:
//
//	user-defined source   gets the nack with its delay (numaflow-go 0.11 or later)
//	SQS                   honours the delay, in whole seconds
//	JetStream             delivers the message again at once
//	Pulsar                ignores the nack
//	Kafka, plain NATS,
//	generator             lose the message
//	any source of a Mono-
//	Vertex that has a map LOSES the message, in every version up to the newest
//
// In a MonoVertex that has a map too, Numaflow hands the map each dropped or nacked message, without a value, and then acknowledges it.
// This is its issue 3531, seen in November 2026 in 1.8.3 and in the newest source. So Drop, Nack and transformers that drop do not work
// there. A transformer does not see whether there is a map, so in a MonoVertex [WrapTransformer] logs a warning with these actions. With a
// map use Wait or Forward, or put the throttle in front of the map.
//
// An empty result of a transformer ends the pod. Transform of the wrapped transformer returns only the transformer's result or [OnDenied]'s.
// In every other case it does not return at all, and the platform has the messages read again:
//
//   - The context was cancelled: the goroutine ends by runtime.Goexit. numaflow-go cancels it when the stream is over, and nobody waits for
//     the answer any more. The process survives the loss of a connection, as it does without the wrapper.
//   - The limiter was closed: the message waits for its context, and then as above.
//   - Anything else: a panic with the limiter's error. numaflow-go recovers it, fails the stream with the error's text and shuts the server
//     down; the platform shows the cause.
//
// A message whose cost can never be granted (throttle.ReasonTooLarge) is denied at once, alone, and logged. [OnDenied] answers for it; with
// Wait it is nacked.
//
// A test that cancels the context of a call to Transform must call it in a goroutine of its own, for Goexit would end the test.
//
// # Shutdown
//
// Close the limiter after the server has stopped. The platform first stops reading; a Read in progress ends within its TimeOut. A
// transformer's wait ends when the platform gives up its stream, 20 s later with exit code 1. Where all containers get SIGTERM at once, it
// ends when numaflow-go cancels the context, after 15 s. Messages that had no answer by then are read again. With a [WithMaxWait] of at most
// 8 s it ends by itself.
package sourcer

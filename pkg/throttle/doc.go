// Package throttle limits how many calls go out: so many tokens per second, minute or hour, or so many calls in flight. A limit holds for one
// process or, with a pool, for all pods together. A caller draws a [Permit] before the call and settles it afterwards:
//
//	limiter, err := throttle.New(throttle.Limit{Max: 500, Per: time.Minute}, throttle.WithName("llm"))
//	if err != nil {
//		return err
//	}
//	defer limiter.Close()
//
//	permit, err := limiter.Acquire(ctx, 1) // waits for its turn; fails at once if ctx ends before it
//	if err != nil {
//		return err // an *Error: why, and when to try again
//	}
//	defer permit.Cancel() // gives the token back if the call was never made
//	err = call(ctx)
//	permit.Settle(1) // the call was made
//
// To share the limit among pods, join a pool with package [github.com/numaproj-contrib/numathrottle/pkg/consensus] and pass the member to
// [WithSharer]. Package [github.com/numaproj-contrib/numathrottle] does both from a configuration.
//
// # Which limiter to make
//
//   - [New] limits a rate. By default a window of a period may see the burst, a token for each processor and returned tokens on top of Max.
//     [Limit.Hard] never lets a window see more than Max, for services that ban callers. [Limit.Strict] spaces single calls evenly.
//     [Limit.Adaptive] lowers the rate while the service refuses calls.
//   - [NewInFlight] limits calls in flight.
//   - [All] combines limits: all of them or none, and one settlement for all. [Weigh] and [PerCall] set what a draw costs at each of them.
//   - [WithQuotas] divides one limit among tenants, models or keys, which are called tags. [Throttle.ForTag] and [ForTags] draw for them.
//   - [FromRate] brings a limiter of golang.org/x/time into an [All].
//   - [Func] turns a function into one that obeys a limit.
//
// Here a draw of 1,200 takes 1,200 tokens, one request and one slot:
//
//	throttle.All(tokens, throttle.PerCall(requests), throttle.PerCall(slots))
//
// # Which method to call
//
//   - [Limiter.Acquire] waits, and fails at once if the deadline of the context is too near.
//   - [Limiter.AcquireUpTo] waits for one token, and takes as many as there are. It suits batches.
//   - [Limiter.TryAcquire] never waits.
//
// Callers wait in one queue, in the order of their calls. Others pass a caller in two cases only. One is a hard limit whose share can never
// grant its draw. The other is a tag with quotas: if the present share grants a draw too late, others of its tag pass it.
//
// If the cost is known only after the call, draw an estimate and settle the real cost. An [Estimator] makes estimates from the last costs.
// [Permit.Settle] gives tokens back or leaves a debt that later callers wait for. [Permit.Report] tells an adaptive limit how the service
// responded.
//
// # Why a caller waits
//
// Every [Error] carries a [Reason], the limit, the tag and, if known, the time to retry. [Throttle.Throttled] says the same of a draw that
// isn't made, and [Throttle.Status] shows the whole state. An [Observer] sees each call that waits; see [WithObserver]. Package
// [github.com/numaproj-contrib/numathrottle/pkg/otelthrottle] makes metrics and spans of them.
//
// [Throttle.Pause] stops granting until a time, or until [Throttle.Resume], on all processors of the pool. Afterwards they start a little
// apart, at random, so that they don't all call at the same instant.
//
// # How it works
//
// A limiter is a token bucket that starts empty, because a bucket that starts full would let each restarted process add a burst. A draw at
// hand is one clock read and one compare-and-swap; package internal/engine/bucket has the rules, and the proof for hard limits.
//
// Without a [Sharer] the limiter uses the whole limit. With one it uses its leased share, and nothing after the lease ends. Every draw
// compares clock and lease, so a process that was stopped for longer than its lease draws nothing when it continues. A permit granted before
// the stop and used after it cannot be prevented.
//
// A strict limit, and a pool's limit that is too low to be divided, has no shares. There the pool reserves slots that the store keeps apart,
// and each slot brings one token at its time. The token is void a tenth of the spacing later, at least 250 ms and at most 2.5 s. Slots are
// ordered for waiting callers, and one for a refused [Throttle.TryAcquire].
//
// A permit settled below its cost gives tokens back, up to the capacity. It does so only if no more than one period's worth of tokens was
// granted since it was drawn, at the lowest share since then. Without this bound a hanging service, or calls cancelled in bulk, would let
// many times the limit through. A hard limit gives back less.
package throttle

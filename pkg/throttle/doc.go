// Package throttle is the token engine: it hands out permits at the rate of one
// processor's share of a limit.
//
// # Model
//
// A Throttle is a bucket that earns tokens at share x Max / Per, up to a capacity
// of max(1, share x Burst), and that hands them out as permits. Three running
// totals describe it, so that a draw is one clock read and one compare-and-swap:
//
//	level = earned(now) - forfeited - granted
//
// earned follows from the time alone and never goes back, granted counts every
// token ever handed out, and forfeited everything else: what overflowed, what a
// smaller share cut off, debt, less what was given back. A bucket starts empty,
// and is emptied when its lease has run out: a bucket that starts full would let
// every restarted process add a burst of its own.
//
// # Which method to call
//
// Acquire waits, and fails at once when the context's deadline is too near.
// AcquireUpTo waits for one token and takes as many as there are. TryAcquire
// never waits. Waiters form one queue in the order of their calls; nothing
// overtakes it.
//
// # Several limits at once
//
// All draws from several limiters in one step: from all or from none, and settles them
// together. Weigh and PerCall say what a draw costs at each, so that one draw of 1,200
// takes 1,200 tokens, one request and one slot:
//
//	throttle.All(tokens, throttle.PerCall(requests), throttle.PerCall(slots))
//
// Nothing is held while a caller waits. It queues at the scarcest limiter, and joins
// the queues of the others when the rest of its wait is no longer than they take to earn
// what it costs there; its place in each is by the time at which it came. So two Alls over
// the same limiters never wait for each other, and small draws do not starve a large
// one. A call that waits at a limiter may therefore be passed by one that came before
// it and waited elsewhere: what it was told to wait may grow, and it is told as soon as
// it does not fit its deadline any more.
//
// InFlight limits calls in flight instead of a rate. FromRate brings a limiter of
// golang.org/x/time into an All, Func turns a function into one that obeys a limit, and
// Estimator guesses costs that are known only after the call.
//
// # Shares
//
// Without a Sharer a Throttle uses the whole limit. With one it uses what the
// sharer leases to it, and nothing once the lease is over: clock and lease are
// compared at every draw, so a process that was stopped past its lease and goes
// on draws nothing. A permit that was granted before the stop and is used after
// it cannot be helped.
//
// # Tokens that are issued
//
// With Limit.Strict, and while a pool's limit is too low to be divided, there are no shares:
// the sharer is a *consensus.Member, and reserves slots that the store keeps apart. The bucket
// earns nothing; each slot brings one token at its time, which is void a tenth of the
// spacing after it, at least 250 ms and at most 2.5 s. Slots are ordered for those who wait, and one for a
// TryAcquire that was refused. See docs/limits.md for what is guaranteed.
//
// # Pauses
//
// Pause stops granting until a time, or until Resume: on all processors of the pool, if the
// Sharer is a *consensus.Member. The gate through which draws go is shut, so that a
// draw costs the same. What is earned meanwhile is bounded as always, and each processor starts a little after the
// end, by chance, so that not all come back at one instant. See docs/pause.md.
//
// # What holds callers back
//
// Every error and Throttled carry the reason, the limit, the tag and, as far as it is known, the
// time to retry. WaitStats counts waits, refusals and time by reason. WithObserver
// adds an Observer, which is told of each call that waits and of no other; package
// otelthrottle makes metrics and spans of it. Track and Blame tell a deadline that was
// missed by waiting from one that the service missed.
//
// # Limits that follow the service
//
// With Limit.Adaptive the rate falls when calls are refused, and rises again to Max: Permit.Report and
// Throttle.Report tell what the called service makes of a call. A Throttle slows down at
// once by itself; its Sharer lowers the ceiling of the pool. With quotas a tag that makes more than
// half of the refused calls is slowed down alone. See docs/limits.md and docs/quotas.md.
//
// # Giving back
//
// A permit that is settled below its cost gives tokens back as long as no more
// than one period's worth of tokens (share x Max, at the lowest share since then)
// was granted since it was drawn, and only up to the capacity. Without this bound a service that hangs and
// calls that are cancelled in bulk would let many times the limit through.
//
// # Hard limits
//
// A window of a period may see the burst, a token for each processor and what was
// given back on top of Max. With Limit.Hard it never sees more than Max: the rate is
// lowered by the burst and by what clocks may be fast, no bucket is rounded up to a
// token, and less is given back. internal/bucket/hard.go holds the rules and the proof.
package throttle

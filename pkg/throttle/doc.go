// Package throttle is the token engine: it hands out permits at the rate of one processor's share of a limit.
//
// # Model
//
// A Throttle is a bucket that hands out tokens as permits. It earns them at share x Max / Per, up to a capacity of max(1, share x Burst).
// Three running totals describe it, so that a draw is one clock read and one compare-and-swap:
//
//	level = earned(now) - forfeited - granted
//
// The total earned follows from the time alone and never goes back. The total granted counts every token ever handed out. Everything else
// is forfeited: overflow, cuts by a smaller share and debt, less tokens given back. A bucket starts empty, and is emptied when its lease
// has run out. A bucket that starts full would let every restarted process add a burst of its own.
//
// # Which method to call
//
// Acquire waits, and fails at once when the context's deadline is too near. AcquireUpTo waits for one token and takes as many as there are.
// TryAcquire never waits. Waiters form one queue in the order of their calls; nothing overtakes it. Only a hard limit lets others pass a draw
// that its share can never grant, and with quotas a draw that the limit's present share grants too late lets others of its tag pass.
//
// # Several limits at once
//
// All draws from several limiters in one step, from all or from none, and settles them together. Weigh and PerCall set the cost of a draw
// at each. Here one draw of 1,200 takes 1,200 tokens, one request and one slot:
//
//	throttle.All(tokens, throttle.PerCall(requests), throttle.PerCall(slots))
//
// Nothing is held while a caller waits. It queues at the scarcest limiter. It joins the queues of the others once the rest of its wait is
// no longer than they take to earn its cost there. Its place in each queue is by its time of arrival. So two Alls over the same limiters
// never wait for each other, and small draws do not starve a large one. A call that waits at a limiter may therefore be passed by an
// earlier one that waited elsewhere. Its expected wait may then grow, and it fails as soon as that wait does not fit its deadline any more.
//
// InFlight limits calls in flight instead of a rate. FromRate brings a limiter of golang.org/x/time into an All. Func turns a function into
// one that obeys a limit. Estimator guesses costs that are known only after the call.
//
// # Shares
//
// Without a Sharer a Throttle uses the whole limit. With one it uses its leased share, and nothing once the lease is over. Every draw
// compares clock and lease, so a process that was stopped past its lease and goes on draws nothing. A permit that was granted before the
// stop and is used after it cannot be prevented.
//
// # Tokens that are issued
//
// With Limit.Strict, and while a pool's limit is too low to be divided, there are no shares. The sharer is a *consensus.Member, and
// reserves slots that the store keeps apart. The bucket earns nothing; each slot brings one token at its time. The token is void a tenth of
// the spacing later, at least 250 ms and at most 2.5 s. Slots are ordered for waiting callers, and one for a refused TryAcquire. See
// docs/limits.md for the guarantees.
//
// # Pauses
//
// Pause stops granting until a time, or until Resume. If the Sharer is a *consensus.Member, it does so on all processors of the pool. The
// gate that draws go through is shut, so that a draw costs the same. Tokens earned meanwhile are bounded as always. Each processor starts a
// little after the end, by chance, so that not all come back at one instant. See docs/pause.md.
//
// # What holds callers back
//
// Every error and Throttled carry the reason, the limit, the tag and, if known, the time to retry. WaitStats counts waits, refusals and
// time by reason. WithObserver adds an Observer, which receives only calls that wait; package otelthrottle makes metrics and spans of it.
// Track and Blame distinguish a deadline missed by waiting from one that the service missed.
//
// # Limits that follow the service
//
// With Limit.Adaptive the rate falls when calls are refused, and rises again to Max. Permit.Report and Throttle.Report take the called
// service's response to a call. A Throttle slows down at once by itself; its Sharer lowers the ceiling of the pool. With quotas, a tag that
// makes more than half of the refused calls is slowed down alone. See docs/limits.md and docs/quotas.md.
//
// # Giving back
//
// A permit settled below its cost gives tokens back, up to the capacity, if no more than one period's worth of tokens was granted since it
// was drawn. A period's worth is share x Max, at the lowest share since then. Without this bound a hanging service and calls cancelled in
// bulk would let many times the limit through.
//
// # Hard limits
//
// A window of a period may see the burst, a token for each processor and returned tokens on top of Max. With Limit.Hard it never sees more
// than Max. The rate is lowered by the burst and by how fast clocks may run, no bucket is rounded up to a token, and less is given back.
// The rules and the proof are in internal/engine/bucket/hard.go.
package throttle

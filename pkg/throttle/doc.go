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
// # Shares
//
// Without a Sharer a Throttle uses the whole limit. With one it uses what the
// sharer leases to it, and nothing once the lease is over: clock and lease are
// compared at every draw, so a process that was stopped past its lease and goes
// on draws nothing. A permit that was granted before the stop and is used after
// it cannot be helped.
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
// token, and less is given back. hard.go holds the rules and the proof.
package throttle

// Package hook holds functions of package throttle that only packages of this module call: wrappers, proxies and httpthrottle. They are not
// part of the public page. Package throttle sets them when it is initialised; each limiter is a throttle.Limiter. All may be called from
// any goroutine, and none blocks.
package hook

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

var (
	// Adaptive reports whether a limiter follows the called service, so that calls are worth reporting to it (Permit.Report). That holds for
	// a *Throttle with an adaptive limit, a type that embeds one, an All with one, and another Limiter whose method `Adapts() bool` says so.
	// It also holds for a Limiter that shows one of these by a method `Unwrap() Limiter`.
	Adaptive func(limiter any) bool

	// Ceiling returns a valid throttle.Limit in the form of package ceiling. Its defaults need not be filled in.
	Ceiling func(limit any) ceiling.Config

	// CountsCalls returns the name of the first *throttle.InFlight that a limiter draws from, and whether there is one: itself, that of a tag,
	// one of an All, or one shown by a method `Unwrap() Limiter`. Its slots have to be given back, so it is for those who know when a call ends.
	CountsCalls func(limiter any) (name string, ok bool)

	// TellsTags reports whether a limiter draws differently for tags: it is a Tagger, and not a Throttle without quotas.
	TellsTags func(limiter any) bool

	// ForLevels returns the throttle.Limiter for draws with a tag and one of the level below it, such as a team and a key of it. It is that of
	// throttle.ForTags but for three things. A limit draws for the second only if that has a quota of its own there, by name or by pattern.
	// The second is no demand beside that of the first: where a limit is divided, only the first counts, with its reserved rate, class and
	// weight. A Tagger of another package draws for both if it has a method ForLevels(first, second string) throttle.Limiter, else for the
	// first alone.
	ForLevels func(limiter any, first, second string) any

	// Repay gives back n tokens that were drawn or charged but not used. They pay debt, and the rest goes into the bucket, up to its capacity.
	// A hard limit, or one whose tokens are issued, only pays debt. How much a pool's quota gets back depends on its pool. The caller must
	// know that n were drawn. Limiters of other packages are looked through as by throttle.Charge; those without an inner one are left out.
	Repay func(limiter any, n int)

	// Track returns a context for one call. It records from now on how much of the call's time is spent waiting for tokens: the waits in any
	// Acquire with this context or with one made from it, and those reported to ExternalWait. The record has two uses:
	//
	//   - An Acquire that the deadline ends fails with an error that is ErrThrottled, and context.DeadlineExceeded too, only when more than
	//     80 % of the time since Track was spent waiting. Otherwise it fails with the plain cause of the context, for something else used
	//     up the time. Without Track the Acquire counts as the whole call.
	//   - Blame says the same of a call that failed for its deadline after it had its tokens.
	//
	// A context that is already tracked is returned as it is. Waits at the same time count once.
	Track func(ctx context.Context) context.Context

	// Blame returns the error of a call that had a context of Track. It replaces err if the deadline of ctx has passed, err is
	// context.DeadlineExceeded, and more than 80 % of the time since Track was spent waiting for tokens. The new error is a *throttle.Error
	// that names the last wait, is ErrThrottled, and has err as its cause; its RetryAfter is 0, for that wait is over. Otherwise it is err
	// itself, also when err is nil or a *throttle.Error already, or when ctx has no Track.
	Blame func(ctx context.Context, err error) error

	// WithFallback says that callers with this context have an alternative to a draw that a spent budget refuses. If Budget.Then is fallback,
	// such a draw fails at once, with Error.Fallback. Other draws wait for the end of the budget's window, if their deadlines allow it.
	WithFallback func(ctx context.Context) context.Context

	// ExternalWait says that a caller holds a call back before it draws n tokens for a tag. Package httpthrottle does so while the called
	// service asks to be left alone. The wait shows as one for the limiter, with ReasonPause: in its observers, WaitStats, Status, Track and
	// metrics. It asks for no token, so it is no demand.
	//
	// Call over once, when the wait ends, with the error of the call; nil if it goes on. An All shows the wait at its oldest limiter where n
	// tokens cost something. A Limiter with a method `Unwrap() Limiter` shows it at the inner one. For other limiters of other packages, and
	// for Unlimited ones, only Track knows of it.
	ExternalWait func(ctx context.Context, limiter any, tag string, n int) (over func(err error))

	// WithClock returns the throttle.Option by which a limiter uses a clock, a gate.Clock, in place of the machine's monotonic one, which is
	// faster. Lease.Until and context deadlines are compared with its times.
	WithClock func(clock any) any

	// OnSettle returns a permit, a throttle.Permit, that calls f once before it is settled, with the cost, or before it is cancelled, with a
	// negative one. It is settled with the result of f then, or cancelled if that is negative. A cost function of throttle.Weigh may have
	// another result for the settlement than for the draw.
	OnSettle func(permit any, f func(used int) int) any

	// WithMeter returns the throttle.Option by which a limiter has a meter of calls, for a process with at most so many messages at once; 0:
	// it has none.
	WithMeter func(concurrency int) any

	// Meters returns the meters of a limiter, or of all limiters of an All, for the code that makes the calls; nil: nobody measures.
	Meters func(limiter any) callmeter.Meters

	// PodsWanted is Meter.Wanted of a *Throttle or *InFlight; ok is false without a meter, too.
	PodsWanted func(limiter any) (pods float64, ok bool)

	// Announce says which limit the called service announces: so many tokens per Limit.Per of a *throttle.Throttle, which reports that to its
	// pool for five minutes. It does nothing with other limiters.
	Announce func(limiter any, tokens int64)

	// Follow returns a throttle.Limit that follows what the called service announces: the limit in force is at most what the pool agrees on.
	// Before anything was announced it is first tokens per Per; 0: as configured.
	Follow func(limit any, first int64) any

	// Refuse returns e, a throttle.Error, as an error of the limiter, for a call that its caller refuses instead of drawing e.Cost tokens;
	// the result is a *throttle.Error. It fills in the name of the limit, its tag unless e has one, and the cost of e.Cost tokens there. It
	// finds the limiter as ExternalWait does; where only Track knows of waits, e stays unchanged. WaitStats counts the refusal if e.Reason
	// is one of throttle.Reasons.
	Refuse func(limiter, e any) error
)

// Package sharing is the edge between a limiter and its pool: two interfaces, and a limiter's report on itself. A Sharer gives shares, and
// a Holder uses them. Neither side knows the other's engine.
package sharing

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Sharer gives a Throttle, or an InFlight, its share of the limit, and learns how much it would use. *consensus.Member is one. One Sharer
// serves one limiter. A Sharer that can do more is a Pool.
type Sharer interface {
	// Attach connects the limiter. The sharer calls h.Lease with the share in force before Attach returns, and again at each change or
	// renewal. A call with a smaller share has taken effect when it returns. It calls h.Report when it is about to report. Calls do not
	// overlap.
	Attach(h Holder)

	// Poke says that a caller waits or was refused for lack of share or tokens, so that the sharer can report it soon. It never blocks,
	// never calls the limiter, and may be called at any rate, from any goroutine.
	Poke()
}

// A Pool is a Sharer with everything that the limiters of a pool can do together. *consensus.Member is one. A strict limit needs one.
type Pool interface {
	Sharer

	// Reserve asks for permit slots. The store keeps them at least Spacing apart for the whole pool. While a Lease says Issuing there are
	// no shares, and every token is a slot that was reserved here. It never blocks and never calls the limiter; done is called once, later,
	// from another goroutine. A limiter asks again only after the answer. An error means that slots may have been reserved in vain.
	Reserve(o Order, done func(Slots, error))

	// Pause and Resume are as those of Throttle, for all processors of the pool.
	Pause(ctx context.Context, until time.Time, reason string, opts ...limit.PauseOption) (limit.PauseReceipts, error)
	Resume(ctx context.Context, opts ...limit.PauseOption) error

	// RetryAfter is as that of Throttle: the pool judges a called service's answer to one processor. It never blocks and never calls the
	// limiter before it has returned.
	RetryAfter(until time.Time, reason string)
}

// A Holder is a Sharer's view of a Throttle or an InFlight.
type Holder interface {
	// Terms returns the limiter's constant terms.
	Terms() Terms

	// Report reports the limiter's activity. The demand is computed over the window, usually two sync intervals, and remembered for the
	// next. With a window of 0 there is none.
	Report(window time.Duration) Report

	// Lease puts a share in force, in place of the previous one.
	Lease(l limit.Lease)

	// ReportTags reports the limiter's activity, tag by tag: every tag that has drawn, waited or been refused since the last call, or has
	// something in hand. It gives up tokens in hand of earlier grants that end within keep, so that the pool can have them back. A limiter
	// without quotas returns none.
	ReportTags(keep time.Duration) []TagReport

	// GrantTags puts the pool's grants to tags in force. For a tag that is not named only its Rate changes, to 0.
	GrantTags(grants []TagGrant)

	// SetPauses puts pauses in force in place of the previous ones, at most one for each tag. When it returns, no paused draw is granted
	// any more.
	SetPauses(pauses []limit.Paused)
}

// A Debtor is a Holder that owes tokens, for calls that used more than they drew.
type Debtor interface {
	Holder

	// ForgiveDebt cancels the debt, and returns how many tokens it was.
	ForgiveDebt() (tokens float64)
}

// A QuotaHolder is a Holder that accepts other quotas than those of its Terms.
type QuotaHolder interface {
	Holder

	// SetQuotas puts the quotas in force, which are valid and have their defaults filled in. It is called before the first GrantTags by
	// them.
	SetQuotas(q limit.Quotas)
}

// Terms describe a limiter to its Sharer.
type Terms struct {
	// Ceiling is the configured limit on the pool's use; the zero Config when there is no limit, or when it is not a rate.
	Ceiling ceiling.Config
	// Slots is how many calls the whole pool may have in flight; a share should be a whole number of them. 0 for a rate, and for no limit.
	Slots int
	// Spacing is how far apart the tokens of the limit are when they are issued one by one; 0 when they cannot be. Strict says that they
	// must be, at any rate.
	Spacing time.Duration
	Strict  bool
	// Quotas are the limiter's configured quotas; nil: it has none, and tags only name things. They are valid and have their defaults
	// filled in.
	Quotas *limit.Quotas
}

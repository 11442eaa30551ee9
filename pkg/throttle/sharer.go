package throttle

import "time"

// WholeShare is the share that stands for the whole limit. Shares are integers
// of 1e-9 so that every store adds them up exactly.
const WholeShare int64 = 1_000_000_000

// A Lease is a share of the limit that is good until a time.
type Lease struct {
	// Share is the fraction of the limit in 1e-9: 0 to WholeShare.
	Share int64
	// Until is the local monotonic time at which the share is void if no later
	// lease has come; nothing is granted at or after it. The zero Time means
	// that the lease does not end.
	Until time.Time
	// Reason says why Share is 0, or what will be the reason once the lease has
	// run out. When empty: ReasonNoShare for a Share of 0, ReasonStoreLost for a
	// lease that ran out.
	Reason Reason
	// Frozen is the local monotonic time until which the share cannot grow, because
	// the store has forgotten something; the zero Time when that is not so.
	Frozen time.Time
	// Degraded marks a share that is used without the store's consent, by the
	// policy for a lost store.
	Degraded bool
	// Issuing says that the pool has no shares at present: tokens are issued one by one,
	// because the limit is strict or too low to be divided. Share is 0 then. A sharer
	// that leases so is an Issuer.
	Issuing bool
}

// A Sharer tells a Throttle, or an InFlight, which share of the limit it may use, and
// learns from it what it would use. *consensus.Member is one. One Sharer serves one
// limiter.
type Sharer interface {
	// Attach connects the Throttle. The sharer calls h.Lease with the share in
	// force before Attach returns, and again at each change or renewal; a call
	// with a smaller share has taken effect when it returns. It calls h.Demand
	// when it is about to report. Calls do not overlap.
	Attach(h Holder)

	// Poke says that a caller waits or was refused for lack of share or tokens,
	// so that the sharer can report it soon. It never blocks, never calls the
	// Throttle, and may be called at any rate, from any goroutine.
	Poke()
}

// A Holder is what a Sharer sees of a Throttle or an InFlight.
type Holder interface {
	// Lease puts a share in force, in place of the one before.
	Lease(l Lease)

	// Demand tells which fraction of the limit, in 1e-9, this processor would use
	// if it could: what was used, waits and was refused over the window, plus debt.
	// It is WholeShare when callers lacked tokens in the last half of the window and
	// most of what was earned in it was used, and 0 when nothing happened in it.
	// With a hard limit it is at least the share that grants the largest draw that
	// lacked one, unless it is 0. window is usually two sync intervals.
	Demand(window time.Duration) int64

	// Debt tells how long the share in force takes to earn what was used above
	// estimates and is owed. 0: nothing is owed. A holder that leaves keeps its claim
	// for so long, so that the others do not use what it has used already.
	// Where tokens are issued it is 0: nobody can keep a claim, and what is owed is
	// forgotten.
	Debt() time.Duration

	// Spacing tells how far apart the tokens of this limit are when they are issued
	// one by one, which strict demands at any rate; 0 when they cannot be.
	Spacing() (d time.Duration, strict bool)
}

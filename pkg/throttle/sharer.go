package throttle

import "time"

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

// Slotted is a Holder whose limit cannot be divided finer than in slots: a share of it should be a
// whole number of them. *InFlight is one.
type Slotted interface {
	Holder
	// MaxSlots is how many there are in the whole pool; 0: no limit. It never changes.
	MaxSlots() int
}

// A Holder is what a Sharer sees of a Throttle or an InFlight.
type Holder interface {
	// Lease puts a share in force, in place of the one before.
	Lease(l Lease)

	// Demand tells which fraction of the limit in force (Lease.Ceiling), in 1e-9, this
	// processor would use if it could: what was used, waits and was refused over the window, plus debt.
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

	// InUse tells which share calls under way are using, in 1e-9, rounded up: the
	// smallest share that would allow them all. It may be above the share in force,
	// which has fallen since. 0 for what is used at once, as tokens are.
	InUse() int64

	// Limit is the configured limit with its defaults filled in; the zero Limit when
	// there is none, or when it is not a rate.
	Limit() Limit

	// Flow returns running totals, of which a ramp sees whether the limit is used.
	Flow() Flow

	// Spacing tells how far apart the tokens of this limit are when they are issued
	// one by one, which strict demands at any rate; 0 when they cannot be.
	Spacing() (d time.Duration, strict bool)
}

package limit

import (
	"errors"
	"time"
)

// WholeShare is the share that stands for the whole limit. Shares are integers
// of 1e-9 so that every store adds them up exactly. Rates that are parts of a limit are in the same unit.
const WholeShare = 1_000_000_000

// MaxShare is the largest share there is: an override may raise a limit to so many
// times what this processor is configured with.
const MaxShare int64 = 64 * WholeShare

// A Lease is a share of the limit that is good until a time.
type Lease struct {
	// Share is the fraction of the configured limit in 1e-9 that may be used: 0 to
	// MaxShare, and at most WholeShare unless an override has raised the limit.
	Share int64
	// Even is the share that this processor has soon if it lacks tokens, however little it is left while it has no use
	// for more: at most its equal part of the pool, in the same unit as Share. 0: nobody can tell.
	Even int64
	// Ceiling is what the whole pool may use at present, in tokens per Per of the
	// configured limit: less than Max while the limit ramps up or an override lowers
	// it. 0: Max. Share has it in it already.
	Ceiling float64
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
	// Adapted says that Ceiling is lower than it might be because the called service
	// refuses calls; see Limit.Adaptive. Cuts counts how often it was lowered by that: with
	// another number the refusals that the holder knows of have been dealt with. Settling says that
	// the last time is so short ago that others may not know it yet: whether calls that are granted
	// now are refused says nothing about the new ceiling.
	Adapted  bool
	Cuts     uint64
	Settling bool
	// Issuing says that the pool has no shares at present: tokens are issued one by one,
	// because the limit is strict or too low to be divided. Share is 0 then. A sharer
	// that leases so is an Issuer.
	Issuing bool
}

// A Refusal says why a draw is refused.
type Refusal struct {
	Reason Reason
	// Cost is the number of tokens asked for.
	Cost int
	// RetryAfter is how long the tokens would have taken; 0 when that is not known. Frozen is
	// how long the store's freeze goes on.
	RetryAfter, Frozen time.Duration
	// Fallback says that a budget of the tag is spent whose messages go to a fallback then.
	Fallback bool
}

// A Timer is what a clock's AfterFunc returns; *time.Timer is one.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// ErrClosed says that the limiter was closed: it grants nothing more.
var ErrClosed = errors.New("limiter closed")

package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Package limit defines these types, with their fields and methods. These are their names for most users.

// wholeShare is the share that stands for the whole limit. Shares are integers of 1e-9.
const wholeShare int64 = limit.WholeShare

// never is a time that no clock reaches.
const never = sharing.Never

type (
	// A Reason says why a draw was refused or has to wait.
	Reason = limit.Reason

	// A Paused is a pause: an order to grant nothing, with its tag, end and reason.
	Paused = limit.Paused

	// PauseReceipts is the outcome of a pause.
	PauseReceipts = limit.PauseReceipts

	// A PauseOption sets one thing of a call of Pause or Resume.
	PauseOption = limit.PauseOption

	// A PauseError is the error for a pause that no limiter accepts.
	PauseError = limit.PauseError
)

// The reasons that the limiters of this package give.
const (
	// ReasonLimit: the limit itself; the tokens accrue at a known rate.
	ReasonLimit = limit.ReasonLimit
	// ReasonNoShare: this processor holds no share of the limit yet, or nothing of the tag's budgets, which are not spent.
	ReasonNoShare = limit.ReasonNoShare
	// ReasonFrozen: it holds none, and no share grows for a while, because the store has lost its state: it is new, was wiped, or failed
	// over.
	ReasonFrozen = limit.ReasonFrozen
	// ReasonShareTooSmall: this processor's share of a hard limit is too small to
	// grant the cost at once; see Limit.Hard.
	ReasonShareTooSmall = limit.ReasonShareTooSmall
	// ReasonStoreLost: the lease ran out because the store does not answer.
	ReasonStoreLost = limit.ReasonStoreLost
	// ReasonUnreadable: the pool has changed its limit in a way that this release cannot
	// read, and the last share is over.
	ReasonUnreadable = limit.ReasonUnreadable
	// ReasonReplaced: another process joined the pool under the same ID.
	ReasonReplaced = limit.ReasonReplaced
	// ReasonTooLarge: the cost is above what one draw may ever take. A changed quota that allows less than the configured one gives
	// ReasonQuota or ReasonBudget instead, for the change may end.
	ReasonTooLarge = limit.ReasonTooLarge
	// ReasonInFlight: all slots are in use; nobody knows when one comes back.
	ReasonInFlight = limit.ReasonInFlight
	// ReasonSlotsTaken: the tokens are issued one by one, and as many as may be reserved
	// are; see Limit.MaxReserved.
	ReasonSlotsTaken = limit.ReasonSlotsTaken
	// ReasonAdaptive: the limit is lower than configured at present, because the called
	// service refuses calls; see Limit.Adaptive. The tokens accrue at a known rate.
	ReasonAdaptive = limit.ReasonAdaptive
	// ReasonOther: a reason that a Sharer gave and this package does not know, where
	// reasons are counted.
	ReasonOther = limit.ReasonOther
	// ReasonPause: everybody is held back until a time, or until somebody resumes, because
	// the called service wants to be left alone; see Throttle.Pause.
	ReasonPause = limit.ReasonPause
	// ReasonQuota: the total of the tag is used; the tokens accrue at a known rate.
	ReasonQuota = limit.ReasonQuota
	// ReasonBudget: a budget of the tag is spent until its window ends.
	ReasonBudget = limit.ReasonBudget
	// ReasonClass: tags of a higher class use the limit.
	ReasonClass = limit.ReasonClass
	// ReasonNames: too many names of a pattern are in use to tell all apart, and this one shares a quota with others.
	ReasonNames = limit.ReasonNames
	// ReasonClosed: the limiter was closed.
	ReasonClosed = limit.ReasonClosed
)

// Reasons returns the reasons that [WaitStats] tells apart, in a fixed order.
func Reasons() []Reason { return limit.Reasons() }

// PauseTag restricts a call to one tag, of up to 64 bytes. Without it, Pause stops
// everything, and Resume ends a pause of everything: pauses of single tags go on.
func PauseTag(tag string) PauseOption { return limit.PauseTag(tag) }

// WaitForReceipts sets how long Pause waits for the other processors to confirm that they have stopped: 0, which is not at all, to a
// minute. Defaults to DefaultReceiptWait.
func WaitForReceipts(d time.Duration) PauseOption { return limit.WaitForReceipts(d) }

package sharing

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A TagReport is a limiter's report on one tag to its pool. Tags without a quota of their own, and draws without a tag, share the tag "".
type TagReport struct {
	Tag string
	// Used and Refused count the tag's tokens granted and refused since the limiter was made, without waiting tokens. Waiting is the number
	// of tokens that callers wait for.
	Used, Refused, Waiting int64
	// Again means that the limiter counts from 0 again, because it had dropped the tag.
	Again bool
	// InHand is how many tokens of earlier TagGrants are still usable. Back is how many of them this report gives up; they are no longer in
	// hand. BackSpent is how many of Back were granted in the newest budget windows that the limiter knows.
	InHand, Back, BackSpent int64
	// Promised is the number of tokens, not counted in InHand, that belong to callers waiting only for the limit.
	Promised int64
	// Owed is the usage above the tokens drawn, since the last report.
	Owed int64
	// Lasts is how long all of InHand stays usable.
	Lasts time.Duration
	// Head is the cost of the first caller waiting for the tag's own tokens; 0 if there is none. Line is TagGrant.Coming plus the cost of
	// the next callers that Coming does not cover. It counts whole calls, as many as TagGrant.Rate serves by the next report. More says
	// that other callers wait behind them.
	Head, Line int64
	More       bool
	// Limiting is the most that the tag may use at this limiter by the next report, in tokens per second. The bound exists because the
	// called service refuses its calls; 0 means none. Held says that callers recently lacked tokens for that reason.
	Limiting float64
	Held     bool
	// Under says that each of its draws was for another tag, too, which asks for the same tokens of the limit.
	Under bool
}

// A TagGrant is a pool's grant to one tag at a limiter.
type TagGrant struct {
	Tag string
	// Rate is the rate that the tag should get at this limiter while others lack tokens, in tokens per second. It is a weight, not a bound.
	Rate float64
	// Soon is how long it takes until Rate is what the tag's demand here deserves, which may be all of its total. 0 means unknown.
	Soon time.Duration
	// Target is how much the tag may use over the whole pool now, in tokens per second. By names its cause: "reserved", "total",
	// "limiting", "limit", "class", "demand" or "budget".
	Target float64
	By     string
	// Reserved is this limiter's part of the tag's reserved rate, in tokens per second.
	Reserved float64
	// Batch adds tokens to those in hand. Needed says whether a draw of the tag needs such tokens: a tag without a total and without budgets
	// draws only from the limit.
	Batch  Batch
	Needed bool
	// Coming is how many tokens are set aside for this limiter but not usable yet. A later Batch brings them.
	Coming int64
	// Void says that tokens of earlier grants can no longer be used or given back: only Batch remains.
	Void bool
	// Forgotten says that tokens of earlier grants stay usable until they expire, but cannot be given back: the store may have no record of
	// them.
	Forgotten bool
	// Lowered says that a budget is spent, so the tag goes on in the lower class.
	Lowered bool
	// Lacks says why there are no more tokens (ReasonQuota or ReasonBudget), and Again is the local time at which more can come. Both are
	// zero if all requested tokens were granted.
	Lacks limit.Reason
	Again time.Time
	// AgainFor says that Again is for a draw of that many tokens; smaller draws may succeed sooner. 0 means any draw.
	AgainFor int64
	// Spent and Budget are the used and the allowed amount of the budget window nearest its end; 0 without budgets.
	Spent, Budget int64
}

// A Batch is a number of tokens that are usable from one local time until another.
type Batch struct {
	Tokens      int64
	From, Until time.Time
	// Window distinguishes the budget windows in which batches were granted: it rises.
	Window int64
}

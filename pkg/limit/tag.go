package limit

import "time"

// A TagReport is what a limiter tells its pool of one tag. Tags that have no quota of their own, and
// draws without a tag, are the tag "" together.
type TagReport struct {
	Tag string
	// Used and Refused count the tokens of the tag that were granted and refused since the limiter was
	// made. What is waiting is not among them. Waiting is how many tokens are waited for.
	Used, Refused, Waiting int64
	// Anew says that the limiter counts from 0 again: it had forgotten the tag.
	Anew bool
	// InHand is how many tokens of earlier TagGrants can be used yet. Back is how many of them were
	// given up by this report: they are not in hand any more. BackSpent is how many of these were
	// granted in the budget windows that are the newest that the limiter knows.
	InHand, Back, BackSpent int64
	// Promised is the number of tokens, not counted in InHand, that belong to callers that wait for the limit only.
	Promised int64
	// Owed is what was used above what was drawn, since the last report.
	Owed int64
	// Lasts is for how long all that is InHand can be used.
	Lasts time.Duration
	// Head is the cost of the first caller that waits for the tag's own tokens; 0: nobody waits for them. Line is TagGrant.Coming plus the
	// cost of the next callers that Coming does not cover, in whole calls: as many as TagGrant.Rate serves by the next report. More says
	// that other callers wait behind them.
	Head, Line int64
	More       bool
	// Limiting is what the tag may use at this limiter at most by the next report, in tokens per second, because the called
	// service refuses its calls; 0: nothing limits it. Held says that callers lacked tokens for that reason lately.
	Limiting float64
	Held     bool
}

// A TagGrant is what a pool gives to one tag at a limiter.
type TagGrant struct {
	Tag string
	// Rate is what the tag should get at this limiter while others lack tokens, in tokens per
	// second. It is a weight and no bound.
	Rate float64
	// Target is what the tag may use over the whole pool at present, in tokens per second, and By
	// names what holds it there: "reserved", "total", "limiting", "limit", "class", "demand" or "budget".
	Target float64
	By     string
	// Reserved is this limiter's part of what is reserved for the tag, in tokens per second.
	Reserved float64
	// Lot adds tokens to what is in hand. Whether a draw of the tag needs them is said by Needed: a tag
	// without a total and without budgets draws from the limit alone.
	Lot    Lot
	Needed bool
	// Coming is how many tokens are set aside for this limiter that cannot be used yet. A later Lot brings them.
	Coming int64
	// Void says that nothing of earlier grants can be used any more, nor be given back: Lot is all there is.
	Void bool
	// Forgotten says that what earlier grants have given can be used to its end, but never be given back: the store may not have it
	// on record.
	Forgotten bool
	// Lowered says that a budget is spent, so that the tag goes on in the lower class.
	Lowered bool
	// Lacks is why there are no more tokens, ReasonQuota or ReasonBudget, and Again the local time at which
	// more can come. Empty and the zero Time while there are as many as were asked for.
	Lacks Reason
	Again time.Time
	// AgainFor says that Again is for a draw of so many tokens: smaller ones may come sooner. 0: it is for any.
	AgainFor int64
	// Spent and Budget are what is used and what is allowed in the budget window that is nearest its
	// end; 0 without budgets.
	Spent, Budget int64
}

// A Lot is a number of tokens that can be used from a local time until another.
type Lot struct {
	Tokens      int64
	From, Until time.Time
	// Window tells the budget windows in which it was granted from others: it rises.
	Window int64
}

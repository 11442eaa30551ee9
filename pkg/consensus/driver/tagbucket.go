package driver

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A Draw asks the tag bucket of one tag for tokens; see "Tag buckets" in the package documentation.
type Draw struct {
	// Key names the tag: its quota names as 64 bits, made by the sender.
	Key uint64
	// Version is that of the sender's quota document; 0: there is none.
	Version Version
	// Pattern says that the tag has no quota by its name, but goes by a pattern: its tag bucket is one of Names.
	Pattern bool
	// Total tokens per Per are the tag's quota: 0 to 1e9, 0 for a tag bucket that has budgets alone. Per is whole microseconds from 1 ms to
	// 744 h; it counts only with a Total. Burst is how many of them can be saved up: 0 to 1e9.
	Total int64
	Per   time.Duration
	Burst int64
	// Ask is how many tokens the sender would like: 0 to 1e9. Ahead is how far ahead it waits in turn for tokens of the total that are not
	// earned yet: 0 to 1,003 times 744 h. With 0 it may be given less, as the total or a budget allows, else it is given all of them or none.
	Ask   int64
	Ahead time.Duration
	// Back is how many tokens of earlier draws in the budget windows named here the sender has given up. The total gets none back, or the
	// tokens of a quiet hour could be handed on until all of them are used at once. Tokens drawn before an answer that reports a new freeze
	// are not given back. Owed is how many tokens the sender used beyond its draws. Each is 0 to 1e9.
	Back, Owed int64
	// Budgets are the amounts of calendar windows: at most 3.
	Budgets []BudgetDraw
}

// A BudgetDraw is a budget as a Draw names it. The sender works out its window, because a store knows no calendar.
type BudgetDraw struct {
	// Amount is the number of tokens for the time from Start until End, on the store's own clock in microseconds of Unix time: 0 to 1e15.
	Amount     int64
	Start, End int64
	// Seen is the newest amount that the sender knows to be spent in this window: 0 to 4e15.
	Seen int64
}

// Drawn is a tag bucket's answer to a Draw.
type Drawn struct {
	Key uint64
	// Tokens can be used From after the request was sent at the earliest, and until Interval times two after that at the latest.
	Tokens int64
	From   time.Duration
	// Paid is the logical time at which the last of them is earned, in microseconds.
	Paid int64
	// Spent is the amount used of each budget, in the order of the request.
	Spent []int64
	// Lack says why fewer tokens are given than were asked for.
	Lack Lack
	// Again is how long it takes until the tag bucket can give one token; 0 if unknown.
	Again time.Duration
}

// Lack says why a tag bucket gives less than was asked for.
type Lack uint8

// Why a tag bucket gives less.
const (
	LackNothing Lack = iota // as much as was asked for
	LackTotal               // the total is used
	LackBudget              // a budget is spent
	LackWindow              // the window named is not the one of the store's clock
	LackFrozen              // the store has forgotten something
	LackVersion             // the tag bucket knows a newer version of the quotas
	LackFull                // no room for another tag bucket: nothing of the draw counts
)

// A TagBucket is the number that a record keeps for one tag.
type TagBucket struct {
	Key     uint64
	Version Version
	// Paid is the logical time, in microseconds, up to which the tokens of the tag are given out. Full is when the tag bucket will be full if
	// nobody draws. A full tag bucket need not be kept: a new one gives no more.
	Paid, Full int64
	// Spent is the use of budget windows, by rising Start.
	Spent []Spent
}

// Spent is the use of one budget window, or of several that begin at the same time.
type Spent struct {
	// Start is when the window began, End when the last one ends, on the store's own clock in microseconds.
	Start, End int64
	// Tokens is the amount used since Start: 0 to 4e15.
	Tokens int64
}

const (
	// maxSpent is where counting ends: doubles hold it exactly, with sums.
	maxSpent = 4 * wire.MaxAmount
	// maxWindows is how many windows a tag bucket knows: those of all budgets, and the ones before.
	maxWindows = 2 * wire.MaxBudgets
	// keepWindow is for how long a tag bucket knows a window that has ended, in microseconds: the store's clock may be set back.
	keepWindow = 600_000_000
)

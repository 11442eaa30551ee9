package driver

import "time"

// A Draw asks the till of one tag for tokens; see "Tills" in the package documentation.
type Draw struct {
	// Key names the tag: quota names turned into 64 bits by whoever draws.
	Key uint64
	// Version is that of the quota document by which the sender draws; 0: there is none.
	Version Version
	// Total tokens per Per are what the tag may use: 0 to 1e9, 0 for a till that has budgets
	// alone. Burst is how many of them can be saved up.
	Total int64
	Per   time.Duration
	Burst int64
	// Ask is how many tokens the sender would like: 0 to 1e9. It may be given less. Ahead is how far ahead
	// it waits for tokens that are not earned yet: 0 to MaxReach.
	Ask   int64
	Ahead time.Duration
	// Back is how many tokens of earlier draws the sender has given up, of which BackSpent were of the
	// budget windows named here. Owed is what it used above what it had drawn.
	Back, BackSpent, Owed int64
	// Budgets are the amounts of calendar windows: at most MaxBudgets.
	Budgets []BudgetDraw
}

// A BudgetDraw is a budget as a Draw names it. Its window is worked out by the sender, for a store knows no
// calendar.
type BudgetDraw struct {
	// Amount is what may be used from Start until End, on the store's own clock in microseconds of
	// Unix time.
	Amount     int64
	Start, End int64
	// Seen is the most that the sender knows to be spent in this window.
	Seen int64
}

// Drawn is what a till has given.
type Drawn struct {
	Key uint64
	// Tokens can be used From after the request was sent at the earliest, and until Interval times two
	// after that at the latest.
	Tokens int64
	From   time.Duration
	// Spent is what is used of each budget, in the order of the request.
	Spent []int64
	// Lack says why there are not as many as were asked for.
	Lack Lack
	// Again is how long it takes until the till can give one token; 0 when that is not known.
	Again time.Duration
}

// Lack says why a till gives less than was asked for.
type Lack uint8

// Why a till gives less.
const (
	LackNothing Lack = iota // as much as was asked for
	LackTotal               // the total is used
	LackBudget              // a budget is spent
	LackWindow              // the window named is not the one of the store's clock
	LackFrozen              // the store has forgotten something
	LackVersion             // the till knows a newer version of the quotas
	LackFull                // the table of tills is full: draw from the one of other tags
)

// Bounds of draws.
const (
	MaxDraws     = 256
	MaxTills     = 1024
	MaxBudgets   = 3
	MaxBusyBytes = 384
)

// A Till is the number that a record keeps for one tag.
type Till struct {
	Key     uint64
	Version Version
	// Paid is the logical time, in microseconds, up to which the tokens of the tag are given out.
	Paid int64
	// Spent is what is used of budget windows, by where they begin.
	Spent []Spent
}

// Spent is what is used of one budget window.
type Spent struct {
	Start, Tokens int64
}

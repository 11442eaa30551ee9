package limit

import "time"

// A Quota is what one tag may use of a limit. The zero Quota reserves nothing, has no total of its
// own, and weight 1.
type Quota struct {
	// Reserved is what the tag gets whenever it asks for it, whatever the others do, in tokens per
	// Per: 0 (nothing) to the limit. What it does not ask for goes to the others.
	Reserved int
	// Total is the most that the tag may use over the whole pool, in tokens per Per: 0 (no total) or
	// Reserved to 1e9. In files, documents and commands no total is none, and 0 is Blocked.
	Total int
	// Blocked grants the tag nothing: a total of 0 in files. Draws that do not wait fail with ReasonQuota, those that
	// do wait until somebody changes the quota. What is reserved counts for nothing meanwhile. Only without Total.
	Blocked bool
	// Burst is how many tokens of Total can be saved up: 0 to 1e9. Defaults to what Total earns in
	// 100 ms, at least 1. Only with Total.
	Burst int
	// Per is the period of Reserved and Total: 1 ms to 31 days. Defaults to the limit's Per.
	Per time.Duration
	// Weight is the part of what is not reserved, against the other tags of its class: 1 to 1000.
	// Defaults to 1.
	Weight int
	// Class says who comes first where there is not enough. Defaults to Interactive.
	Class Class
	// Budgets are amounts for a calendar hour, day or month: at most one of each.
	Budgets []Budget
	// Hard promises at most Total tokens in any window of length Per, by granting less in the long run, the
	// less the shorter Per is: about 54 % of Total with 10 s, 88 % with a minute, 99.8 % with an hour; see
	// Kept. Only with Total, and Per of 10 s or more.
	Hard bool
	// Shadow counts and shows what the quota would refuse, and refuses nothing by Total or Budgets. What
	// is reserved counts all the same.
	Shadow bool
}

// Class says who comes first where the limit is not enough for all.
type Class string

// The classes, the first one first. Each lower one that asks for tokens keeps a twentieth of the
// limit, beside what its tags have reserved, and at most half of what is not reserved.
const (
	Interactive Class = "interactive"
	Batch       Class = "batch"
)

// A Budget is an amount of tokens for each calendar window, exact over the whole pool.
type Budget struct {
	// Amount is the number of tokens in one window: 1 to 1e15.
	Amount int64
	// Per is the calendar window: Hour, Day or Month.
	Per Period
	// Zone is the time zone in which days and months begin, by its IANA name. Defaults to UTC.
	Zone string
	// Then is what happens when it is spent. Defaults to Refuse.
	Then Then
}

// Period is a calendar window.
type Period string

// The calendar windows.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Month Period = "month"
)

// Then is what happens at the end of a budget.
type Then string

// What happens at the end of a budget.
const (
	// Refuse: a draw that does not wait, or has a deadline before the window ends, fails with ReasonBudget, and
	// RetryAfter is that end. One without a deadline waits for the next window, as it waits for any other token.
	Refuse Then = "refuse"
	// Fallback: as Refuse, and a sink hands the messages to its fallback sink.
	Fallback Then = "fallback"
	// Lower: the tag goes on in class Batch until the window ends.
	Lower Then = "batch"
)

// A QuotaPattern gives a quota to each tag whose name matches: each tag has its own.
type QuotaPattern struct {
	// Tag is the pattern in the form of path.Match, such as free/*.
	Tag string
	Quota
}

// Quotas are those of a whole limit. The zero Quotas are none.
type Quotas struct {
	// Tags are the quotas by name: 1 to 64 bytes of text. At most 1000.
	Tags map[string]Quota
	// Match are patterns for the names that Tags does not have; the first that matches counts. At
	// most 100.
	Match []QuotaPattern
	// Other is the quota of all other tags together, and of what has no tag. It reserves nothing
	// unless it says so.
	Other Quota
}

package limit

import (
	"time"
)

// A Quota says how much of a limit one tag may use. The zero Quota reserves nothing, has no total, and has weight 1.
type Quota struct {
	// Reserved is the rate that the tag always gets on demand, whatever other tags do, in tokens per Per: 0 (nothing) to the limit. Other
	// tags get the part that it does not ask for.
	Reserved int
	// Total is the most that the tag may use over the whole pool, in tokens per Per: 0 (no total) or Reserved to 1e9. In files, documents
	// and commands, leave total out for no total; 0 there means Blocked.
	Total int
	// Blocked grants the tag nothing: a total of 0 in files. Draws that do not wait fail with ReasonQuota; other draws wait until somebody
	// changes the quota. Reserved has no effect meanwhile. Only without Total.
	Blocked bool
	// Burst is how many tokens of Total can be saved up: 0 to 1e9. Defaults to what Total earns in 100 ms, but at least 1. Only with Total.
	Burst int
	// Per is the period of Reserved and Total: 1 ms to 31 days. Defaults to the limit's Per.
	Per time.Duration
	// Weight is the tag's weight when unreserved tokens are divided among the tags of its class: 1 to 1000. Defaults to 1.
	Weight int
	// Class sets the priority when there is not enough. Defaults to Interactive.
	Class Class `json:"class,omitempty"`
	// Budgets are amounts for a calendar hour, day or month: at most one of each.
	Budgets []Budget `json:"budgets,omitempty"`
	// Hard promises at most Total tokens in any window of length Per. It grants less in the long run, the less the shorter Per is: about 54
	// % of Total with 10 s, 88 % with a minute, 99.8 % with an hour; see Kept. Only with Total, and Per of 10 s or more.
	Hard bool `json:"hard,omitempty"`
	// Shadow counts and shows what the quota would refuse, but refuses nothing by Total or Budgets. Reserved still applies.
	Shadow bool `json:"shadow,omitempty"`
}

// Class sets the priority when the limit is not enough for all.
type Class string

// The classes, in order of priority. Besides the tokens reserved for its tags, a lower class that asks for tokens keeps a twentieth of the
// limit, but at most half of the unreserved part.
const (
	ClassInteractive Class = "interactive"
	ClassBatch       Class = "batch"
)

// A Budget is an amount of tokens for each calendar window, exact over the whole pool.
type Budget struct {
	// Amount is the number of tokens in one window: 1 to 1e15.
	Amount int64 `json:"amount"`
	// Per is the calendar window: Hour, Day or Month.
	Per Period `json:"per"`
	// Zone is the time zone in which days and months begin, by its IANA name. Defaults to UTC.
	Zone string `json:"zone,omitempty"`
	// Then says what happens when the budget is spent. Defaults to Refuse.
	Then Then `json:"then,omitempty"`
}

// Period is a calendar window.
type Period string

// The calendar windows.
const (
	PeriodHour  Period = "hour"
	PeriodDay   Period = "day"
	PeriodMonth Period = "month"
)

// Then says what happens when a budget is spent.
type Then string

// Actions when a budget is spent.
const (
	// ThenRefuse fails a draw that does not wait, or has a deadline before the window ends, with ReasonBudget; RetryAfter is the time until
	// that end. A draw without a deadline waits for the next window, as it waits for any other token.
	ThenRefuse Then = "refuse"
	// ThenFallback acts as Refuse, and a sink passes the messages to its fallback sink.
	ThenFallback Then = "fallback"
	// ThenLower moves the tag to class Batch until the window ends.
	ThenLower Then = "batch"
)

// A QuotaPattern gives each tag with a matching name a quota of its own.
type QuotaPattern struct {
	// Tag is the pattern, in the syntax of path.Match, such as free/*.
	Tag string
	Quota
}

// Quotas are the quotas of a whole limit. The zero Quotas has none.
type Quotas struct {
	// Tags are the quotas by name, of 1 to 64 bytes of text. At most 1000.
	Tags map[string]Quota `json:"tags,omitempty"`
	// Match are patterns for names that are not in Tags. The first matching pattern applies. At most 100.
	Match []QuotaPattern `json:"match,omitempty"`
	// Other is the quota of all other tags together, including draws without a tag. It reserves nothing by default.
	Other Quota `json:"other,omitzero"`
}

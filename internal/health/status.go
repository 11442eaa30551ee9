package health

import (
	"encoding/json"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Status is what /statusz shows.
type Status struct {
	Now    time.Time `json:"now"`
	Limits []Limit   `json:"limits"`
}

// A Duration is printed as people write it, such as 1m30s or 1m.
type Duration time.Duration

// String prints it, short of what nobody reads.
func (d Duration) String() string {
	to := time.Microsecond
	if time.Duration(d) >= time.Second {
		to = time.Millisecond
	}
	return limit.ShortDuration(time.Duration(d).Round(to))
}

// MarshalJSON prints it as a text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads what MarshalJSON prints.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	t, err := time.ParseDuration(s)
	*d = Duration(t)
	return err
}

// A Limit is one limit of this process. Shares and demands are fractions of the limit,
// from 0 to 1.
type Limit struct {
	Name string `json:"name"`
	// Ready: it can grant. NotReady says why not.
	Ready    bool   `json:"ready"`
	NotReady string `json:"notReady,omitempty"`
	// Why says in a sentence what holds callers back, as numathrottle why does. Cause is it in a word, a reason or none, and Level is broken,
	// held, usual or nobody.
	Why   string `json:"why"`
	Cause string `json:"cause"`
	Level string `json:"level"`

	// Max per Per is the limit of the whole pool; 0: none. Ceiling is what the pool is
	// granted in the long run, in tokens per second.
	Max     int      `json:"max"`
	Per     Duration `json:"per"`
	Burst   int      `json:"burst"`
	Hard    bool     `json:"hard"`
	Ceiling float64  `json:"ceiling"`

	// InFlight is the limit when it is one on calls in flight at once, of which Granted and
	// Refused count slots; nil for others. With it Max, Per, Burst, Hard, Ceiling, Rate,
	// Tokens and Returned say nothing.
	InFlight *InFlight `json:"inFlight,omitempty"`

	// Share is what this processor holds, Rate what that earns, in tokens per second,
	// Tokens what is at hand.
	Share    float64 `json:"share"`
	Degraded bool    `json:"degraded"`
	Rate     float64 `json:"rate"`
	Tokens   float64 `json:"tokens"`

	// Service is how an adaptive limit stands with the called service; nil for others.
	Service *Service `json:"service,omitempty"`

	// Paused is the pause that holds this processor; nil: none does.
	Paused *Paused `json:"paused,omitempty"`

	// Throttled is why callers are held back at this moment; nil when they are not.
	Throttled *Throttled `json:"throttled,omitempty"`
	Waiting   int        `json:"waiting"`
	Granted   int64      `json:"granted"`
	Returned  int64      `json:"returned"`
	Refused   int64      `json:"refused"`
	HeldBack  []HeldBack `json:"heldBack"`

	// Tags are those with quotas that were in use, the busiest first, at most MaxTags; MoreTags counts the others.
	Tags     []Tag `json:"tags,omitempty"`
	MoreTags int   `json:"moreTags,omitempty"`

	Pool  *Pool `json:"pool,omitempty"` // nil without a pool
	Store Store `json:"store"`
}

func (l Limit) processor() string {
	if l.Pool == nil {
		return ""
	}
	return l.Pool.ID
}

// InFlight is a limit on calls in flight at once.
type InFlight struct {
	// Max is for the whole pool, Slots what this processor has of it, InUse what its calls take.
	Max   int `json:"max"`
	Slots int `json:"slots"`
	InUse int `json:"inUse"`
}

// Throttled is why callers are held back.
type Throttled struct {
	Reason string `json:"reason"`
	// RetryAfter is when one token could be granted; empty when that is not known.
	RetryAfter string `json:"retryAfter,omitempty"`
}

// Service is how an adaptive limit stands with the called service.
type Service struct {
	// Lowered says that its refusals lower the ceiling of the pool, Cuts how often they did.
	Lowered bool   `json:"lowered"`
	Cuts    uint64 `json:"cuts"`
	// Part is what this processor uses of its share.
	Part float64 `json:"part"`
	// Accepted, Refused and Overloaded count tokens of the calls that were reported.
	Accepted   int64 `json:"accepted"`
	Refused    int64 `json:"refused"`
	Overloaded int64 `json:"overloaded"`
}

// Paused is a pause.
type Paused struct {
	Tag    string `json:"tag,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// For is how long it goes on here; empty: until somebody resumes.
	For string `json:"for,omitempty"`
}

// HeldBack is how much callers were held back for a reason.
type HeldBack struct {
	Reason   string   `json:"reason"`
	Waits    int64    `json:"waits"`
	Refusals int64    `json:"refusals"`
	Time     Duration `json:"time"`
}

// MaxTags is how many tags of a limit are shown.
const MaxTags = 100

// A Tag is a tag with a quota: what it uses at this processor. Rates are in tokens per second.
type Tag struct {
	// Tag is empty for all without a quota of their own.
	Tag string `json:"tag"`
	// Used and Refused count tokens, Waiting are waited for.
	Used    int64 `json:"used"`
	Refused int64 `json:"refused"`
	Waiting int64 `json:"waiting"`
	// Rate is what it should get here while others lack tokens, Target what it may use over the whole pool, and By what holds
	// that there.
	Rate   float64 `json:"rate"`
	Target float64 `json:"target"`
	By     string  `json:"by,omitempty"`
	// Limiting is what it may use here at most because the called service refuses its calls; 0: nothing limits it.
	Limiting float64 `json:"limiting,omitempty"`
	// Cost is what a call costs on average, in tokens; 0: there are too few calls to tell.
	Cost float64 `json:"cost,omitempty"`
	// Spent of Budget is used in the window that ends first; 0 without budgets.
	Spent  int64 `json:"spent,omitempty"`
	Budget int64 `json:"budget,omitempty"`
	// Shadowed counts tokens that its quota would have refused; see throttle.Quota.Shadow.
	Shadowed int64 `json:"shadowed,omitempty"`
}

// A Pool is the pool as this processor sees it.
type Pool struct {
	Name       string   `json:"name"`
	ID         string   `json:"id"`
	State      string   `json:"state"`
	Processors int      `json:"processors"`
	PoolSize   int      `json:"poolSize"`
	Agreed     bool     `json:"agreed"`
	Wanted     float64  `json:"wanted"`
	Demand     float64  `json:"demand"`
	Lease      Duration `json:"lease"`
	LeaseLeft  Duration `json:"leaseLeft"`
	Interval   Duration `json:"interval"`
	// Frozen is how long no share can grow yet, FrozenBy why.
	Frozen   Duration `json:"frozen"`
	FrozenBy string   `json:"frozenBy,omitempty"`
	// PauseMissing are the processors that have not said yet that they go by the newest pause.
	PauseMissing []string `json:"pauseMissing,omitempty"`
	// Disagree says which settings of processors differ, who has them and which count; empty: none do.
	Disagree string `json:"disagree,omitempty"`
	// TookOver says that the process before this one, under the same ID, has died, and that this one has its share.
	TookOver bool        `json:"tookOver,omitempty"`
	Roster   []Processor `json:"roster"`
}

// A Processor is one line of the roster.
type Processor struct {
	ID       string  `json:"id"`
	Claim    float64 `json:"claim"`
	Demand   float64 `json:"demand"`
	PoolSize int     `json:"poolSize"`
}

// A Store is where the pool is kept.
type Store struct {
	// URL shows no secret.
	URL string `json:"url"`
	// Failures counts the syncs that have failed since the last answer.
	Failures  int    `json:"failures"`
	LastError string `json:"lastError,omitempty"`
}

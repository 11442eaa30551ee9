package health

import (
	"encoding/json"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
)

// Status is the content of /statusz.
type Status struct {
	Now    time.Time `json:"now"`
	Limits []Limit   `json:"limits"`
}

// A Duration is printed in the usual form, such as 1m30s or 1m.
type Duration time.Duration

// String formats it, rounded to a readable precision.
func (d Duration) String() string {
	to := time.Microsecond
	if time.Duration(d) >= time.Second {
		to = time.Millisecond
	}
	return duration.Short(time.Duration(d).Round(to))
}

// MarshalJSON formats it as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON parses the output of MarshalJSON.
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
	// Ready reports whether it can grant. NotReady says why not.
	Ready    bool   `json:"ready"`
	NotReady string `json:"notReady,omitempty"`
	// Why says in a sentence what limits callers, as numathrottle why does. Cause is that in a word, a reason or none. Level is broken,
	// held, usual or nobody.
	Why   string `json:"why"`
	Cause string `json:"cause"`
	Level string `json:"level"`

	// Max per Per is the limit of the whole pool; 0: none. Ceiling is the pool's long-run grant, in tokens per second.
	Max     int      `json:"max"`
	Per     Duration `json:"per"`
	Burst   int      `json:"burst"`
	Hard    bool     `json:"hard"`
	Ceiling float64  `json:"ceiling"`

	// InFlight is the limit on calls in flight; nil for others. Granted and Refused then count slots, and Max, Per, Burst, Hard, Ceiling,
	// Rate, Tokens and Returned are meaningless.
	InFlight *InFlight `json:"inFlight,omitempty"`

	// Share is this processor's share, Rate its earnings in tokens per second, and Tokens the tokens at hand.
	Share    float64 `json:"share"`
	Degraded bool    `json:"degraded"`
	Rate     float64 `json:"rate"`
	Tokens   float64 `json:"tokens"`

	// PodsWanted is this pod's part of the pods that the limit needs: the sum over all pods is their number. nil: not measured, or not known.
	PodsWanted *float64 `json:"podsWanted,omitempty"`

	// File is about the settings file; nil: the process follows none, and the pool goes by none.
	File *File `json:"file,omitempty"`

	// Service is an adaptive limit's state towards the called service; nil for others.
	Service *Service `json:"service,omitempty"`

	// Paused is the pause that affects this processor; nil: none.
	Paused *Paused `json:"paused,omitempty"`

	// Throttled is why callers are held back now; nil when they are not.
	Throttled *Throttled `json:"throttled,omitempty"`
	Waiting   int        `json:"waiting"`
	Granted   int64      `json:"granted"`
	Returned  int64      `json:"returned"`
	Refused   int64      `json:"refused"`
	HeldBack  []HeldBack `json:"heldBack"`

	// Tags are the tags with quotas that were in use, the busiest first, at most MaxTags; MoreTags counts the others.
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

// A File is a process's settings file, and the one of the pool. Files are named as NAME@HASH, the hash of their settings.
type File struct {
	// InForce is the changed file that counts for all pods; empty: none has changed. Own is this process's; empty: it has none.
	InForce string `json:"inForce,omitempty"`
	Own     string `json:"own,omitempty"`
	// Fault says why the newest content cannot be used. RestartNeeded are settings that count only after a restart.
	Fault         string   `json:"fault,omitempty"`
	RestartNeeded []string `json:"restartNeeded,omitempty"`
}

// InFlight is a limit on concurrent calls.
type InFlight struct {
	// Max is for the whole pool, Slots this processor's part of it, and InUse the slots of its calls.
	Max   int `json:"max"`
	Slots int `json:"slots"`
	InUse int `json:"inUse"`

	// Tags are the tags with quotas that were in use, the busiest first, at most MaxTags; MoreTags counts the others.
	Tags     []SlotTag `json:"tags,omitempty"`
	MoreTags int       `json:"moreTags,omitempty"`
}

// A SlotTag is a tag with a quota of calls in flight, and its use at this processor.
type SlotTag struct {
	// Tag is empty for all tags without a quota of their own.
	Tag string `json:"tag"`
	// InUse counts its calls in flight, Waiting the awaited ones, and Granted and Refused those since it came into use. Allowed is how many may
	// be in flight here by its total; nil: there is none. Reserved is how many are reserved here.
	InUse    int     `json:"inUse"`
	Allowed  *int    `json:"allowed,omitempty"`
	Reserved float64 `json:"reserved"`
	Waiting  int     `json:"waiting"`
	Granted  int64   `json:"granted"`
	Refused  int64   `json:"refused"`
	// Longest is for how long the oldest of its calls has been in flight; 0: none is.
	Longest Duration `json:"longest"`
}

// Throttled is why callers are held back.
type Throttled struct {
	Reason string `json:"reason"`
	// RetryAfter is when one token could be granted; empty if unknown.
	RetryAfter string `json:"retryAfter,omitempty"`
}

// Service is an adaptive limit's state towards the called service.
type Service struct {
	// Lowered reports whether its refusals lower the ceiling of the pool, and Cuts how often they did.
	Lowered bool   `json:"lowered"`
	Cuts    uint64 `json:"cuts"`
	// Part is the part of its share that this processor uses.
	Part float64 `json:"part"`
	// Accepted, Refused and Overloaded count tokens of reported calls.
	Accepted   int64 `json:"accepted"`
	Refused    int64 `json:"refused"`
	Overloaded int64 `json:"overloaded"`
}

// Paused is a pause.
type Paused struct {
	Tag    string `json:"tag,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// For is how long it continues here; empty: until somebody resumes.
	For string `json:"for,omitempty"`
}

// HeldBack is how much callers were held back for a reason.
type HeldBack struct {
	Reason   string   `json:"reason"`
	Waits    int64    `json:"waits"`
	Refusals int64    `json:"refusals"`
	Time     Duration `json:"time"`
}

// MaxTags bounds the tags shown of a limit.
const MaxTags = 100

// A Tag is a tag with a quota, and its use at this processor. Rates are in tokens per second.
type Tag struct {
	// Tag is empty for all tags without a quota of their own.
	Tag string `json:"tag"`
	// Used and Refused count tokens, and Waiting the awaited ones.
	Used    int64 `json:"used"`
	Refused int64 `json:"refused"`
	Waiting int64 `json:"waiting"`
	// Rate is its due here while others lack tokens, Target its allowed use over the whole pool, and By the cause of that target.
	Rate   float64 `json:"rate"`
	Target float64 `json:"target"`
	By     string  `json:"by,omitempty"`
	// Limiting bounds its use here because the called service refuses its calls; 0: no bound.
	Limiting float64 `json:"limiting,omitempty"`
	// Cost is the average cost of a call, in tokens; 0: too few calls.
	Cost float64 `json:"cost,omitempty"`
	// Spent is used of Budget in the window that ends first; 0 without budgets.
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
	Silent     int      `json:"silent,omitempty"` // those of them that should have synced by now
	PoolSize   int      `json:"poolSize"`
	Agreed     bool     `json:"agreed"`
	Wanted     float64  `json:"wanted"`
	Demand     float64  `json:"demand"`
	Lease      Duration `json:"lease"`
	LeaseLeft  Duration `json:"leaseLeft"`
	Interval   Duration `json:"interval"`
	// Frozen is how long no share can grow yet, FrozenBy the reason.
	Frozen   Duration `json:"frozen"`
	FrozenBy string   `json:"frozenBy,omitempty"`
	// PauseMissing are the processors that have not confirmed the newest pause yet.
	PauseMissing []string `json:"pauseMissing,omitempty"`
	// Disagree says which settings of processors differ, whose they are and which count; empty: none differ.
	Disagree string `json:"disagree,omitempty"`
	// TookOver reports whether the previous process under the same ID has died, and this one has its share.
	TookOver bool        `json:"tookOver,omitempty"`
	Roster   []Processor `json:"roster"`
}

// A Processor is one line of the roster.
type Processor struct {
	ID       string  `json:"id"`
	Claim    float64 `json:"claim"`
	Demand   float64 `json:"demand"`
	PoolSize int     `json:"poolSize"`
	// Silent is how long ago it synced, as of this pod's last sync.
	Silent Duration `json:"silent"`
}

// A Store is the pool's store.
type Store struct {
	// URL shows no secret.
	URL string `json:"url"`
	// Failures counts the failed syncs since the last answer.
	Failures  int    `json:"failures"`
	LastError string `json:"lastError,omitempty"`
}

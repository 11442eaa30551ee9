package why

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A State is a pool, or a limit without one, at one moment. The zero value of each field means no, none or unknown.
type State struct {
	// Pool is empty for a limit without a pool on record.
	Pool string
	Now  time.Time
	// Limit describes the limit in force, such as 600 per 1m. For calls in flight it is empty, and Slots is their maximum. Without both,
	// and without Unknown, there is no limit.
	Limit   string
	Slots   int
	Unknown bool // there is a limit that no pod reports
	// PerSecond is the rate of the limit, and Ramp the current one of its ramp, in tokens per second.
	PerSecond, Ramp float64
	// Lowered is the fraction to which refusals by the called service have lowered the limit.
	Lowered float64
	// Announced describes the limit that the called service announces, if that is lower than the one in force. Followed means that the one in
	// force is the announced one, and Awaited that it is the one until something is announced.
	Announced         string
	Followed, Awaited bool
	// Disagree reports whether pods are configured with different limits: the lowest is in force.
	Disagree bool
	// Differing names settings in which pods differ, such as burst.
	Differing []string
	Override  *Order
	Files     Files
	// Quotas are the orders of changed quotas by tag, as Pod.Tag names them.
	Quotas map[string]Order
	Pauses []limit.Paused
	// Unreadable names the documents of the pool that the asking process cannot read.
	Unreadable []string
	Frozen     time.Duration
	FrozenBy   driver.FreezeCause
	Pods       []Pod
	// Silent are the pods that should have synced by now, and are not among Pods. Gone is how long ago the last of those was active that
	// have died.
	Silent []SilentPod
	Gone   time.Duration
	// Self is the asking process; nil: an observer.
	Self *Self
	// Failure is the error of the store in its own words, and Remedy the remedy, if known; see FailureOf.
	Failure, Remedy string
}

// An Order is an override, or the change of a quota: its author and its end; the zero Time: until it is cleared.
type Order struct {
	By    string
	Until time.Time
}

// A Pod is one process of the pool. Share is a fraction of the limit in force, and Used of what that can grant in the long run.
type Pod struct {
	ID          string
	Share, Used float64
	// Waiting counts all its waiting callers. Reason says why a call would have to wait; empty: it would not. Tag is the tag whose quota or
	// pause that is, and Pattern that of its quota, as in protocol.Standing.
	Waiting int
	Reason  limit.Reason
	Tag     string
	Pattern string
	Hold    sharing.Hold
}

// A SilentPod has not synced For so long. Its Share is nobody else's for Left more.
type SilentPod struct {
	ID        string
	Share     float64
	For, Left time.Duration
}

// A Self is a process's view of itself.
type Self struct {
	// ID is its name in the pool.
	ID string
	// Reason says why it grants nothing at all; empty: it holds a share.
	Reason limit.Reason
	// Degraded reports whether it uses its share without the store's consent. Share is that fraction of the limit.
	Degraded bool
	Share    float64
}

// A Level says how much an answer matters, the most important one first.
type Level string

// The levels.
const (
	Broken Level = "broken" // something is wrong, or somebody has stopped it: an operator should look
	Held   Level = "held"   // limits and quotas hold callers back, as they are meant to
	Usual  Level = "usual"  // nothing holds callers back
	Nobody Level = "nobody" // nobody is in the pool
)

// Rank returns the rank of a level; the most important one has 0.
func (l Level) Rank() int {
	switch l {
	case Broken:
		return 0
	case Held:
		return 1
	case Usual:
		return 2
	case Nobody:
	}
	return 3
}

// An Answer says what limits callers.
type Answer struct {
	// Cause is a reason as in the metrics, or one of the causes below.
	Cause    string
	Level    Level
	Sentence string
}

// The causes that are not reasons.
const (
	CauseNone   = "none"   // nothing holds callers back
	CauseNobody = "nobody" // nobody is in the pool
	CauseSilent = "silent" // a pod is silent, and its share may be unused
)

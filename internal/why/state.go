package why

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A State is a pool, or a limit without one, at one moment. The zero value of each field says that it is not so, or not known.
type State struct {
	// Pool is empty for a limit without a pool on record.
	Pool string
	Now  time.Time
	// Limit is the limit in force in words, such as 600 per 1m; of calls in flight it is empty, and Slots is how many there may be. Without
	// both, and without Unknown, nothing is limited.
	Limit   string
	Slots   int
	Unknown bool // there is a limit that nobody tells
	// PerSecond is what the limit comes to, and Ramp where its ramp stands, in tokens per second.
	PerSecond, Ramp float64
	// Lowered is to which part the refusals of the called service have lowered the limit.
	Lowered float64
	// Disagree says that pods are configured with different limits, and that the lowest is in force.
	Disagree bool
	Override *Order
	Pauses   []limit.Paused
	Frozen   time.Duration
	FrozenBy driver.FreezeCause
	Pods     []Pod
	// Silent is how long ago the last of the pods was heard that are not heard any more.
	Silent time.Duration
	// Self is the process that asks; nil: an observer.
	Self *Self
	// Failure is the error of the store, in its own words, and Remedy what to do about it, if that is known; see FailureOf.
	Failure, Remedy string
}

// An Order is an override: who wants it, and until when; the zero Time: until it is cleared.
type Order struct {
	By    string
	Until time.Time
}

// A Pod is one process of the pool. Share and Used are parts of the limit in force.
type Pod struct {
	ID          string
	Share, Used float64
	// Waiting counts its callers that wait, whatever for. Reason says why one of them would have to; empty: it would not. Tag is whose quota, or
	// pause, that is, as consensus.Standing has it.
	Waiting int
	Reason  limit.Reason
	Tag     string
	Hold    limit.Hold
}

// A Self is what a process knows of itself.
type Self struct {
	// ID is its name in the pool.
	ID string
	// Reason says why it grants nothing at all; empty: it holds a share.
	Reason limit.Reason
	// Degraded says that its share is used without the store's consent. Share is that part of the limit.
	Degraded bool
	Share    float64
}

// A Level says how much an answer matters, the most first.
type Level string

// The levels.
const (
	Broken Level = "broken" // something is wrong, or somebody has stopped it: an operator should look
	Held   Level = "held"   // limits and quotas hold callers back, as they are meant to
	Usual  Level = "usual"  // nothing holds callers back
	Nobody Level = "nobody" // nobody is in the pool
)

// Rank is the place of a level, the one that matters most at 0.
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

// An Answer is what holds callers back.
type Answer struct {
	// Cause is a reason as metrics have it, or one of the causes below.
	Cause    string
	Level    Level
	Sentence string
}

// The causes that are no reasons.
const (
	CauseNone   = "none"   // nothing holds callers back
	CauseNobody = "nobody" // nobody is in the pool
)

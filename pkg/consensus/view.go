package consensus

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The parts of a View that operators change or read; package operate has the calls.
type (
	// A TagView is how a processor sees one of its own tags. Rates are in tokens per second.
	TagView = protocol.TagView
	// An Override replaces the configured limit of a whole pool.
	Override = protocol.Override
	// QuotaChanges are an operator's changes of the quotas of a pool.
	QuotaChanges = protocol.QuotaChanges
)

// A View is how a processor sees its pool at one moment.
type View struct {
	Pool, ID, Incarnation string
	// State is "joining", "holding", "store_lost", "replaced" or "left".
	State string
	// Share is the share in force and Want the one that the policy asks for. LeaseLeft is how long the share is good for without another
	// sync.
	Share, Want Share
	LeaseLeft   time.Duration
	// Degraded marks a share that is used without the store's consent.
	Degraded bool
	// Issuing says that the pool has no shares at present: tokens are issued one by one.
	Issuing bool
	// Live counts the live processors. PoolSize is the largest pool size that one
	// of them reported, and Agreed is consensus: all report the same, and it is Live.
	Live, PoolSize int
	Agreed         bool
	// Silent counts the live processors that should have synced by now.
	Silent int
	// Roster is the pool by rising ID, as of the last answer.
	Roster []RosterRow
	// TookOver says that a previous process under the same ID has died, and that its holdings were free at once.
	TookOver bool
	// Demand is the demand reported last.
	Demand Share
	// Lease is the pool's lease and Interval the present time between syncs. Stretch is how
	// many times as long as usual that is, because the store answers late; 1: as usual.
	Lease, Interval time.Duration
	Stretch         float64
	// Frozen is how long no share can grow yet, and FrozenBy why.
	Frozen   time.Duration
	FrozenBy driver.FreezeCause
	// Failures counts the failed syncs since the last answer; LastError is the
	// newest failure, nil once the store answers again.
	Failures  int
	LastError error
	// Ceiling is the present limit of the whole pool, in tokens per Per of this processor's limit, and Override the pool's override; 0 and
	// zero: there is none.
	Ceiling  float64
	Override Override
	// Files are the settings file in force in the pool, and that of this process.
	Files protocol.FileView
	// Adapted says that the ceiling is lower than it might be because the called service refuses calls. Cuts is how often that has lowered
	// it; see throttle.Limit.Adaptive.
	Adapted bool
	Cuts    uint64
	// Paused lists the pauses, each tag once. Generation counts their changes; 0: there were none. PauseMissing are the live processors
	// that have not reported yet that they have the same in force.
	Paused       []limit.Paused
	Generation   uint64
	PauseMissing []string
	// Tags are this processor's own tags by name; nil without quotas. QuotaVersion is the version of the pool's document that changes them,
	// 0 if none does. Quotas are the changes. QuotaError is why a newer one cannot be read; the previous one stays in force.
	Tags         []TagView
	QuotaVersion driver.Version
	Quotas       QuotaChanges
	QuotaError   error
	// Unreadable names the documents of the pool that this processor cannot read; see Overview.Unreadable.
	Unreadable []string
	// Revision is the newest revision of the record seen.
	Revision uint64
}

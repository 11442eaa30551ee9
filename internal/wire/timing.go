package wire

import (
	"time"
)

// maxSyncRate is the number of syncs per second that a pool asks of the store in steady state. The interval stretches to keep to it, as far
// as Interval allows.
const maxSyncRate = 100

// Interval returns the time between two syncs of one processor: a tenth of the lease, stretched so that the pool syncs at most a hundred
// times a second. It is never above a quarter of the lease: a pool with more than 25 processors for each second of the lease syncs more
// often.
func Interval(lease time.Duration, live int) time.Duration {
	return min(max(lease/10, time.Duration(live)*time.Second/maxSyncRate), lease/4)
}

// Validity is how long after its slot a permit is good, for a spacing in force: a
// tenth of it, at least 250 ms and at most 2.5 s. A permit that was not used by then is void.
func Validity(spacing time.Duration) time.Duration {
	return min(max(spacing/10, 250*time.Millisecond), 2500*time.Millisecond)
}

// Removal is the time after which a silent row and its claim are removed: one and a half leases. It covers the clamp of a jumping store
// clock (a quarter of a lease) and clocks that run 8.33 % fast on one side and slow on the other.
func Removal(lease time.Duration) time.Duration { return lease + lease/2 }

// Clamp is the longest gap between two syncs of a pool that counts as time.
func Clamp(lease time.Duration) time.Duration { return lease / 4 }

package driver

import "time"

// maxSyncRate is the number of syncs per second that a pool asks of the store in steady state. The interval stretches to keep to it, as far
// as Interval allows.
const maxSyncRate = 100

// Interval returns the time between two syncs of one processor: a tenth of the lease, stretched so that the pool syncs at most a hundred
// times a second. It is never above a quarter of the lease: a pool with more than 25 processors for each second of the lease syncs more
// often.
func Interval(lease time.Duration, live int) time.Duration {
	return min(max(lease/10, time.Duration(live)*time.Second/maxSyncRate), lease/4)
}

package consensus

import "github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"

// The names of package driver that users of a pool meet.
type (
	// RequestError is [driver.RequestError].
	RequestError = driver.RequestError
	// RosterRow is [driver.RosterRow].
	RosterRow = driver.RosterRow
	// Share is [driver.Share].
	Share = driver.Share
	// Store is [driver.Store].
	Store = driver.Store
)

// The default lease and its bounds.
const (
	DefaultLease = driver.DefaultLease
	MaxLease     = driver.MaxLease
	MinLease     = driver.MinLease
)

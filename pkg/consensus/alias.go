package consensus

import "github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"

// The names of package driver that users of a pool meet and the processor's side of the protocol uses.
type (
	// ConflictError is driver.ConflictError.
	ConflictError = driver.ConflictError
	// FreezeCause is driver.FreezeCause.
	FreezeCause = driver.FreezeCause
	// RequestError is driver.RequestError.
	RequestError = driver.RequestError
	// RosterRow is driver.RosterRow.
	RosterRow = driver.RosterRow
	// Share is driver.Share.
	Share = driver.Share
	// Store is driver.Store.
	Store = driver.Store
	// Version is driver.Version.
	Version = driver.Version
)

// The bounds and constants of package driver.
const (
	DefaultLease     = driver.DefaultLease
	MaxLease         = driver.MaxLease
	maxDocumentBytes = driver.MaxDocumentBytes
	maxNoteBytes     = driver.MaxNoteBytes
	MinLease         = driver.MinLease
	Whole            = driver.Whole
)

// The errors and functions of package driver.
var (
	ErrContention = driver.ErrContention
	ErrNoPool     = driver.ErrNoPool
	ErrNoPush     = driver.ErrNoPush
	Removal       = driver.Removal
)

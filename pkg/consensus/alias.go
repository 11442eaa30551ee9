package consensus

import "github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"

type (
	Answer         = driver.Answer
	At             = driver.At
	ConflictError  = driver.ConflictError
	Death          = driver.Death
	Document       = driver.Document
	DocumentReport = driver.DocumentReport
	Grant          = driver.Grant
	Holding        = driver.Holding
	FreezeCause    = driver.FreezeCause
	Issuer         = driver.Permits
	Leave          = driver.Leave
	Pending        = driver.PendingReservation
	Pusher         = driver.Pusher
	Record         = driver.Record
	Request        = driver.Request
	RequestError   = driver.RequestError
	Reserve        = driver.Reserve
	Reserved       = driver.Reserved
	RosterRow      = driver.RosterRow
	Row            = driver.Row
	RowKey         = driver.RowKey
	RowState       = driver.RowState
	Share          = driver.Share
	Slots          = driver.Reservation
	Status         = driver.Status
	Store          = driver.Store
	Report         = driver.Report
	Ticket         = driver.Ticket
	Version        = driver.Version
)

const (
	Behind           = driver.Behind
	Cloned           = driver.Cloned
	DefaultLease     = driver.DefaultLease
	FormatVersion    = driver.FormatVersion
	FreezeIdentity   = driver.FreezeIdentity
	FreezeLostRow    = driver.FreezeLostRow
	FreezeNewRecord  = driver.FreezeNewRecord
	FreezeNone       = driver.FreezeNone
	FreezeRollback   = driver.FreezeRollback
	Granted          = driver.Granted
	Late             = driver.Late
	MaxAhead         = driver.MaxAhead
	MaxDead          = driver.MaxDead
	MaxDocumentBytes = driver.MaxDocumentBytes
	MaxDocuments     = driver.MaxDocuments
	MaxLease         = driver.MaxLease
	MaxMicros        = driver.MaxMicros
	MaxNewsBytes     = driver.MaxNewsBytes
	MaxNoteBytes     = driver.MaxNoteBytes
	MaxOutlasts      = driver.MaxOutlasts
	MaxReach         = driver.MaxReach
	MaxSlots         = driver.MaxSlots
	MaxSpacing       = driver.MaxSpacing
	MaxUnanswered    = driver.MaxUnanswered
	MaxVersion       = driver.MaxVersion
	MinLease         = driver.MinLease
	MinSpacing       = driver.MinSpacing
	Removed          = driver.Removed
	Replaced         = driver.Replaced
	RowCloned        = driver.RowCloned
	RowLeft          = driver.RowLeft
	RowLive          = driver.RowLive
	RowReplaced      = driver.RowReplaced
	Whole            = driver.Whole
)

var (
	CheckLoaded    = driver.CheckLoaded
	Clamp          = driver.Clamp
	ErrContention  = driver.ErrContention
	ErrNoPool      = driver.ErrNoPool
	ErrNoPush      = driver.ErrNoPush
	ErrWrongAnswer = driver.ErrWrongAnswer
	Interval       = driver.Interval
	IsName         = driver.IsName
	LaterVersion   = driver.LaterVersion
	NextVersion    = driver.NextVersion
	ParseRecord    = driver.ParseRecord
	Removal        = driver.Removal
	ValidateNames  = driver.ValidateNames
	ValidateNews   = driver.ValidateNews
	ValidateNote   = driver.ValidateNote
	ValidatePool   = driver.ValidatePool
	Validity       = driver.Validity
)

package consensus

import "github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"

// The words of package driver that the users of a pool meet, and the processor's side of the protocol uses.
type (
	// Answer is driver.Answer.
	Answer = driver.Answer
	// At is driver.At.
	At = driver.At
	// ConflictError is driver.ConflictError.
	ConflictError = driver.ConflictError
	// Death is driver.Death.
	Death = driver.Death
	// Document is driver.Document.
	Document = driver.Document
	// DocumentReport is driver.DocumentReport.
	DocumentReport = driver.DocumentReport
	// FreezeCause is driver.FreezeCause.
	FreezeCause = driver.FreezeCause
	// Grant is driver.Grant.
	Grant = driver.Grant
	// Holding is driver.Holding.
	Holding = driver.Holding
	// Leave is driver.Leave.
	Leave = driver.Leave
	// Pusher is driver.Pusher.
	Pusher = driver.Pusher
	// Record is driver.Record.
	Record = driver.Record
	// Report is driver.Report.
	Report = driver.Report
	// Request is driver.Request.
	Request = driver.Request
	// RequestError is driver.RequestError.
	RequestError = driver.RequestError
	// Reserve is driver.Reserve.
	Reserve = driver.Reserve
	// Reserved is driver.Reserved.
	Reserved = driver.Reserved
	// RosterRow is driver.RosterRow.
	RosterRow = driver.RosterRow
	// Row is driver.Row.
	Row = driver.Row
	// RowKey is driver.RowKey.
	RowKey = driver.RowKey
	// RowState is driver.RowState.
	RowState = driver.RowState
	// Share is driver.Share.
	Share = driver.Share
	// Status is driver.Status.
	Status = driver.Status
	// Store is driver.Store.
	Store = driver.Store
	// Ticket is driver.Ticket.
	Ticket = driver.Ticket
	// Version is driver.Version.
	Version = driver.Version
)

// The bounds and constants of package driver.
const (
	Behind           = driver.Behind
	Cloned           = driver.Cloned
	DefaultLease     = driver.DefaultLease
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
	MaxSpacing       = driver.MaxSpacing
	MaxUnanswered    = driver.MaxUnanswered
	MaxVersion       = driver.MaxVersion
	MinLease         = driver.MinLease
	MinSpacing       = driver.MinSpacing
	Replaced         = driver.Replaced
	RowCloned        = driver.RowCloned
	RowLive          = driver.RowLive
	RowReplaced      = driver.RowReplaced
	Whole            = driver.Whole
)

// The errors and functions of package driver.
var (
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
	ValidateNote   = driver.ValidateNote
	Validity       = driver.Validity
)

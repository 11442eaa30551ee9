// Package wire holds the bounds of the messages between a processor and its store, and of a record. Requests and answers beyond them are
// refused; package driver describes the fields.
package wire

import (
	"strings"
	"time"
)

const (
	// MaxMicros is the latest logical time, in microseconds: that of the year 38,000. Later times are refused, so that
	// arithmetic on them never overflows.
	MaxMicros = 1 << 60

	// MaxDead is the largest number of deaths in a request, and of last states (protocol.LastState) that are kept.
	MaxDead = 4

	// MaxOutlasts is longer than any use of a share without the store's consent. An hour on a clock that is 8.33 % slow takes 1.18 hours on
	// one that is 8.33 % fast.
	MaxOutlasts = 75 * time.Minute

	// MaxUnanswered is the largest number of unanswered requests that a request names. A processor with so many repeats the newest of them.
	MaxUnanswered = 32

	// FormatVersion is the version of the record's format. A record of a newer format is refused, never guessed at.
	FormatVersion = 1
)

// Bounds of documents, notes and news.
const (
	// MaxDocumentBytes is the size of the largest body.
	MaxDocumentBytes = 4096
	// MaxDocuments is how many documents a pool may have.
	MaxDocuments = 8
	// MaxNoteBytes is the size of the largest note; see driver.Report.
	MaxNoteBytes = 128
	// MaxNewsBytes is the size of the largest news.
	MaxNewsBytes = 8192
	// MaxVersion is the highest version of a document.
	MaxVersion = 1<<63 - 1
)

// Bounds of names.
const (
	// MaxNames is how many tag buckets of names there are at once.
	MaxNames = 4096
	// SketchCols is the number of columns of the sketch, and FirstPaid the place of the first cell of time.
	SketchCols = 8192
	FirstPaid  = 2 * SketchCols
	// MaxCells is how many cells there are at most.
	MaxCells = 2 * FirstPaid
)

// Bounds of a driver.Reserve.
const (
	// MaxSlots is the largest number of slots that one request reserves.
	MaxSlots = 64
	// MaxAhead is the largest number of slots that may be reserved beyond those due.
	MaxAhead = 1000
	// MinSpacing and MaxSpacing bound the spacing of the whole limit.
	MinSpacing = time.Microsecond
	MaxSpacing = 744 * time.Hour
	// MaxReach is further ahead than any slot can lie.
	MaxReach = (MaxAhead + 3) * MaxSpacing
)

// Bounds of draws.
const (
	MaxDraws      = 1024
	MaxTagBuckets = 2048
	MaxBudgets    = 3
	MaxBusyBytes  = 448
	// MaxTokens bounds each number of tokens in a draw but those of budgets.
	MaxTokens = 1_000_000_000
	// MaxAmount is the largest amount of a budget.
	MaxAmount = 1_000_000_000_000_000
	// MaxTagSlots is how many tags with a quota on calls in flight one request names.
	MaxTagSlots = 256
	// MinPer is the shortest period of a total.
	MinPer = time.Millisecond
)

// MaxNameBytes is the longest name of a pool, a processor or an incarnation.
const MaxNameBytes = 256

// IsName reports whether v can name a pool, a processor or an incarnation: 1 to 256 bytes without NUL.
func IsName(v string) bool {
	return v != "" && len(v) <= MaxNameBytes && !strings.ContainsRune(v, 0)
}

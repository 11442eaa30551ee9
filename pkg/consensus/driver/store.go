package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Store keeps the record of every pool and carries out one sync as one atomic step. [Record.Sync] and [Record.Leave] define that step. An
// implementation either calls them under a lock or a compare-and-set, or does the same in the store's own language. Package storetest holds
// the conformance suite that every implementation passes.
//
// All methods may be called from any number of goroutines and processes at once. A Store never answers from memory of its own: an answer is
// given only after the step was recorded, because an answered share is used at once.
type Store interface {
	// Sync records the report of the request and answers with the shares that the processor may use. An error means that the step may or
	// may not have been recorded: the next request brings the sender's knowledge back to the store. Sending the same request again (same
	// Seq and Nonce) is harmless. Errors: *RequestError for a malformed request; any other error is the store's, and transient.
	Sync(ctx context.Context, req Request) (Answer, error)

	// Leave frees the claims of one incarnation and leaves a tombstone. The processor must use nothing any more when it sends this. Leaving
	// a pool twice, or one that does not exist, is no error.
	Leave(ctx context.Context, req Leave) error

	// Load returns an operator's view of a pool: its documents by rising name, and the roster as the last step left it, with
	// RosterRow.Silent. A processor that has died since is still listed. Load changes nothing. Errors: *RequestError for a name that no
	// pool can have; one that wraps ErrNoPool when the pool has no record; any other error is the store's, and transient.
	Load(ctx context.Context, pool string) ([]Document, []RosterRow, error)

	// Save makes d.Body the document d.Name, as version d.Version (see NextVersion), if d.Base is the version on record. It returns the
	// version on record after that. Processors get it with their next sync. Saving the same again is harmless. A document saved while the
	// store is losing its latest writes (a failover) may give way to a newer one that a processor has.
	//
	// Errors: *RequestError for a malformed document, or one more than 8; *ConflictError when another version is on record. An
	// error wraps ErrNoPool when the pool has no record: a record made by Save would look as if nothing about its pool was forgotten. Any
	// other error is the store's, and means that the document may or may not have been saved.
	Save(ctx context.Context, pool string, d DocumentReport) (Version, error)

	// Reserve reserves slots for permits; see Record.Reserve. An error means that slots may have been reserved: they are lost, and nobody
	// else gets them. A reservation is not repeated, and is given back only as Reserve.Return says. Errors are those of Sync.
	Reserve(ctx context.Context, req Reserve) (Reserved, error)

	// Close frees the store's resources. It does not leave any pool.
	Close() error
}

// Share is a fraction of a limit in units of 1e-9, rounded down, so that every store adds shares up exactly: 0 to Whole.
type Share int64

// Whole is the share that stands for the whole limit.
const Whole Share = limit.WholeShare

// Fraction returns the share as a number from 0 to 1.
func (s Share) Fraction() float64 { return float64(s) / float64(Whole) }

// String prints the share in percent.
func (s Share) String() string { return fmt.Sprintf("%.4g%%", 100*s.Fraction()) }

// Leases that a pool may have. The longest one fixes how long a store without memory freezes, because it does not know its earlier
// promises.
const (
	DefaultLease = 10 * time.Second
	MinLease     = 3 * time.Second
	MaxLease     = 10 * time.Second
)

// A Request is one sync as the processor sends it.
type Request struct {
	// Pool is the name of the pool: the key in the store.
	Pool string
	// ID names the processor and Incarnation this life of it.
	ID, Incarnation string
	// Seq rises with every request of the incarnation, from 1. Nonce is drawn at random for each request: a repeat has the same, a clone
	// another.
	Seq, Nonce uint64
	// LastSeq and LastNonce are those of the request whose answer was taken last, LastTime the Answer.Time of it; all 0 before the first
	// answer.
	LastSeq, LastNonce uint64
	LastTime           int64
	// Unanswered lists every request sent since that one, by rising Seq, without this one. It tells a processor from its clone: the newest
	// request on record must be that one or among these.
	Unanswered []Ticket
	// Recalled is the request that a Behind answer named; 0 otherwise.
	Recalled Ticket
	// Revision is the newest revision of the record that the processor has seen.
	Revision uint64
	// Lease is the lease the processor is configured with, at millisecond precision. The pool's lease in the answer counts.
	Lease time.Duration
	// Spacing is that of the limit, Per / Max rounded up, if the sender can use permits (see Reserve): 1 us to 744 h. 0 if it
	// can use nothing but shares.
	Spacing time.Duration
	// SpacingBy names the reported document of the pool that sets Spacing. If empty, Spacing comes from the sender's configuration.
	SpacingBy string
	// Strict says that the sender uses nothing but permits, whatever the rate.
	Strict bool
	// Reach is how far ahead the last slot lies that the sender has reserved and may still use: 0 for none, at most 1,003 times 744 h. A store that
	// has forgotten it holds new slots back so long.
	Reach time.Duration
	// Outlasts is how long shares of the pool may be used beyond the removal time without the store's consent: 0 with Stop, 75 min
	// with Degrade, the longest possible. A store that has begun to remember since takes no absent pool for a new one.
	Outlasts time.Duration
	Report
	// Dead names incarnations of ID whose processes are known to be dead: at most 4, each once, and not the sender's own. Their
	// claims end with this request. The store believes it: naming a live process breaks the bound.
	Dead []Death
	// Documents reports on documents of the pool: loaded, proposed or given back by the sender. At most 8, each name once.
	Documents []DocumentReport
	// Draws ask the tag buckets of tags for tokens: at most 1,024, each key once.
	Draws []Draw
}

// A Ticket names one request: its number, and the nonce that was drawn for it.
type Ticket struct {
	Seq   uint64 `json:"seq"`
	Nonce uint64 `json:"nonce"`
}

// A Report describes the sender's share.
type Report struct {
	// InUse is the share in force at this moment, Wanted the one that the policy asks for.
	InUse, Wanted Share
	// Demand is the share that the processor would use if it could.
	Demand Share
	// PoolSize is the number of live processors that it divides by; 0: none yet.
	PoolSize int
	// Note is shown to all others in the roster: at most 128 bytes, any but NUL. Stores do not interpret it.
	Note string
	// Busy describes the sender's busiest tags to the others, in the roster: at most 448 of any bytes. Stores do not interpret it.
	Busy string
	// TagSlots report on the tags with a quota on calls in flight, by rising key, each once: at most 256. A tag that is not named is not
	// used any more.
	TagSlots []TagSlots
	// TagSlotsBy names the reported document of the pool that sets the totals of TagSlots. If empty, they come from the sender's
	// configuration. While the store has a newer version than the sender, nothing is granted to it beyond what is in use.
	TagSlotsBy string
}

// Status is the outcome of a request.
type Status int

const (
	// Granted: the request was recorded; the shares are good for one lease.
	Granted Status = iota
	// Late: a newer request of this incarnation was recorded before. Nothing changed.
	Late
	// Replaced: a newer incarnation under the same ID is live. Draw nothing.
	Replaced
	// Cloned: two processes used this incarnation. It is closed; start over under a new one.
	Cloned
	// Removed: the row was removed after a long silence, or was closed and no newer one is live. Start over.
	Removed
	// Behind: the store has gone back and does not remember the request answered last. It has frozen the pool, recorded nothing else, and
	// names the newest request that it does remember. A processor that has sent that request asks again and says so. If a clone sent it,
	// start over.
	Behind
)

// String returns the status as one word.
func (s Status) String() string {
	switch s {
	case Granted:
		return "granted"
	case Late:
		return "late"
	case Replaced:
		return "replaced"
	case Cloned:
		return "cloned"
	case Removed:
		return "removed"
	case Behind:
		return "behind"
	}
	return fmt.Sprintf("status(%d)", int(s))
}

// An Answer is the store's reply to one sync. Only Status, Seq, Nonce and Newest are set unless Status is Granted.
type Answer struct {
	Status Status
	// Seq and Nonce are those of the request answered.
	Seq, Nonce uint64
	// Newest is the newest request on record. Only Behind sets it.
	Newest Ticket
	Grant
	// Time is the record's logical time in microseconds, Revision its revision.
	Time     int64
	Revision uint64
	// Lease is the pool's lease; it runs from the first send of the request.
	Lease time.Duration
	// Frozen is how long, on the logical clock, no share may grow yet; FrozenBy is the cause. 0 and FreezeNone when the pool is not frozen.
	Frozen   time.Duration
	FrozenBy FreezeCause
	// Documents lists, by rising name, every document on record unless the request reported exactly the same: the same version and, if it
	// brought one, the same body. Version 0 without a body means that the store lacks the document reported. So a sender whose document is
	// not listed knows that its version is on record.
	Documents []Document
	// Epoch is the logical time at which the pool began: a processor joined when no other was live. It stays the same until no processor is
	// live any more, and differs from every one before. Silence is how long, on the store's own clock, no step had been recorded before
	// that, at least 0; 0 as well if there was no record. Both are 0 while unknown: the store has forgotten something that a processor
	// remembers, or learns the time of the first step only with the second (see At.Deferred). Then nothing follows from them: no pool has
	// begun again.
	Epoch   int64
	Silence time.Duration
	// Issuing says that the pool issues permits instead of shares: see Reserve.
	Issuing bool
	// Draws are the tokens given by the tag buckets, in the order of the request. Empty in the answer to a repeated request, which draws nothing:
	// the tokens it drew the first time are lost.
	Draws []Drawn
	// TagSlots are the slots granted of each tag, in the order of the request.
	TagSlots []TagGrant
	// Wall is the store's own clock at the step, in microseconds of Unix time, or that of the step before if it is not known (see
	// At.Deferred). Budget windows are those of this clock.
	Wall int64
}

// A Grant is the share that an answer gives, and the members of the pool.
type Grant struct {
	Share Share
	// Live counts the live processors, the asking one included. PoolSize is the largest pool size that one of them reports.
	Live, PoolSize int
	// Agreed reports consensus: every live processor reports the same pool size and it equals Live.
	Agreed bool
	// Roster lists the live processors by rising ID.
	Roster []RosterRow
	// Closed is what rows claim that are no longer live, such as that of a process that was killed and started again under its ID. Nobody
	// can have it before their removal.
	Closed Share
}

// A RosterRow is one live processor as the others see it.
type RosterRow struct {
	ID       string
	Claim    Share
	Demand   Share
	PoolSize int
	Note     string
	Busy     string
	// TagClaims are its slots of tags with a quota on calls in flight, by rising key. Only Store.Load tells them.
	TagClaims []TagClaim
	// Silent is the time on the pool's logical clock from its newest request to this answer; from Store.Load, to the pool's last step. Left
	// is how much longer its claim stays on record if it remains silent.
	Silent, Left time.Duration
}

// A Leave tells the store that an incarnation uses nothing any more.
type Leave struct {
	Pool, ID, Incarnation string
	// Seq is above every Seq that the incarnation has sent. LastSeq, LastNonce and Unanswered are as in Request: they reveal a clone, which
	// does not speak for the other process.
	Seq                uint64
	LastSeq, LastNonce uint64
	Unanswered         []Ticket
}

// FreezeCause says which gap in the store's memory froze a pool.
type FreezeCause string

// The causes of a freeze.
const (
	FreezeNone      FreezeCause = ""
	FreezeNewRecord FreezeCause = "new_record"     // the pool had no record
	FreezeIdentity  FreezeCause = "store_identity" // another server, or the same one restarted
	FreezeRollback  FreezeCause = "older_record"   // the record is older than a processor has seen
	FreezeLostRow   FreezeCause = "lost_row"       // a processor's row is missing or older than its last answer
)

// Explain describes the cause in words. An unknown cause is returned as it is.
func (c FreezeCause) Explain() string {
	switch c {
	case FreezeNewRecord:
		return "the store has no record of the pool, and a lease that it knows nothing of may still be in use"
	case FreezeIdentity:
		return "the store was started again or failed over, and may have lost what it promised"
	case FreezeRollback:
		return "the store's record is older than what this pool has seen"
	case FreezeLostRow:
		return "the store has lost what it promised to a pod"
	case FreezeNone:
	}
	return string(c)
}

// RequestError is the error for a request that no store accepts. It names the field, its value and the allowed values.
type RequestError struct{ Field, Value, Allowed string }

// Error returns the message.
func (e *RequestError) Error() string {
	return fmt.Sprintf("consensus: %s is %s, allowed: %s", e.Field, e.Value, e.Allowed)
}

// ErrWrongAnswer is wrapped by the error for a store's reply that is not shaped like an answer: another program's data under the key, or a
// newer format.
var ErrWrongAnswer = errors.New("consensus: the store's reply is not an answer to a sync")

// ErrContention is wrapped by the error of a Store whose step was not recorded because other processors wrote first each time that it
// tried. The store answers but is overloaded. A Member counts such a sync as failed, and does not log it while its share is still good.
var ErrContention = errors.New("other pods wrote first")

// ErrOverdue is wrapped by the error of an overloaded Store that came to a request too late for its sender, and did not carry it out. It is
// a timeout, as net.Error has it.
var ErrOverdue error = overdueError{}

type overdueError struct{}

func (overdueError) Error() string {
	return "the store came to the request too late, and did not carry it out"
}

func (overdueError) Timeout() bool { return true }

// Patience returns how long after its sending a store still carries out a request, if its sender gives up after the time left. A quarter of
// that time is for the answer's way back: a request carried out for nobody costs as much as any other. A request without a share in force
// has half of the time, and the first one of an incarnation a quarter. So an overloaded store turns joiners away before those who have
// joined, and these before those who would lose their lease.
func (r *Request) Patience(left time.Duration) time.Duration {
	switch {
	case r.LastSeq == 0:
		return left / 4
	case r.InUse == 0:
		return left / 2
	}
	return left * 3 / 4
}

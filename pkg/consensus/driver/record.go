package driver

import (
	"cmp"
	"slices"
	"time"
)

// A Record is a store's whole state of one pool. It is a plain value: only its methods change it, without a clock, I/O or randomness, so
// that every store does the same.
//
// Invariant: answers never raise the sum of Claim over all rows above Whole, nor the sum of TagClaim.Claim of a tag above its total. Only
// facts that the store did not know do: what a processor reports as in use after the store forgot it.
type Record struct {
	// Store is the identity of the server that wrote the record last.
	Store string
	// Revision rises with every change, above every revision a processor has seen.
	Revision uint64
	// Clock is the logical time in microseconds and Wall the store's own time at the last sync, in microseconds since 1970; 0 when no time
	// was known yet.
	Clock, Wall int64
	// FrozenUntil is the logical time until which no share grows; FrozenSince and FrozenBy are the beginning and the cause of that.
	FrozenUntil, FrozenSince int64
	FrozenBy                 FreezeCause
	// Lease is the pool's lease.
	Lease time.Duration
	// Unstamped names the row whose LastSeen is not known until the next sync shows the time of the last one (see At.Deferred).
	// FreezeUnstamped says the same of the end of a freeze. Both are empty on stores that know the time.
	Unstamped       RowKey
	FreezeUnstamped bool
	// Epoch is the logical time at which the pool began, and Silence for how long no step had been recorded before; see Answer. 0 when that
	// is not known. EpochUnstamped says that it began in the last step of the pool, whose time a Deferred store does not know yet. Epoch
	// and Silence are those of the epoch before then.
	Epoch          int64
	Silence        time.Duration
	EpochUnstamped bool
	// Permits is the state of permits.
	Permits Permits
	// TagBuckets is sorted by key: at most 2,048. Names are those of tags that go by a pattern.
	TagBuckets []TagBucket
	Names      Names
	// Rows is sorted by ID, then incarnation.
	Rows []Row
	// Documents is sorted by name. They outlive all rows.
	Documents []Document
}

// A RowKey names one incarnation of a processor.
type RowKey struct{ ID, Incarnation string }

// RowState says whether a row still gets answers.
type RowState uint8

// The states of a row. Only a live row gets shares; the others wait for removal.
const (
	RowLive     RowState = iota
	RowReplaced          // a newer incarnation of the ID has joined
	RowCloned            // two processes used the incarnation
	RowLeft              // the tombstone of a processor that left
)

// A Row is one incarnation of a processor. It outlives that by one removal time: the process may still draw, and its packets may still
// arrive.
type Row struct {
	RowKey
	State RowState
	// Seq and Nonce are those of the newest request recorded.
	Seq, Nonce uint64
	// LastSeen is the logical time of the newest request.
	LastSeen int64
	Holding
}

// A Holding is a row's part of its processor's report and answer. The zero Holding claims nothing.
type Holding struct {
	// Claim = max(InUse, Answered): the share that the store counts against the whole.
	Claim, InUse, Answered Share
	Demand                 Share
	PoolSize               int
	Note, Busy             string
	// TagClaims are the slots of tags with a quota on calls in flight, by rising key: at most 512. A step never changes a slice that is
	// there, but puts another in its place.
	TagClaims []TagClaim
}

// At describes the moment of a step, as the store knows it.
type At struct {
	// Now is the store's own time in microseconds since 1970. 0 when it is not known, which only a Deferred store may say, and only of a
	// new record.
	Now int64
	// Identity names this life of the server. Empty for a memory store, which cannot lose the record without its processors and never
	// freezes.
	Identity string
	// Remembers is for how long the store is known to have forgotten no record, by its own clock: an absent one has not been there since. A
	// new pool needs no freeze if that covers the longest use of any share: a removal time and Request.Outlasts. 0 when it is not known.
	Remembers time.Duration
	// Deferred says that Now is the time of the last step instead of this one: the next step stamps the records of this one.
	Deferred bool
	// Longest is the longest lease that any processor of the store's pools may have: it fixes how long a freeze lasts. 0 means MaxLease.
	Longest time.Duration
}

// find returns the index of the row with key k, or where it belongs.
func (r *Record) find(k RowKey) (int, bool) {
	return slices.BinarySearchFunc(r.Rows, k, func(row Row, k RowKey) int {
		return cmp.Or(cmp.Compare(row.ID, k.ID), cmp.Compare(row.Incarnation, k.Incarnation))
	})
}

// Claims returns the sum of all claims on record.
func (r *Record) Claims() Share {
	var sum Share
	for i := range r.Rows {
		sum += r.Rows[i].Claim
	}
	return sum
}

// HoldersWait reports whether the store fails to serve the holders of shares in a large pool, one of at least 64. It does if more than one
// in a hundred has not renewed its share for more than 55 % of the lease, longer than any interval between syncs. A store where requests
// compete for the record then turns joiners away. A dead holder counts until its lease is over.
func (r *Record) HoldersWait() bool {
	holders, waiting := 0, 0
	lease := micros(r.Lease)
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.State != RowLive || !row.claims() {
			continue
		}
		holders++
		if silent := r.Clock - row.LastSeen; silent > lease*55/100 && silent <= lease {
			waiting++
		}
	}
	return holders >= 64 && waiting*100 > holders
}

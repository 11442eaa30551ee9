package driver

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// The binary form of a record is a header of recordMagic and one byte for the version, 1, then the fields in the order of coder.record. Numbers
// are varints, strings follow their length, nonces and keys have eight bytes. Every record has exactly one form, and nothing is written
// that cannot be read again.
const recordMagic = "NT"

// The flags of the head, in the order of Record.flags.
const (
	flagFreezeUnstamped = 1 << 0
	flagPermits         = 1 << 1
	flagTagBuckets      = 1 << 2
	flagBusy            = 1 << 3
	flagNames           = 1 << 4
	flagTagClaims       = 1 << 5
	knownFlags          = flagTagClaims<<1 - 1
)

const (
	maxIdentityBytes = 512
	maxCauseBytes    = 64
	// The shortest form of a row bounds how many rows the bytes left can hold, so that
	// a forged count allocates nothing.
	minRowBytes = 21
)

// AppendBinary appends the record's binary form to b, in the manner of encoding.BinaryAppender. It fails only for a record that [ParseRecord]
// would refuse, which Sync and Leave never make of a valid one. An Unstamped that names no row means nothing and is left out.
func (r *Record) AppendBinary(b []byte) ([]byte, error) {
	if err := r.check(); err != nil {
		return b, fmt.Errorf("consensus: the record cannot be written: %w", err)
	}
	c := coder{b: b, writes: true}
	c.record(r)
	return c.b, nil
}

// ParseRecord reads the binary form of a record. It accepts only the output of AppendBinary, never panics, and allocates no more than a
// small multiple of len(b). b is not kept. The error wraps [ErrWrongAnswer] and names the fault and its place, or a newer format.
func ParseRecord(b []byte) (*Record, error) {
	c, r := coder{b: b}, &Record{}
	c.record(r)
	if c.err == nil && c.off < len(b) {
		c.failf("%d bytes too many", len(b)-c.off)
	}
	if c.err == nil {
		c.err = r.check()
	}
	if c.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongAnswer, c.err)
	}
	return r, nil
}

func (c *coder) record(r *Record) {
	if c.header(); c.err != nil {
		return
	}
	text(c, "the store's identity", maxIdentityBytes, &r.Store)
	num(c, "the revision", &r.Revision)
	for _, t := range []*int64{&r.Clock, &r.Wall, &r.FrozenUntil, &r.FrozenSince} {
		c.after("a time", 0, t)
	}
	text(c, "the cause of the freeze", maxCauseBytes, &r.FrozenBy)
	num(c, "the lease", &r.Lease)
	unstamped, flags := r.unstamped(), r.flags()
	num(c, "the unstamped row", &unstamped)
	if c.byte(&flags); flags > knownFlags {
		c.failf("the flags are %d, allowed: 0 to %d; a newer release knows more", flags, knownFlags)
	}
	c.epoch(r)
	c.documents(r)
	list(c, "rows", minRowBytes, nil, &r.Rows, func(w *Row) { c.row(r.Clock, w) })
	if !c.writes {
		r.FreezeUnstamped = flags&flagFreezeUnstamped != 0
		switch {
		case c.err != nil || unstamped == 0:
		case unstamped > uint64(len(r.Rows)):
			c.failf("the unstamped row is number %d of %d", unstamped, len(r.Rows))
		default:
			r.Unstamped = r.Rows[unstamped-1].RowKey
		}
	}
	if flags&flagPermits != 0 {
		c.permits(&r.Permits)
	}
	if flags&flagTagBuckets != 0 {
		c.tagBuckets(r, wire.MaxTagBuckets, &r.TagBuckets)
	}
	if flags&flagNames != 0 {
		c.names(r)
	}
	if flags&flagBusy != 0 {
		for i := range r.Rows {
			text(c, "what is busy", wire.MaxBusyBytes, &r.Rows[i].Busy)
		}
		if c.err == nil && !r.anyBusy() {
			c.failf("nothing is busy, though the flags say so")
		}
	}
	if flags&flagTagClaims != 0 {
		c.tagClaims(r)
	}
}

// header is that of a record in a format that this build reads.
func (c *coder) header() {
	if c.writes {
		c.b = append(append(c.b, recordMagic...), wire.FormatVersion)
		return
	}
	if len(c.b) <= len(recordMagic) || string(c.b[:len(recordMagic)]) != recordMagic {
		c.failf("%d bytes that are not a pool's record", len(c.b))
		return
	}
	c.off = len(recordMagic)
	var v byte
	switch c.byte(&v); {
	case v > wire.FormatVersion:
		c.failf("the record has format %d, written by a newer release; this one reads up to format %d", v, wire.FormatVersion)
	case v != wire.FormatVersion:
		c.failf("the record has format %d, allowed: %d", v, wire.FormatVersion)
	}
}

func (r *Record) flags() (flags byte) {
	for i, set := range [...]bool{
		r.FreezeUnstamped, !r.Permits.isZero(), len(r.TagBuckets) > 0, r.anyBusy(), !r.Names.isZero(), r.anyTagClaims(),
	} {
		if set {
			flags |= 1 << i
		}
	}
	return flags
}

// unstamped is one more than the place of the unstamped row, 0 if there is none.
func (r *Record) unstamped() uint64 {
	if i, ok := r.find(r.Unstamped); ok {
		return uint64(i) + 1
	}
	return 0
}

func (c *coder) row(clock int64, w *Row) {
	text(c, "the ID", wire.MaxNameBytes, &w.ID)
	text(c, "the incarnation", wire.MaxNameBytes, &w.Incarnation)
	c.byte((*byte)(&w.State))
	num(c, "the sequence number", &w.Seq)
	c.uint64(&w.Nonce)
	c.before("last-seen", clock, &w.LastSeen)
	for _, s := range []*Share{&w.Claim, &w.InUse, &w.Answered, &w.Demand} {
		num(c, "a share", s)
	}
	num(c, "the pool size", &w.PoolSize)
	text(c, "the note", wire.MaxNoteBytes, &w.Note)
}

func (r *Record) anyBusy() bool {
	for i := range r.Rows {
		if r.Rows[i].Busy != "" {
			return true
		}
	}
	return false
}

// check returns an error for the first field of a record that no store writes.
func (r *Record) check() error {
	if len(r.Store) > maxIdentityBytes {
		return outside("the store's identity", fmt.Sprint(len(r.Store), " bytes"), fmt.Sprint("at most ", maxIdentityBytes))
	}
	// A request must be able to report back each part of an answer, or a processor that has taken the answer could never ask again.
	if err := within("the revision", r.Revision, 1, maxRevision); err != nil {
		return err
	}
	if r.Clock < 0 {
		return outside("the clock", fmt.Sprint(r.Clock, "us"), "0 or more")
	}
	for _, f := range []struct {
		name string
		t    int64
	}{
		{"the clock", r.Clock},
		{"the wall clock", r.Wall},
		{"frozen-until", r.FrozenUntil},
		{"frozen-since", r.FrozenSince},
	} {
		if err := checkMicros(f.name, f.t); err != nil {
			return err
		}
	}
	if len(r.FrozenBy) > maxCauseBytes {
		return outside("the cause of the freeze", fmt.Sprint(len(r.FrozenBy), " bytes"), fmt.Sprint("at most ", maxCauseBytes))
	}
	// A longer lease than this build knows would outlive its freezes.
	lease := within("the lease", r.Lease, time.Millisecond, MaxLease)
	if err := cmp.Or(lease, r.checkEpoch(), checkDocuments(r.Documents, false)); err != nil {
		return err
	}
	for i := range r.Rows {
		if err := r.Rows[i].check(); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		if i > 0 && !r.Rows[i-1].below(r.Rows[i].RowKey) {
			return fmt.Errorf("row %d: not above the row before it", i)
		}
	}
	return cmp.Or(r.Permits.check(), CheckTagBuckets(r.TagBuckets), r.Names.check())
}

// below reports whether k stands before o in a record.
func (k RowKey) below(o RowKey) bool {
	return cmp.Or(cmp.Compare(k.ID, o.ID), cmp.Compare(k.Incarnation, o.Incarnation)) < 0
}

func (w *Row) check() error {
	for _, f := range []struct{ name, v string }{{"the ID", w.ID}, {"the incarnation", w.Incarnation}} {
		if f.v == "" || len(f.v) > wire.MaxNameBytes || strings.ContainsRune(f.v, 0) {
			return outside(f.name, fmt.Sprintf("%.40q", f.v), fmt.Sprint("1 to ", wire.MaxNameBytes, " bytes without NUL"))
		}
	}
	if err := cmp.Or(within("the state", uint8(w.State), 0, uint8(RowLeft)), checkMicros("last-seen", w.LastSeen)); err != nil {
		return err
	}
	if w.LastSeen < 0 {
		return outside("last-seen", fmt.Sprint(w.LastSeen, "us"), "0 or more")
	}
	return w.Holding.check()
}

// check returns no *RequestError: no request is to blame for what the store holds.
func (e *Holding) check() error {
	const whole = int64(Whole)
	if err := cmp.Or(
		within("the claim", int64(e.Claim), 0, whole), within("the share in use", int64(e.InUse), 0, whole),
		within("the share answered", int64(e.Answered), 0, whole), within("the demand", int64(e.Demand), 0, whole),
		within("the pool size", e.PoolSize, 0, maxPoolSize),
	); err != nil {
		return err
	}
	if len(e.Note) > wire.MaxNoteBytes || strings.ContainsRune(e.Note, 0) {
		return outside("the note", fmt.Sprintf("%.40q", e.Note), fmt.Sprint("at most ", wire.MaxNoteBytes, " bytes without NUL"))
	}
	if len(e.Busy) > wire.MaxBusyBytes {
		return outside("what is busy", fmt.Sprint(len(e.Busy), " bytes"), fmt.Sprint("at most ", wire.MaxBusyBytes))
	}
	return CheckTagClaims(e.TagClaims)
}

func checkMicros(name string, t int64) error {
	if t < -wire.MaxMicros || t > wire.MaxMicros {
		return outside(name, fmt.Sprint(t, "us"), fmt.Sprint("at most ", int64(wire.MaxMicros), "us either way"))
	}
	return nil
}

func outside(field, value, allowed string) error {
	return fmt.Errorf("%s is %s, allowed: %s", field, value, allowed)
}

// within returns an error for a value below the least or above the most that is allowed. askedWithin returns a *RequestError. Both are
// inlined for values that are allowed.
func within[T cmp.Ordered](field string, v, least, most T) error {
	if least <= v && v <= most {
		return nil
	}
	bad := beyond(field, v, least, most)
	return outside(bad.Field, bad.Value, bad.Allowed)
}

func askedWithin[T cmp.Ordered](field string, v, least, most T) error {
	if least <= v && v <= most {
		return nil
	}
	return beyond(field, v, least, most)
}

func beyond[T cmp.Ordered](field string, v, least, most T) *RequestError {
	var zero T
	low := fmt.Sprint(least)
	if least == zero {
		low = "0" // also of a duration
	}
	return &RequestError{field, fmt.Sprint(v), low + " to " + fmt.Sprint(most)}
}

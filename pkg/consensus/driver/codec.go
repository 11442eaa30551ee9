package driver

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The binary form of a record is a header of recordMagic and one byte FormatVersion, then the fields in the order of appendHead and
// appendRow. Numbers are varints, strings follow their length, nonces and keys have eight bytes. The rows are followed by the Permits, the
// tills, the Names and the Busy of each row, if flags say so. Every record has exactly one form, and nothing is written that cannot be read
// again.
const recordMagic = "NT"

// The flags of the head.
const (
	flagFreezeUnstamped = 1 << 0
	flagPermits         = 1 << 1
	flagTills           = 1 << 2
	flagBusy            = 1 << 3
	flagNames           = 1 << 4
	knownFlags          = flagNames<<1 - 1
)

// MaxMicros is the latest logical time, in microseconds: that of the year 38,000. Later times are refused, so that
// arithmetic on them never overflows.
const MaxMicros = 1 << 60

const (
	maxIdentityBytes = 512
	maxCauseBytes    = 64
	// The shortest form of a row bounds how many rows the bytes left can hold, so that
	// a forged count allocates nothing.
	minRowBytes = 21
)

// AppendBinary appends the record's binary form to b, in the manner of encoding.BinaryAppender. It fails only for a record that ParseRecord
// would refuse, which Sync and Leave never make of a valid one. An Unstamped that names no row means nothing and is left out.
func (r *Record) AppendBinary(b []byte) ([]byte, error) {
	if err := r.check(); err != nil {
		return b, fmt.Errorf("consensus: the record cannot be written: %w", err)
	}
	b = r.appendHead(b)
	for i := range r.Rows {
		b = r.appendRow(b, &r.Rows[i])
	}
	if !r.Permits.isZero() {
		b = r.Permits.appendTo(b)
	}
	b = r.appendTills(b, r.Tills)
	b = r.appendNames(b)
	if r.anyBusy() {
		for i := range r.Rows {
			b = appendString(b, r.Rows[i].Busy)
		}
	}
	return b, nil
}

// ParseRecord reads the binary form of a record. It accepts only the output of AppendBinary, never panics, and allocates no more than a
// small multiple of len(b). b is not kept. The error wraps ErrWrongAnswer and names the fault and its place, or a newer format.
func ParseRecord(b []byte) (*Record, error) {
	d := &decoder{b: b}
	r := d.record()
	if d.err == nil && d.off < len(b) {
		d.failf("%d bytes too many", len(b)-d.off)
	}
	if d.err == nil {
		if err := r.check(); err != nil {
			d.err = err
		}
	}
	if d.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongAnswer, d.err)
	}
	return r, nil
}

func (r *Record) appendHead(b []byte) []byte {
	b = append(b, recordMagic...)
	b = append(b, FormatVersion)
	b = appendString(b, r.Store)
	b = binary.AppendUvarint(b, r.Revision)
	for _, t := range []int64{r.Clock, r.Wall, r.FrozenUntil, r.FrozenSince} {
		b = binary.AppendVarint(b, t)
	}
	b = appendString(b, string(r.FrozenBy))
	b = binary.AppendUvarint(b, uint64(r.Lease))
	var unstamped uint64
	if i, ok := r.find(r.Unstamped); ok {
		unstamped = uint64(i) + 1
	}
	b = binary.AppendUvarint(b, unstamped)
	var flags byte
	if r.FreezeUnstamped {
		flags |= flagFreezeUnstamped
	}
	if !r.Permits.isZero() {
		flags |= flagPermits
	}
	if len(r.Tills) > 0 {
		flags |= flagTills
	}
	if r.anyBusy() {
		flags |= flagBusy
	}
	if !r.Names.isZero() {
		flags |= flagNames
	}
	b = append(b, flags)
	b = r.appendEpoch(b)
	b = r.appendDocuments(b)
	return binary.AppendUvarint(b, uint64(len(r.Rows)))
}

func (r *Record) appendRow(b []byte, w *Row) []byte {
	b = appendString(b, w.ID)
	b = appendString(b, w.Incarnation)
	b = append(b, byte(w.State))
	b = binary.AppendUvarint(b, w.Seq)
	b = binary.BigEndian.AppendUint64(b, w.Nonce)
	b = binary.AppendVarint(b, r.Clock-w.LastSeen)
	for _, s := range []Share{w.Claim, w.InUse, w.Answered, w.Demand} {
		b = binary.AppendUvarint(b, uint64(s))
	}
	b = binary.AppendUvarint(b, uint64(w.PoolSize))
	return appendString(b, w.Note)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// check returns an error for the first field of a record that no store writes.
func (r *Record) check() error {
	if len(r.Store) > maxIdentityBytes {
		return outside("the store's identity", fmt.Sprint(len(r.Store), " bytes"), fmt.Sprint("at most ", maxIdentityBytes))
	}
	// A request must be able to report back each part of an answer, or a processor that has taken the answer could never ask again.
	if r.Revision == 0 || r.Revision > maxRevision {
		return outside("the revision", fmt.Sprint(r.Revision), fmt.Sprint("1 to ", int64(maxRevision)))
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
	if r.Lease < time.Millisecond || r.Lease > MaxLease {
		return outside("the lease", r.Lease.String(), "1ms to "+MaxLease.String())
	}
	if err := r.checkEpoch(); err != nil {
		return err
	}
	if err := checkDocuments(r.Documents, false); err != nil {
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
	return cmp.Or(r.Permits.check(), CheckTills(r.Tills), r.Names.check())
}

// below reports whether k stands before o in a record.
func (k RowKey) below(o RowKey) bool {
	return cmp.Or(cmp.Compare(k.ID, o.ID), cmp.Compare(k.Incarnation, o.Incarnation)) < 0
}

func (w *Row) check() error {
	for _, f := range []struct{ name, v string }{{"the ID", w.ID}, {"the incarnation", w.Incarnation}} {
		if f.v == "" || len(f.v) > maxNameBytes || strings.ContainsRune(f.v, 0) {
			return outside(f.name, fmt.Sprintf("%.40q", f.v), fmt.Sprint("1 to ", maxNameBytes, " bytes without NUL"))
		}
	}
	if w.State > RowLeft {
		return outside("the state", fmt.Sprint(w.State), fmt.Sprint("0 to ", uint8(RowLeft)))
	}
	if err := checkMicros("last-seen", w.LastSeen); err != nil {
		return err
	}
	if w.LastSeen < 0 {
		return outside("last-seen", fmt.Sprint(w.LastSeen, "us"), "0 or more")
	}
	return w.Holding.check()
}

// check returns no *RequestError: no request is to blame for what the store holds.
func (e *Holding) check() error {
	for _, s := range []struct {
		name string
		v    Share
	}{{"the claim", e.Claim}, {"the share in use", e.InUse}, {"the share answered", e.Answered}, {"the demand", e.Demand}} {
		if s.v < 0 || s.v > Whole {
			return outside(s.name, fmt.Sprint(int64(s.v)), "0 to 1000000000")
		}
	}
	if e.PoolSize < 0 || e.PoolSize > maxPoolSize {
		return outside("the pool size", fmt.Sprint(e.PoolSize), fmt.Sprint("0 to ", maxPoolSize))
	}
	if len(e.Note) > MaxNoteBytes || strings.ContainsRune(e.Note, 0) {
		return outside("the note", fmt.Sprintf("%.40q", e.Note), fmt.Sprint("at most ", MaxNoteBytes, " bytes without NUL"))
	}
	if len(e.Busy) > MaxBusyBytes {
		return outside("what is busy", fmt.Sprint(len(e.Busy), " bytes"), fmt.Sprint("at most ", MaxBusyBytes))
	}
	return nil
}

func checkMicros(name string, t int64) error {
	if t < -MaxMicros || t > MaxMicros {
		return outside(name, fmt.Sprint(t, "us"), fmt.Sprint("at most ", int64(MaxMicros), "us either way"))
	}
	return nil
}

func outside(field, value, allowed string) error {
	return fmt.Errorf("%s is %s, allowed: %s", field, value, allowed)
}

var errTruncated = errors.New("the record ends in the middle of a field")

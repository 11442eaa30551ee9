package driver

import (
	"encoding/binary"
	"fmt"
	"time"
)

// A decoder reads one record. After the first error every read yields zero values, so that the callers check for it once per loop.
type decoder struct {
	b   []byte
	off int
	err error
}

func (d *decoder) record() *Record {
	r := &Record{}
	if !d.header() {
		return r
	}
	r.Store = d.string("the store's identity", maxIdentityBytes)
	r.Revision = d.uvarint("the revision")
	for _, t := range []*int64{&r.Clock, &r.Wall, &r.FrozenUntil, &r.FrozenSince} {
		*t = d.varint("a time")
	}
	r.FrozenBy = FreezeCause(d.string("the cause of the freeze", maxCauseBytes))
	r.Lease = time.Duration(d.uvarint("the lease"))
	unstamped := d.uvarint("the unstamped row")
	flags := d.byte()
	if flags > knownFlags {
		d.failf("the flags are %d, allowed: 0 to %d; a newer release knows more", flags, knownFlags)
	}
	r.FreezeUnstamped = flags&flagFreezeUnstamped != 0
	d.epoch(r)
	d.documents(r)
	rows := d.count("rows", minRowBytes)
	if rows > 0 {
		r.Rows = make([]Row, 0, rows)
	}
	for i := 0; i < rows && d.err == nil; i++ {
		r.Rows = append(r.Rows, d.row(r.Clock))
	}
	switch {
	case d.err != nil || unstamped == 0:
	case unstamped > uint64(rows):
		d.failf("the unstamped row is number %d of %d", unstamped, rows)
	default:
		r.Unstamped = r.Rows[unstamped-1].RowKey
	}
	if flags&flagPermits != 0 {
		d.permits(&r.Permits)
	}
	if flags&flagTills != 0 {
		r.Tills = d.tills(r, MaxTills)
	}
	if flags&flagNames != 0 {
		d.names(r)
	}
	if flags&flagBusy != 0 {
		d.busy(r)
	}
	return r
}

// header reports whether the bytes are a record of a format that this build reads.
func (d *decoder) header() bool {
	if len(d.b) <= len(recordMagic) || string(d.b[:len(recordMagic)]) != recordMagic {
		d.failf("%d bytes that are not a pool's record", len(d.b))
		return false
	}
	d.off = len(recordMagic)
	switch v := d.byte(); {
	case v > FormatVersion:
		d.failf("the record has format %d, written by a newer release; this one reads up to format %d", v, FormatVersion)
	case v != FormatVersion:
		d.failf("the record has format %d, allowed: %d", v, FormatVersion)
	}
	return d.err == nil
}

func (d *decoder) row(clock int64) Row {
	var w Row
	w.ID = d.string("the ID", maxNameBytes)
	w.Incarnation = d.string("the incarnation", maxNameBytes)
	w.State = RowState(d.byte())
	w.Seq = d.uvarint("the sequence number")
	w.Nonce = d.uint64()
	w.LastSeen = clock - d.varint("last-seen")
	for _, s := range []*Share{&w.Claim, &w.InUse, &w.Answered, &w.Demand} {
		*s = Share(d.uvarint("a share"))
	}
	w.PoolSize = int(d.uvarint("the pool size"))
	w.Note = d.string("the note", MaxNoteBytes)
	return w
}

func (d *decoder) failf(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("at byte %d: "+format, append([]any{d.off}, args...)...)
	}
}

// take returns the next n bytes, or nil when there are fewer.
func (d *decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.b)-d.off {
		d.err = errTruncated
		return nil
	}
	d.off += n
	return d.b[d.off-n : d.off]
}

func (d *decoder) byte() byte {
	if p := d.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (d *decoder) bool(field string) bool {
	flag := d.byte()
	if flag > 1 {
		d.failf("%s is %d, allowed: 0 or 1", field, flag)
	}
	return flag == 1
}

func (d *decoder) uint64() uint64 {
	if p := d.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (d *decoder) uvarint(field string) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.b[d.off:])
	switch {
	case n == 0:
		d.err = errTruncated
		return 0
	case n < 0 || (n > 1 && d.b[d.off+n-1] == 0):
		d.failf("%s is not a number in its shortest form", field)
		return 0
	}
	d.off += n
	return v
}

// varint reads a signed number, in binary.AppendVarint's form.
func (d *decoder) varint(field string) int64 {
	u := d.uvarint(field)
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

// count reads how many items follow, each of at least size bytes.
func (d *decoder) count(items string, size int) int {
	n := d.uvarint("the number of " + items)
	if d.err == nil && n > uint64((len(d.b)-d.off)/size) {
		d.failf("%d %s in the %d bytes that are left", n, items, len(d.b)-d.off)
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

func (d *decoder) string(field string, most int) string {
	n := d.uvarint("the length of " + field)
	if n > uint64(most) {
		d.failf("%s has %d bytes, allowed: at most %d", field, n, most)
		return ""
	}
	return string(d.take(int(n)))
}

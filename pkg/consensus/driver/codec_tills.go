package driver

import (
	"encoding/binary"
	"fmt"
)

// The shortest forms of a till and of what is spent of a window.
const (
	minTillBytes  = 12
	minSpentBytes = 3
)

// appendTills appends the tills, if there are any: their number, and of each the key, one more than the version or 0 if
// that is the one of the till before, Paid told from the clock, Full from Paid, and the windows, told
// from the wall clock.
func (r *Record) appendTills(b []byte) []byte {
	if len(r.Tills) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(r.Tills)))
	var version Version
	for i := range r.Tills {
		t := &r.Tills[i]
		b = binary.BigEndian.AppendUint64(b, t.Key)
		if t.Version == version {
			b = append(b, 0)
		} else {
			version = t.Version
			b = binary.AppendUvarint(b, uint64(version)+1)
		}
		b = binary.AppendVarint(b, t.Paid-r.Clock)
		b = binary.AppendUvarint(b, uint64(t.Full-t.Paid))
		b = binary.AppendUvarint(b, uint64(len(t.Spent)))
		for _, s := range t.Spent {
			b = binary.AppendVarint(b, r.Wall-s.Start)
			b = binary.AppendUvarint(b, uint64(s.End-s.Start))
			b = binary.AppendUvarint(b, uint64(s.Tokens))
		}
	}
	return b
}

func (d *decoder) tills(r *Record) {
	n := d.count("tills", minTillBytes)
	if d.err == nil && (n == 0 || n > MaxTills) {
		d.failf("%d tills, allowed: 1 to %d if the flags say so", n, MaxTills)
	}
	if d.err != nil {
		return
	}
	r.Tills = make([]Till, 0, n)
	var version Version
	for i := 0; i < n && d.err == nil; i++ {
		t := Till{Key: d.uint64()}
		if v := d.uvarint("the version of a till"); v > 0 {
			if Version(v-1) == version {
				d.failf("the version of a till is written out though it is that of the one before")
			}
			version = Version(v - 1)
		}
		t.Version = version
		t.Paid = r.Clock + d.varint("what is given out of a till")
		t.Full = t.Paid + int64(d.uvarint("when a till is full"))
		d.windows(&t, r.Wall)
		r.Tills = append(r.Tills, t)
	}
}

func (d *decoder) windows(t *Till, wall int64) {
	n := d.count("windows", minSpentBytes)
	if n > maxWindows {
		d.failf("%d windows of a till, allowed: at most %d", n, maxWindows)
	}
	for i := 0; i < n && d.err == nil; i++ {
		s := Spent{Start: wall - d.varint("the beginning of a window")}
		s.End = s.Start + int64(d.uvarint("the length of a window"))
		s.Tokens = int64(d.uvarint("what is spent"))
		t.Spent = append(t.Spent, s)
	}
}

// CheckTills returns an error for the first till that no store writes, or that is not above the one before it. A store that keeps tills in
// a form of its own calls it with what it reads.
func CheckTills(tills []Till) error {
	if len(tills) > MaxTills {
		return outside("the number of tills", fmt.Sprint(len(tills)), fmt.Sprint("at most ", MaxTills))
	}
	for i := range tills {
		if err := tills[i].check(); err != nil {
			return fmt.Errorf("till %d: %w", i, err)
		}
		if i > 0 && tills[i-1].Key >= tills[i].Key {
			return fmt.Errorf("till %d: not above the till before it", i)
		}
	}
	return nil
}

func (t *Till) check() error {
	if t.Version > MaxVersion {
		return outside("the version", fmt.Sprint(uint64(t.Version)), fmt.Sprint("at most ", uint64(MaxVersion)))
	}
	if t.Paid < 0 || t.Full < t.Paid || t.Full > MaxMicros {
		return outside("what is given out, and when it is full,", fmt.Sprint(t.Paid, "us, ", t.Full, "us"), "0 or more, and not falling")
	}
	if len(t.Spent) > maxWindows {
		return outside("the number of windows", fmt.Sprint(len(t.Spent)), fmt.Sprint("at most ", maxWindows))
	}
	for i, s := range t.Spent {
		if s.Start < -MaxMicros || s.End <= s.Start || s.End > MaxMicros || i > 0 && t.Spent[i-1].Start >= s.Start {
			return outside("a window", fmt.Sprint(s.Start, "us to ", s.End, "us"), "an end after its beginning, and windows by rising beginning")
		}
		if s.Tokens < 0 || s.Tokens > maxSpent {
			return outside("what is spent", fmt.Sprint(s.Tokens), fmt.Sprint("0 to ", int64(maxSpent)))
		}
	}
	return nil
}

func (r *Record) anyBusy() bool {
	for i := range r.Rows {
		if r.Rows[i].Busy != "" {
			return true
		}
	}
	return false
}

func (d *decoder) busy(r *Record) {
	for i := 0; i < len(r.Rows) && d.err == nil; i++ {
		r.Rows[i].Busy = d.string("what is busy", MaxBusyBytes)
	}
	if d.err == nil && !r.anyBusy() {
		d.failf("nothing is busy, though the flags say so")
	}
}

package driver

import (
	"encoding/binary"
	"fmt"
)

// The shortest forms of a Till and of a Spent.
const (
	minTillBytes  = 12
	minSpentBytes = 3
)

// appendTills appends tills, if there are any: their number, then each till. A till begins with its key, and one more than its version, or
// 0 if that is the one of the till before. Paid relative to the clock, Full relative to Paid, and the windows relative to the wall clock
// follow.
func (r *Record) appendTills(b []byte, tills []Till) []byte {
	if len(tills) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(tills)))
	var version Version
	for i := range tills {
		t := &tills[i]
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

// tills reads at most so many tills.
func (d *decoder) tills(r *Record, most int) []Till {
	n := d.count("tills", minTillBytes)
	if d.err == nil && (n == 0 || n > most) {
		d.failf("%d tills, allowed: 1 to %d if the flags say so", n, most)
	}
	if d.err != nil {
		return nil
	}
	tills := make([]Till, 0, n)
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
		tills = append(tills, t)
	}
	return tills
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

// appendNames appends the Names, if there are any: whether there are tills, the tills, the number of cells, and the cells. A cell has the
// distance of its index from the one before, its end in minutes, and its value, in milliseconds if it is a time. Times are relative to
// their clock. A record without names has none of this.
func (r *Record) appendNames(b []byte) []byte {
	n := &r.Names
	if n.isZero() {
		return b
	}
	b = append(b, boolByte(len(n.Tills) > 0))
	b = r.appendTills(b, n.Tills)
	b = binary.AppendUvarint(b, uint64(len(n.Cells)))
	last := -1
	for _, c := range n.Cells {
		b = binary.AppendUvarint(b, uint64(c.Index-last-1))
		if last = c.Index; c.Index < firstPaid {
			b = binary.AppendVarint(b, c.End/minute-r.Wall/minute)
			b = binary.AppendUvarint(b, uint64(c.Value))
			continue
		}
		b = binary.AppendVarint(b, c.End/minute-r.Clock/minute)
		b = binary.AppendVarint(b, c.Value/millisecond-r.Clock/millisecond)
	}
	return b
}

func (d *decoder) names(r *Record) {
	n := &r.Names
	switch has := d.byte(); {
	case has > 1:
		d.failf("whether names have tills is %d, allowed: 0 or 1", has)
	case has == 1:
		n.Tills = d.tills(r, MaxNames)
	}
	cells, last := d.count("cells", minSpentBytes), -1
	for i := 0; i < cells && d.err == nil; i++ {
		gap := d.uvarint("the index of a cell")
		if gap >= MaxCells {
			d.failf("a cell is %d from the one before, allowed: below %d", gap, MaxCells)
		}
		last += int(gap) + 1
		c, minutes := Cell{Index: last}, d.varint("the end of a cell")
		if minutes < -MaxMicros/minute || minutes > MaxMicros/minute {
			d.failf("a cell ends %d minutes from now", minutes)
		}
		if c.Index < firstPaid {
			c.End, c.Value = (r.Wall/minute+minutes)*minute, int64(d.uvarint("what is spent"))
		} else {
			value := d.varint("what is given out")
			if value < -MaxMicros/millisecond || value > MaxMicros/millisecond {
				d.failf("a cell is %d ms from now", value)
			}
			c.End, c.Value = (r.Clock/minute+minutes)*minute, (r.Clock/millisecond+value)*millisecond
		}
		n.Cells = append(n.Cells, c)
	}
	if d.err == nil && n.isZero() {
		d.failf("there are no names, though the flags say so")
	}
}

// CheckTills returns an error for the first till that no store writes, or that is not above the one before it. A store that keeps tills in
// a form of its own calls it after reading them. CheckNames is the same for the tills of names that go by a pattern.
func CheckTills(tills []Till) error { return checkTills(tills, MaxTills) }

// CheckNames is CheckTills for Names.Tills.
func CheckNames(tills []Till) error { return checkTills(tills, MaxNames) }

func checkTills(tills []Till, most int) error {
	if len(tills) > most {
		return outside("the number of tills", fmt.Sprint(len(tills)), fmt.Sprint("at most ", most))
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

package driver

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A coder reads or writes a record. Each method is one field of the binary form, in both directions. What writes changes no field, and what
// reads yields zero values after the first error.
type coder struct {
	b      []byte
	off    int // of what is read
	writes bool
	err    error
}

var errTruncated = errors.New("the record ends in the middle of a field")

func (c *coder) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("at byte %d: "+format, append([]any{c.off}, args...)...)
	}
}

// take returns the next n bytes, or nil when there are fewer.
func (c *coder) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n > len(c.b)-c.off {
		c.err = errTruncated
		return nil
	}
	c.off += n
	return c.b[c.off-n : c.off]
}

func (c *coder) byte(v *byte) {
	if c.writes {
		c.b = append(c.b, *v)
		return
	}
	*v = 0
	if p := c.take(1); p != nil {
		*v = p[0]
	}
}

func (c *coder) bool(field string, v *bool) {
	var flag byte
	if *v {
		flag = 1
	}
	if c.byte(&flag); c.writes {
		return
	}
	if *v = flag == 1; flag > 1 {
		c.failf("%s is %d, allowed: 0 or 1", field, flag)
	}
}

func (c *coder) uint64(v *uint64) {
	if c.writes {
		c.b = binary.BigEndian.AppendUint64(c.b, *v)
	} else if p := c.take(8); p != nil {
		*v = binary.BigEndian.Uint64(p)
	}
}

// num is a number that is not negative.
func num[T ~int | ~int64 | ~uint64](c *coder, field string, v *T) {
	if c.writes {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
	} else {
		*v = T(c.uvarint("", field))
	}
}

// ahead is a number that is not below from.
func ahead[T ~int | ~int64](c *coder, field string, from T, v *T) {
	gap := *v - from
	if num(c, field, &gap); !c.writes {
		*v = from + gap
	}
}

// after is a number relative to another one, and before the same the other way round.
func (c *coder) after(field string, from int64, v *int64) {
	if c.writes {
		c.b = binary.AppendVarint(c.b, *v-from)
	} else {
		*v = from + c.varint(field)
	}
}

func (c *coder) before(field string, from int64, v *int64) {
	if c.writes {
		c.b = binary.AppendVarint(c.b, from-*v)
	} else {
		*v = from - c.varint(field)
	}
}

// rounded is a whole number of units, relative to a clock.
func (c *coder) rounded(field, units string, unit, clock int64, v *int64) {
	gap := *v/unit - clock/unit
	c.after(field, 0, &gap)
	if c.writes {
		return
	}
	if gap < -wire.MaxMicros/unit || gap > wire.MaxMicros/unit {
		c.failf("%s is %d %s from now", field, gap, units)
	}
	*v = (clock/unit + gap) * unit
}

// text is its length, at most so many bytes, and a copy of them.
func text[T ~string | ~[]byte](c *coder, field string, most int, v *T) {
	if c.writes {
		c.b = append(binary.AppendUvarint(c.b, uint64(len(*v))), *v...)
		return
	}
	n := c.uvarint("the length of ", field)
	if n > uint64(most) {
		c.failf("%s has %d bytes, allowed: at most %d", field, n, most)
		return
	}
	*v = T(string(c.take(int(n))))
}

// list is the number of items, of at least size bytes each, and the items. check, if not nil, looks at the number.
func list[T any](c *coder, items string, size int, check func(n int), v *[]T, item func(*T)) {
	if c.writes {
		c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
	} else {
		n := c.uvarint("the number of ", items)
		if c.err == nil && n > uint64((len(c.b)-c.off)/size) {
			c.failf("%d %s in the %d bytes that are left", n, items, len(c.b)-c.off)
		}
		if c.err == nil && check != nil {
			check(int(n))
		}
		if c.err != nil || n == 0 {
			return
		}
		*v = make([]T, n)
	}
	for i := 0; i < len(*v) && c.err == nil; i++ {
		item(&(*v)[i])
	}
}

// uvarint reads a number. Errors name it by both texts.
func (c *coder) uvarint(of, field string) uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b[c.off:])
	switch {
	case n < 0 || (n > 1 && c.b[c.off+n-1] == 0):
		c.failf("%s%s is not a number in its shortest form", of, field)
		return 0
	case n == 0:
		c.err = errTruncated
		return 0
	}
	c.off += n
	return v
}

// varint reads a signed number, in binary.AppendVarint's form.
func (c *coder) varint(field string) int64 {
	u := c.uvarint("", field)
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

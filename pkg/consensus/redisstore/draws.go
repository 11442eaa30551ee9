package redisstore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// tagBucketsField is a field of pools with tag buckets, namesField of pools with tag buckets of names that match a pattern; see lua/tagbuckets.lua.
const (
	tagBucketsField = "\x00tills"
	namesField      = "\x00names"
)

// appendDraws appends all draws as one argument, and the key of each tag bucket as another.
func appendDraws(args []any, draws []driver.Draw) []any {
	var b []byte
	for i := range draws {
		d := &draws[i]
		b = binary.BigEndian.AppendUint64(b, uint64(d.Version))
		pattern := int64(0)
		if d.Pattern {
			pattern = 1
		}
		b = appendNumbers(b, pattern, d.Total, d.Per.Microseconds(), d.Burst, d.Ask, d.Ahead.Microseconds(),
			d.Back, d.Owed, int64(len(d.Budgets)))
		for _, w := range d.Budgets {
			b = appendNumbers(b, w.Amount, w.Start, w.End, w.Seen)
		}
	}
	args = append(args, string(b))
	for i := range draws {
		args = append(args, string(binary.BigEndian.AppendUint64(nil, draws[i].Key)))
	}
	return args
}

// appendNumbers packs numbers that doubles hold exactly, in the format of the script.
func appendNumbers(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
	}
	return b
}

// parseDraws reads the drawn tokens. A repeated request draws nothing.
func parseDraws(part any, req *driver.Request) ([]driver.Drawn, error) {
	packed, ok := part.(string)
	switch {
	case !ok:
		return nil, wrongAnswer("what is drawn is not a string")
	case packed == "":
		return nil, nil
	}
	r := numberReader{packed: packed}
	drawn := make([]driver.Drawn, len(req.Draws))
	for i := range drawn {
		d := &drawn[i]
		*d = driver.Drawn{
			Key: req.Draws[i].Key, Tokens: r.number(), From: r.duration(), Paid: r.number(),
			Lack: driver.Lack(min(r.number(), math.MaxUint8)), Again: r.duration(),
		}
		for range req.Draws[i].Budgets {
			d.Spent = append(d.Spent, r.number())
		}
	}
	if r.faulty || r.packed != "" {
		return nil, wrongAnswer("what is drawn is malformed")
	}
	return drawn, nil
}

// numberReader reads packed numbers. After the first fault it returns zeros.
type numberReader struct {
	packed string
	faulty bool
}

// number reads a non-negative integer that doubles hold exactly.
func (r *numberReader) number() int64 {
	if len(r.packed) < 8 {
		r.faulty = true
		return 0
	}
	f := permitsNumber(r.packed, 0)
	r.packed = r.packed[8:]
	if !(f >= 0 && f <= maxTime) || f != math.Trunc(f) { // also false for a NaN
		r.faulty = true
		return 0
	}
	return int64(f)
}

func (r *numberReader) duration() time.Duration { return time.Duration(r.number()) * time.Microsecond }

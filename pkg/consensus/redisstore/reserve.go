package redisstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Reserve implements [driver.Store]. It returns the errors of Sync, except that it accepts a longer lease on record.
func (s *Store) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	if err := cmp.Or(s.fault, req.Validate(), s.checkLease(req.Lease)); err != nil {
		return driver.Reserved{}, err
	}
	pool, marker := s.keys(req.Pool)
	patience := func(left time.Duration) time.Duration { return left * 3 / 4 }
	reply, _, _, err := s.run(ctx, req.Pool, patience, func(expires int64) (any, error) {
		return reserveScript.Run(ctx, s.client, []string{pool, marker}, reserveArgs(&req, s.longest, s.life, expires)...).Result()
	})
	if err != nil {
		return driver.Reserved{}, explain("reservation", req.Pool, s.prefix, err)
	}
	res, err := parseReserve(reply, &req)
	if err != nil {
		return driver.Reserved{}, fmt.Errorf("redisstore: reservation of pool %q: %w", req.Pool, err)
	}
	return res, nil
}

// The numbers of parts in a reply of reserve.lua, and its largest possible numbers.
const (
	grantedSlotsParts = 7
	refusedSlotsParts = 10
	maxStep           = 3 * int64(wire.MaxSpacing)
	maxWaitMicros     = (wire.MaxAhead + 3) * int64(wire.MaxSpacing/time.Microsecond)
	maxRevisionHigh   = int64(1<<63-1) / halfRevision
)

// parseReserve reads the reply of the reservation script. Every error wraps driver.ErrWrongAnswer.
func parseReserve(reply any, req *driver.Reserve) (res driver.Reserved, err error) {
	parts, ok := reply.([]any)
	if !ok {
		return res, wrongAnswer("not a list")
	}
	if len(parts) == 0 {
		return driver.Reserved{Retry: wire.Interval(req.Lease, 1)}, nil
	}
	r := partReader{parts: parts, faulty: noPart}
	res.Count = int(r.number(0, int64(req.Count)))
	res.Time = r.number(1, maxTime)
	res.Revision = uint64(r.number(2, maxRevisionHigh))*halfRevision + uint64(r.number(3, halfRevision-1))
	res.Spacing = time.Duration(r.number(4, maxStep))
	want := refusedSlotsParts
	if res.Count > 0 {
		want = grantedSlotsParts
		res.Wait = time.Duration(r.number(5, maxWaitMicros))*time.Microsecond + time.Duration(r.number(6, 999))
		res.Last, res.Issuing = int64(res.Revision), true
	} else {
		if r.number(5, 1) == 1 {
			res.Last = int64(res.Revision)
		}
		res.Retry = time.Duration(r.number(6, maxTime)) * time.Microsecond
		res.Issuing = r.number(7, 1) == 1
		res.Frozen = time.Duration(r.number(8, maxTime)) * time.Microsecond
		if cause, _ := r.part(9).(string); res.Frozen > 0 && cause != noCause {
			res.FrozenBy = driver.FreezeCause(cause)
		}
	}
	if res.Revision > 1<<63-1 {
		r.faulty = min(r.faulty, 3)
	}
	if r.faulty != noPart {
		return driver.Reserved{}, wrongAnswer("part %d is %.40q", r.faulty, fmt.Sprint(r.part(r.faulty)))
	}
	if len(parts) != want {
		return driver.Reserved{}, wrongAnswer("%d parts, want %d", len(parts), want)
	}
	return res, nil
}

// partReader reads the parts of a reply. faulty is the index of the first wrong part.
type partReader struct {
	parts  []any
	faulty int
}

const noPart = 1 << 30

func (r *partReader) part(i int) any {
	if i < len(r.parts) {
		return r.parts[i]
	}
	return nil
}

func (r *partReader) number(i int, most int64) int64 {
	n, ok := r.part(i).(int64)
	if !ok || n < 0 || n > most {
		r.faulty = min(r.faulty, i)
		return 0
	}
	return n
}

// The indexes of numbers in the packed field of permits; see lua/permit.lua.
const (
	permitsField   = "permits"
	permitsNumbers = 22
	clockNumber    = 2
	issuingNumber  = 9
)

// permitsNumber reads a number of the packed field.
func permitsNumber(packed string, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(packed[8*i : 8*i+8])))
}

// issues reports whether the pool issues permits, from the fields of its hash.
func issues(fields []any) bool {
	for i := 0; i+1 < len(fields); i += 2 {
		if packed, ok := fields[i+1].(string); ok && fields[i] == permitsField && len(packed) > 8*permitsNumbers {
			return permitsNumber(packed, issuingNumber) == 1
		}
	}
	return false
}

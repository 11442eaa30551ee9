package consensus

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A quota is a rate as configurations have it: max tokens in per. The zero quota is none.
type quota struct {
	max int64
	per time.Duration
}

// below tells whether q is a lower rate than o. Both are more than none.
func (q quota) below(o quota) bool {
	hi, lo := bits.Mul64(uint64(q.max), uint64(o.per))
	hi2, lo2 := bits.Mul64(uint64(o.max), uint64(q.per))
	return hi < hi2 || hi == hi2 && lo < lo2
}

// tokens is the quota as tokens in another period.
func (q quota) tokens(per time.Duration) float64 {
	if per == q.per {
		return float64(q.max)
	}
	return float64(q.max) * float64(per) / float64(q.per)
}

// A note is what a processor tells the others of its limit, in the note of its row:
// the limit it is configured with, and what it used lately.
type note struct {
	limit quota
	// hard: the limit must not be raised.
	hard bool
	// used and offered are rates in 1e-9 of the limit; see throttle.Flow.
	used, offered int64
}

// noteForm is the first word of every note that this release writes and reads.
const noteForm = "1"

// Bounds of a note's numbers.
const (
	maxNoteTokens = 1_000_000_000
	minNotePer    = int64(time.Millisecond / time.Microsecond)
	maxNotePer    = int64(31 * 24 * time.Hour / time.Microsecond)
	maxNoteFlow   = throttle.MaxShare
)

// noteOf returns what a processor says that is configured with l. A period of broken
// microseconds is rounded up: the limit told is never above the real one.
func noteOf(l throttle.Limit, used, offered int64) note {
	per := (l.Per + time.Microsecond - 1).Truncate(time.Microsecond)
	return note{quota{int64(l.Max), per}, l.Hard, used, offered}
}

// String returns the only text form of a note: its numbers with a blank between them.
func (n note) String() string {
	hard := "0"
	if n.hard {
		hard = "1"
	}
	b := append(make([]byte, 0, MaxNoteBytes), noteForm+" "+hard...)
	for _, v := range []int64{n.limit.max, n.limit.per.Microseconds(), n.used, n.offered} {
		b = strconv.AppendInt(append(b, ' '), v, 10)
	}
	return string(b)
}

// parseNote reads what String writes. Anything else is none of this release's, and of
// no account: ok is false.
func parseNote(text string) (n note, ok bool) {
	words := strings.Split(text, " ")
	if len(text) > MaxNoteBytes || len(words) != 6 || words[0] != noteForm || words[1] != "0" && words[1] != "1" {
		return note{}, false
	}
	var per int64
	for i, f := range []struct {
		at        *int64
		low, high int64
	}{
		{&n.limit.max, 1, maxNoteTokens},
		{&per, minNotePer, maxNotePer},
		{&n.used, 0, maxNoteFlow},
		{&n.offered, 0, maxNoteFlow},
	} {
		v, err := strconv.ParseInt(words[2+i], 10, 64)
		if err != nil || strconv.FormatInt(v, 10) != words[2+i] || v < f.low || v > f.high {
			return note{}, false
		}
		*f.at = v
	}
	n.limit.per, n.hard = time.Duration(per)*time.Microsecond, words[1] == "1"
	return n, true
}

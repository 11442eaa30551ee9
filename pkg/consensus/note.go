package consensus

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A note is what a processor reports to the others in its row: its configured limit, its
// recent use, and how the called service treated its calls.
type note struct {
	limit ceiling.Rate
	// hard: the limit must not be raised.
	hard bool
	// used and offered are rates in 1e-9 of the limit; see limit.Usage.
	used, offered int64
	// paused is the version of the document "pause" that the processor has in force: its
	// receipt. 0: it has none.
	paused Version
	// reports says that the processor makes calls. served then says how the called service
	// treats them, in 1e-9 of the limit; see limit.Served.
	reports bool
	served  backoff.Report
	// retryAt is the logical time before which the called service wants no other call of
	// this processor; 0: it has not asked.
	retryAt int64
	// standing is for operators. String writes it; only standingOf reads it.
	standing Standing
}

// noteForm is the first word of every note that this release writes and reads.
const noteForm = "1"

// Bounds of a note's numbers.
const (
	maxNoteTokens = 1_000_000_000
	minNotePer    = int64(time.Millisecond / time.Microsecond)
	maxNotePer    = int64(31 * 24 * time.Hour / time.Microsecond)
	maxNoteFlow   = limit.MaxShare
)

// noteOf returns the note of a processor that is configured with l. A period with a fraction
// of a microsecond is rounded up, so that the limit in the note is never above the real one.
func noteOf(l ceiling.Config, used, offered int64) note {
	per := (l.Limit.Per + time.Microsecond - 1).Truncate(time.Microsecond)
	return note{limit: ceiling.Rate{Max: l.Limit.Max, Per: per}, hard: l.Hard, used: used, offered: offered}
}

// pausedWord begins the word of a note that holds the receipt.
const pausedWord = "p:"

// String returns the text form of a note: its numbers, then words with more. A word is a
// name, a colon and a value. Words are separated by a blank. A note without a limit has
// only the form and words. An empty note says nothing.
func (n note) String() string {
	b := make([]byte, 0, MaxNoteBytes)
	if n.limit.Max == 0 {
		b = append(b, noteForm...)
	} else if b = n.appendLimit(b); n.reports {
		b = appendServed(b, n.served)
	}
	if n.retryAt > 0 {
		b = strconv.AppendInt(append(b, " "+retryWord...), n.retryAt, 36)
	}
	if n.paused > 0 {
		b = strconv.AppendUint(append(b, " "+pausedWord...), uint64(n.paused), 10)
	}
	if b = n.standing.appendTo(b); len(b) == len(noteForm) {
		return "" // it says nothing
	}
	return string(b)
}

func (n note) appendLimit(b []byte) []byte {
	hard := "0"
	if n.hard {
		hard = "1"
	}
	b = append(b, noteForm+" "+hard...)
	for _, v := range []int64{n.limit.Max, n.limit.Per.Microseconds(), n.used, n.offered} {
		b = strconv.AppendInt(append(b, ' '), v, 10)
	}
	return b
}

// parseNote reads a note that String wrote for a processor with a limit. It ignores words that
// this release does not know. ok is false for anything else.
func parseNote(text string) (n note, ok bool) {
	var room noteWords
	words, more, ok := room.split(text)
	if !ok {
		return note{}, false
	}
	return readNote(words, more)
}

// readNote is parseNote for a note that is already split.
func readNote(words, more []string) (n note, ok bool) {
	if len(words) != 6 || words[1] != "0" && words[1] != "1" {
		return note{}, false
	}
	if n.paused, ok = receiptIn(more); !ok {
		return note{}, false
	}
	if n.served, n.reports, ok = servedIn(more); !ok {
		return note{}, false
	}
	if n.retryAt, ok = retryIn(more); !ok {
		return note{}, false
	}
	var per int64
	for i, f := range []struct {
		at        *int64
		low, high int64
	}{
		{&n.limit.Max, 1, maxNoteTokens},
		{&per, minNotePer, maxNotePer},
		{&n.used, 0, maxNoteFlow},
		{&n.offered, 0, maxNoteFlow},
	} {
		v, ok := numeral(words[2+i], 10, f.high)
		if !ok || v < f.low {
			return note{}, false
		}
		*f.at = v
	}
	n.limit.Per, n.hard = time.Duration(per)*time.Microsecond, words[1] == "1"
	return n, true
}

// receiptOf reads the receipt of a note, with or without a limit. 0: there is none.
func receiptOf(text string) Version {
	var room noteWords
	words, more, ok := room.split(text)
	if !ok || len(words) != 6 && len(words) != 1 {
		return 0
	}
	if v, ok := receiptIn(more); ok {
		return v
	}
	return 0
}

// noteWords is room for the words of one note. A processor splits the notes of all others at
// each answer, so the room is reused.
type noteWords [12]string

// split parts a note into the words of its form and those with more.
func (room *noteWords) split(text string) (words, more []string, ok bool) {
	if driver.ValidateNote(text) != nil {
		return nil, nil, false
	}
	words = room[:0]
	form, begin := -1, 0 // form: how many words come before those with more
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ' ':
			words, begin = append(words, text[begin:i]), i+1
		case text[i] == ':' && form < 0:
			form = len(words)
		}
	}
	if words[0] != noteForm {
		return nil, nil, false
	}
	if form < 0 {
		return words, nil, true
	}
	words, more = words[:form], words[form:]
	for i, w := range more {
		name, value, _ := strings.Cut(w, ":")
		other := func(c rune) bool { return c < 'a' || c > 'z' }
		before := func(o string) bool { return strings.HasPrefix(o, w[:len(name)+1]) }
		if name == "" || value == "" || strings.ContainsFunc(name, other) || slices.ContainsFunc(more[:i], before) {
			return nil, nil, false
		}
	}
	return words, more, true
}

// receiptIn returns the receipt among words; 0 if there is none.
func receiptIn(more []string) (Version, bool) {
	for _, w := range more {
		digits, ok := strings.CutPrefix(w, pausedWord)
		if !ok {
			continue
		}
		v, ok := numeral(digits, 10, math.MaxInt64)
		return Version(v), ok && v > 0
	}
	return 0, true
}

// numeral reads a number from 0 to top in a base up to 36, as strconv.FormatInt writes it. It
// takes no sign, no leading zeros and no capitals.
func numeral(text string, base, top int64) (n int64, ok bool) {
	if text == "" || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for i := range len(text) {
		digit := int64(text[i]) - '0'
		if text[i] > '9' {
			digit = int64(text[i]) - 'a' + 10
			if digit < 10 {
				return 0, false
			}
		}
		if digit < 0 || digit >= base || n > top/base {
			return 0, false
		}
		if n = n*base + digit; n < 0 || n > top { // below 0: beyond what 64 bits hold
			return 0, false
		}
	}
	return n, true
}

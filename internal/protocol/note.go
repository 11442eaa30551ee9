package protocol

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Note is a processor's report to the others and to operators, in its row. It has the configured limit, the recent use, and how the
// called service treated the calls.
//
// Its text is the form, then five numbers if there is a limit, then words: a name, a colon and a value. Blanks separate them. Without a
// limit or a word it is empty.
type Note struct {
	// limit is zero if the processor has none of tokens.
	limit ceiling.Rate
	// hard: the limit must not be raised.
	hard bool
	// used and offered are rates in 1e-9 of the limit; see sharing.Usage.
	used, offered int64
	// Paused is the version of the document "pause" that the processor has in force: its
	// receipt. 0: it has none.
	Paused driver.Version
	// reports says that the processor makes calls. served then says how the called service
	// treats them, in 1e-9 of the limit; see sharing.Served.
	reports bool
	served  backoff.Report
	// retryAt is the logical time before which the called service wants no other call of
	// this processor; 0: it has not asked.
	retryAt int64
	// announced is the limit that the called service announced to this processor, in tokens per period of limit; 0: none. follows and first
	// are as in ceiling.Config.
	announced int64
	follows   bool
	first     int64
	// needs are the smallest and the largest share that waiting draws need; see gather. 0: there are none.
	needs [2]driver.Share
	// settings is how the processor is configured beside its limit.
	settings digest
	// file is the processor's settings file.
	file fileWord
	// standing is for operators. noteIn reads only its Slots; see standingOf.
	standing Standing
}

// noteForm is the first word of every note that this release writes and reads.
const noteForm = "1"

// Bounds of a note's numbers.
const (
	maxNoteTokens = 1_000_000_000
	minNotePer    = int64(time.Millisecond / time.Microsecond)
	maxNotePer    = int64(31 * 24 * time.Hour / time.Microsecond)
	maxNoteFlow   = sharing.MaxShare
	maxNoteCuts   = 78_000_000_000
)

// setLimit sets the configured limit and its use in a note. A period with a fraction of a microsecond is
// rounded up, so that the limit in the note is never above the real one.
func setLimit(n *Note, l ceiling.Config, used, offered int64) {
	per := (l.Limit.Per + time.Microsecond - 1).Truncate(time.Microsecond)
	n.limit, n.hard, n.used, n.offered = ceiling.Rate{Max: l.Limit.Max, Per: per}, l.Hard, used, offered
}

// A noteText is a note that is being written.
type noteText []byte

// add appends a word if it has a value, and there is room for it.
func (t *noteText) add(name, value string) {
	if value != "" && len(*t)+len(name)+len(value)+2 <= wire.MaxNoteBytes {
		*t = append(append(append(append(*t, ' '), name...), ':'), value...)
	}
}

// String returns the text of a note. What other processors need comes first. The limit, r, t and p always have room. So has g, unless two of r,
// t and a are there with numbers near their bounds: a large draw may wait longer then. The other words have it if there is some left.
func (n Note) String() string {
	t := append(make(noteText, 0, wire.MaxNoteBytes), noteForm...)
	if n.limit.Max > 0 {
		hard := int64(0)
		if n.hard {
			hard = 1
		}
		for _, v := range []int64{hard, n.limit.Max, n.limit.Per.Microseconds(), n.used, n.offered} {
			t = strconv.AppendInt(append(t, ' '), v, 10)
		}
	}
	if n.reports {
		t.add("r", cmp.Or(dotted(36, n.served.Generation, n.served.Accepted, n.served.Refused, n.served.Overloaded), "0"))
	}
	t.add("t", dotted(36, n.retryAt))
	t.add("p", dotted(10, int64(n.Paused)))
	if n.limit.Max > 0 {
		follows := int64(0)
		if n.follows {
			follows = 1
		}
		t.add("a", dotted(36, n.announced, follows, n.first))
	}
	t.add("g", dotted(36, int64(n.needs[0]), int64(n.needs[1])))
	t.add("s", string(n.settings))
	t.add("y", n.file.String())
	n.standing.appendTo(&t)
	if len(t) == len(noteForm) {
		return "" // it says nothing
	}
	return string(t)
}

// NoteIn reads what other processors need of a note, and its slots. It ignores words that this release does not know, and values that it does
// not write. A text of another form is an empty note.
func NoteIn(text string) (n Note) {
	var numbers [len(noteBounds) + 1]string
	count := 0
	for rest := noteBody(text); rest != ""; {
		var name, value string
		name, value, rest = cutWord(rest)
		switch name {
		case "":
			numbers[count] = value
			count = min(count+1, len(noteBounds))
		case "r":
			s := &n.served
			n.reports = true
			undot(value, 36, maxNoteCuts, &s.Generation, &s.Accepted, &s.Refused, &s.Overloaded)
		case "t":
			undot(value, 36, wire.MaxMicros, &n.retryAt)
		case "g":
			var least, most int64
			undot(value, 36, int64(driver.Whole), &least, &most)
			n.needs = [2]driver.Share{driver.Share(least), driver.Share(most)}
		case "a":
			follows := int64(0)
			undot(value, 36, maxNoteTokens, &n.announced, &follows, &n.first)
			n.follows = follows == 1
		case "p":
			n.Paused = driver.Version(numeral(value, 10, math.MaxInt64))
		case "n":
			n.standing.Slots = int(numeral(value, 10, maxNoteTokens))
		case "s":
			if d := digest(value); d.valid() {
				n.settings = d
			}
		case "y":
			n.file = fileWordOf(value)
		}
	}
	readLimit(&n, numbers[:])
	if n.limit.Max == 0 { // an announced limit counts in the period of the configured one
		n.announced, n.follows, n.first = 0, false, 0
	}
	return n
}

// noteBody returns the words of a note without the form; empty for another form.
func noteBody(text string) string {
	form, body, _ := strings.Cut(text, " ")
	if form != noteForm || driver.ValidateNote(text) != nil {
		return ""
	}
	return body
}

// cutWord returns the name and value of the first word of a note, and the rest. The name of a number is empty.
func cutWord(words string) (name, value, rest string) {
	word, rest, _ := strings.Cut(words, " ")
	name, value, named := strings.Cut(word, ":")
	if !named {
		name, value = "", word
	}
	return name, value, rest
}

// noteBounds are the bounds of the numbers of a limit: whether it is hard, Max, Per in microseconds, used and offered.
var noteBounds = [...][2]int64{{0, 1}, {1, maxNoteTokens}, {minNotePer, maxNotePer}, {0, maxNoteFlow}, {0, maxNoteFlow}}

// readLimit reads the numbers of a note. There is no limit unless all are in range, and there are no more.
func readLimit(n *Note, numbers []string) {
	if numbers[0] == "" { // no limit; an error of ParseUint would cost an allocation for each row
		return
	}
	var v [len(noteBounds)]int64
	for i, b := range noteBounds {
		u, err := strconv.ParseUint(numbers[i], 10, 63)
		if v[i] = int64(u); err != nil || v[i] < b[0] || v[i] > b[1] {
			return
		}
	}
	if numbers[len(v)] == "" {
		n.hard, n.limit = v[0] == 1, ceiling.Rate{Max: v[1], Per: time.Duration(v[2]) * time.Microsecond}
		n.used, n.offered = v[3], v[4]
	}
}

// dotted writes numbers with dots between them, as 12.3200..60000. Zeros are empty, and empty ones at the end are left out.
func dotted(base int, numbers ...int64) string {
	var b []byte
	for i, n := range numbers {
		if i > 0 {
			b = append(b, '.')
		}
		if n > 0 {
			b = strconv.AppendInt(b, n, base)
		}
	}
	return strings.TrimRight(string(b), ".")
}

// undot reads the output of dotted. Unreadable numbers, and those above top, count as 0.
func undot(text string, base int, top int64, numbers ...*int64) {
	for _, n := range numbers {
		var word string
		word, text, _ = strings.Cut(text, ".")
		*n = numeral(word, base, top)
	}
}

// numeral reads a number from 0 to top. Anything else counts as 0.
func numeral(text string, base int, top int64) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, base, 63)
	if err != nil || int64(n) > top {
		return 0
	}
	return int64(n)
}

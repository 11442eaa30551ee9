package protocol

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Standing is the state of a processor as its note reports it to operators, as of its last request. It is what the processor claimed
// then: no rule rests on it. For an idle processor all but Slots and Granted is zero.
type Standing struct {
	// Slots is how many calls the whole pool may have in flight at once, as the processor is configured; 0: its limit is of another kind.
	Slots int
	// Granted is the part of its limit that the pool is granted in the long run, as the processor is configured. It is less than 1 for a
	// hard limit; 0: all of it.
	Granted float64
	// Used is its use in the last seconds, as a part of its configured limit, or of Slots.
	Used float64
	// Waiting counts its waiting callers, and Throttled says why a draw would have to wait; empty: it would not.
	Waiting   int
	Throttled limit.Reason
	// Tag is the tag with that quota or pause. It is the name of a tag with its own quota, TagOthers, or # and the hash of another name, as
	// TagUse has it. Empty: it is the limit.
	Tag string
	// Pattern is the pattern whose quota a Tag without a quota by name has; empty: none, or not reported.
	Pattern string
	// Hold has more about what holds its callers back. Processors of an earlier release do not report it.
	Hold sharing.Hold
	// Frozen is how long no share could grow yet, and FrozenBy why.
	Frozen   time.Duration
	FrozenBy driver.FreezeCause

	// capped are the keys of patterns with a tag that uses all of its total; 0: none.
	capped [maxCapped]uint64
}

// maxCapped is the number of such patterns that a note can report.
const maxCapped = 2

// Bounds of the values for operators in a note.
const (
	maxNoteWaiting = 1_000_000_000
	maxNoteGranted = 1_000_000
	maxNoteUsed    = 1000 * ceiling.MaxRaise
	maxNoteFrozen  = int64(driver.MaxLease * 2 / time.Millisecond)
	maxNoteHold    = 1_000_000_000_000 // as milliseconds, more than thirty years
)

// appendTo adds the words of a note that hold a Standing: each if there is something to report, and room for it.
func (s *Standing) appendTo(t *noteText) {
	number := func(n float64, top int64) string { return dotted(10, min(int64(n), top)) }
	t.add("n", number(float64(s.Slots), maxNoteTokens))
	t.add("e", number(math.Ceil(s.Granted*maxNoteGranted), maxNoteGranted)) // in millionths, rounded up
	t.add("w", number(float64(s.Waiting), maxNoteWaiting))
	t.add("u", number(s.Used*1000+0.5, maxNoteUsed)) // in thousandths
	t.add("why", string(s.Throttled))
	t.add("tag", s.tagText())
	if pattern := url.QueryEscape(s.Pattern); len(pattern) <= tagname.MaxLen {
		t.add("of", pattern)
	}
	if s.Frozen > 0 && s.FrozenBy != "" {
		t.add("f", string(s.FrozenBy)+"."+number(float64(s.Frozen.Milliseconds()), maxNoteFrozen))
	}
	if s.Throttled != "" {
		t.add("h", holdText(s.Hold))
	}
	t.add("cap", dotted(16, int64(s.capped[0]), int64(s.capped[1])))
}

// standingOf reads the words for operators in a note. Unreadable ones count as missing.
func standingOf(text string) (s Standing) {
	for rest := noteBody(text); rest != ""; {
		var name, value string
		name, value, rest = cutWord(rest)
		switch name {
		case "n":
			s.Slots = int(numeral(value, 10, maxNoteTokens))
		case "e":
			s.Granted = float64(numeral(value, 10, maxNoteGranted)) / maxNoteGranted
		case "w":
			s.Waiting = int(numeral(value, 10, maxNoteWaiting))
		case "u":
			s.Used = float64(numeral(value, 10, maxNoteUsed)) / 1000
		case "why":
			if isWord(value) {
				s.Throttled = limit.Reason(value)
			}
		case "tag":
			s.Tag = tagOfText(value)
		case "of":
			if pattern, err := url.QueryUnescape(value); err == nil && utf8.ValidString(pattern) && len(value) <= tagname.MaxLen {
				s.Pattern = pattern
			}
		case "f":
			cause, left, _ := strings.Cut(value, ".")
			if n := numeral(left, 10, maxNoteFrozen); n > 0 && isWord(cause) {
				s.Frozen, s.FrozenBy = time.Duration(n)*time.Millisecond, driver.FreezeCause(cause)
			}
		case "h":
			s.Hold = holdOf(value)
		case "cap":
			var keys [maxCapped]int64
			undot(value, 16, 1<<busyKeyBits-1, &keys[0], &keys[1])
			s.capped = [maxCapped]uint64{uint64(keys[0]), uint64(keys[1])}
		}
	}
	return s
}

// blocked ends the text of a Hold by a total of 0.
const blocked = "b"

// holdText writes callers, the longest wait, the time left, the rate in thousandths, the time owed and the tags, times in milliseconds.
func holdText(h sharing.Hold) string {
	number := func(n int64) int64 { return min(n, maxNoteHold) }
	text := dotted(10, number(int64(h.Callers)), number(h.Longest.Milliseconds()), number(h.Left.Milliseconds()),
		number(int64(h.Rate*1000+0.5)), number(h.Owed.Milliseconds()), number(int64(h.Tags)))
	if h.Blocked {
		text += blocked
	}
	return text
}

// holdOf reads the output of holdText. Unreadable fields count as missing.
func holdOf(text string) (h sharing.Hold) {
	text, h.Blocked = strings.CutSuffix(text, blocked)
	var callers, longest, left, rate, owed, tags int64
	undot(text, 10, maxNoteHold, &callers, &longest, &left, &rate, &owed, &tags)
	h.Callers, h.Rate, h.Tags = int(min(callers, maxNoteWaiting)), float64(rate)/1000, int(min(tags, maxNoteWaiting))
	h.Longest, h.Left, h.Owed = time.Duration(longest)*time.Millisecond, time.Duration(left)*time.Millisecond, time.Duration(owed)*time.Millisecond
	return h
}

// TagOthers stands for all tags without a quota of their own.
const TagOthers = "(all others)"

// Why returns Throttled in words, with the tag: "quota (acme)". Empty: no draw would have to wait.
func (s *Standing) Why() string {
	switch {
	case s.Throttled == "" || s.Tag == "":
		return string(s.Throttled)
	case s.Tag == TagOthers:
		return string(s.Throttled) + " " + TagOthers
	}
	return string(s.Throttled) + " (" + cmp.Or(s.Pattern, s.Tag) + ")"
}

// tagText returns Tag in the form of the note.
func (s *Standing) tagText() string {
	switch {
	case s.Tag == TagOthers:
		return "#0"
	case strings.HasPrefix(s.Tag, "#") && isHash(s.Tag[1:]):
		return s.Tag
	}
	return url.QueryEscape(s.Tag)
}

// tagOfText reads the output of tagText; empty for anything else.
func tagOfText(value string) string {
	if hash, ok := strings.CutPrefix(value, "#"); ok {
		switch {
		case hash == "0":
			return TagOthers
		case isHash(hash):
			return value
		}
		return ""
	}
	name, err := url.QueryUnescape(value)
	if err != nil || !tagname.Valid(name) {
		return ""
	}
	return name
}

// hashLength is how many hexadecimal digits a hash of a tag has.
const hashLength = 10

// hashedTag stands for a tag whose name is not reported.
func hashedTag(tag string) string { return "#" + hashText(busyKey(tagname.Key(tag))) }

func hashText(key uint64) string { return fmt.Sprintf("%0*x", hashLength, key) }

func isHash(text string) bool {
	other := func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') }
	return len(text) == hashLength && !strings.ContainsFunc(text, other)
}

// reportedName returns a tag's name as reported to operators: tags with a quota by name are no secret.
func (t *tagging) reportedName(tag string) string {
	switch _, named := t.book.quotas.Tags[tag]; {
	case tag == "":
		return TagOthers
	case named && len(url.QueryEscape(tag)) <= tagname.MaxLen:
		return tag
	}
	return hashedTag(tag)
}

// reportedPattern returns the pattern of a tag as reported to operators; empty: it goes by none.
func (t *tagging) reportedPattern(tag string) string {
	if _, of := t.book.find(tag); of > 0 {
		return t.book.quotas.Match[of-1].Tag
	}
	return ""
}

// isWord reports whether a text is a reason or cause as this project names them, so that it can be printed anywhere.
func isWord(text string) bool {
	other := func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }
	return text != "" && !strings.ContainsFunc(text, other)
}

// useSpan is the least time over which recent use is measured; it may be twice as long. Syncs may follow each other at once, and a burst
// between two of them would look as if it went on.
const useSpan = time.Second

// A RecentUse is the flow of a holder at two earlier moments, at least useSpan apart.
type RecentUse struct{ before, since FlowAt }

// Of returns which part of a limit was used lately, given the flow until now. Flow.Since would count offered tokens where callers lack
// tokens.
func (r *RecentUse) Of(now FlowAt, tokens int, per time.Duration) float64 {
	if now.At-r.since.At >= useSpan {
		r.before, r.since = r.since, now
	}
	earned := float64(tokens) * float64(now.At-r.before.At) / float64(per)
	if earned <= 0 || per <= 0 {
		return 0
	}
	return max(0, now.Used-r.before.Used) / earned
}

// A FlowAt is what a holder had done at a local time.
type FlowAt struct {
	sharing.Usage
	At time.Duration
}

package consensus

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
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
	// Hold has more about what holds its callers back. Processors of an earlier release do not report it.
	Hold limit.Hold
	// Frozen is how long no share could grow yet, and FrozenBy why.
	Frozen   time.Duration
	FrozenBy FreezeCause

	// capped are the keys of patterns with a tag that uses all of its total; 0: none.
	capped [maxCapped]uint64
}

// maxCapped is the number of such patterns that a note can report.
const maxCapped = 2

// The words of a note that hold a Standing. Each is left out when there is nothing to report, and when there is no room for it.
const (
	slotsWord     = "n:"
	grantedWord   = "e:" // in millionths, rounded up
	usedWord      = "u:" // in thousandths
	waitingWord   = "w:"
	throttledWord = "why:"
	tagWord       = "tag:" // as in the query of a URL; the # of a hash stays as it is
	frozenWord    = "f:"   // the cause, a dot, and milliseconds
	holdWord      = "h:"   // numbers with dots between them; see holdText
	cappedWord    = "cap:" // hashes, with dots between them
)

// Bounds of the values for operators in a note.
const (
	maxNoteWaiting = 1_000_000_000
	maxNoteGranted = 1_000_000
	maxNoteUsed    = 1000 * MaxRaise
	maxNoteFrozen  = int64(MaxLease * 2 / time.Millisecond)
	maxNoteHold    = 1_000_000_000_000 // as milliseconds, more than thirty years
)

// appendTo appends the values to a note, as far as there is room.
func (s *Standing) appendTo(b []byte) []byte {
	add := func(there bool, name, value string) {
		if there && len(b)+1+len(name)+len(value) <= MaxNoteBytes {
			b = append(append(append(b, ' '), name...), value...)
		}
	}
	number := func(n, top int64) string { return strconv.FormatInt(min(n, top), 10) }
	used := int64(s.Used*1000 + 0.5)
	add(s.Slots > 0, slotsWord, number(int64(s.Slots), maxNoteTokens))
	add(s.Granted > 0, grantedWord, number(int64(math.Ceil(s.Granted*maxNoteGranted)), maxNoteGranted))
	add(s.Waiting > 0, waitingWord, number(int64(s.Waiting), maxNoteWaiting))
	add(used > 0, usedWord, number(used, maxNoteUsed))
	add(s.Throttled != "", throttledWord, string(s.Throttled))
	tag := s.told()
	add(tag != "", tagWord, tag)
	add(s.Frozen > 0 && s.FrozenBy != "", frozenWord, string(s.FrozenBy)+"."+number(s.Frozen.Milliseconds(), maxNoteFrozen))
	if s.Throttled != "" {
		hold := holdText(s.Hold)
		add(hold != "", holdWord, hold)
	}
	capped := s.cappedHashes()
	add(capped != "", cappedWord, capped)
	return b
}

func (s *Standing) cappedHashes() string {
	var list []string
	for _, key := range s.capped {
		if key != 0 {
			list = append(list, hashText(key))
		}
	}
	return strings.Join(list, ".")
}

// cappedIn reads what cappedHashes writes.
func cappedIn(value string) (keys [maxCapped]uint64) {
	for i, hash := range strings.SplitN(value, ".", maxCapped) {
		if isHash(hash) {
			keys[i], _ = strconv.ParseUint(hash, 16, 64)
		}
	}
	return keys
}

// standingOf reads the values for operators in a note. Unreadable ones count as missing.
func standingOf(text string) (s Standing) {
	var room noteWords
	_, more, ok := room.split(text)
	if !ok {
		return s
	}
	s.Slots = slotsIn(more)
	for _, w := range more {
		name, value, _ := strings.Cut(w, ":")
		switch name + ":" {
		case grantedWord:
			n, _ := numeral(value, 10, maxNoteGranted)
			s.Granted = float64(n) / maxNoteGranted
		case waitingWord:
			n, _ := numeral(value, 10, maxNoteWaiting)
			s.Waiting = int(n)
		case usedWord:
			n, _ := numeral(value, 10, maxNoteUsed)
			s.Used = float64(n) / 1000
		case throttledWord:
			if isWord(value) {
				s.Throttled = limit.Reason(value)
				if value == "reserved" { // as earlier releases call it
					s.Throttled = limit.ReasonSlotsTaken
				}
			}
		case holdWord:
			s.Hold = holdOf(value)
		case cappedWord:
			s.capped = cappedIn(value)
		case tagWord:
			s.Tag = tagTold(value)
		case frozenWord:
			cause, left, _ := strings.Cut(value, ".")
			if n, ok := numeral(left, 10, maxNoteFrozen); ok && isWord(cause) {
				s.Frozen, s.FrozenBy = time.Duration(n)*time.Millisecond, FreezeCause(cause)
			}
		}
	}
	return s
}

// blockedRate stands for the rate of a tag whose total is 0.
const blockedRate = "b"

// holdText writes callers, the longest wait, the time left, the rate in thousandths and the time owed, times in milliseconds, as
// 12.3200..60000. Zeros are empty, and empty fields at the end are left out.
func holdText(h limit.Hold) string {
	fields := make([]string, 0, 5)
	for _, n := range []int64{int64(h.Callers), h.Longest.Milliseconds(), h.Left.Milliseconds(), int64(h.Rate*1000 + 0.5), h.Owed.Milliseconds()} {
		text := ""
		if n > 0 {
			text = strconv.FormatInt(min(n, maxNoteHold), 10)
		}
		if len(fields) == 3 && h.Blocked {
			text = blockedRate
		}
		fields = append(fields, text)
	}
	return strings.TrimRight(strings.Join(fields, "."), ".")
}

// holdOf reads the output of holdText. Unreadable fields count as missing.
func holdOf(text string) (h limit.Hold) {
	var n [5]int64
	for i, field := range strings.SplitN(text, ".", len(n)) {
		n[i], _ = numeral(field, 10, maxNoteHold)
		h.Blocked = h.Blocked || i == 3 && field == blockedRate
	}
	h.Callers, h.Rate = int(min(n[0], maxNoteWaiting)), float64(n[3])/1000
	h.Longest, h.Left, h.Owed = time.Duration(n[1])*time.Millisecond, time.Duration(n[2])*time.Millisecond, time.Duration(n[4])*time.Millisecond
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
	return string(s.Throttled) + " (" + s.Tag + ")"
}

// told returns Tag in the form of the note.
func (s *Standing) told() string {
	switch {
	case s.Tag == TagOthers:
		return "#0"
	case strings.HasPrefix(s.Tag, "#") && isHash(s.Tag[1:]):
		return s.Tag
	}
	return url.QueryEscape(s.Tag)
}

// tagTold reads the output of told; empty for anything else.
func tagTold(value string) string {
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

// HashedTag stands for a tag whose name is not reported.
func HashedTag(tag string) string { return "#" + hashText(busyKey(tagname.Key(tag))) }

func hashText(key uint64) string { return fmt.Sprintf("%0*x", hashLength, key) }

func isHash(text string) bool {
	other := func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') }
	return len(text) == hashLength && !strings.ContainsFunc(text, other)
}

// toldName returns a tag's name as reported to operators: tags with a quota by name are no secret.
func (t *tagging) toldName(tag string) string {
	switch _, named := t.book.quotas.Tags[tag]; {
	case tag == "":
		return TagOthers
	case named && len(url.QueryEscape(tag)) <= tagname.MaxLen:
		return tag
	}
	return HashedTag(tag)
}

// slotsIn returns Standing.Slots among the words of a note.
func slotsIn(more []string) int {
	for _, w := range more {
		if value, ok := strings.CutPrefix(w, slotsWord); ok {
			n, _ := numeral(value, 10, maxNoteTokens)
			return int(n)
		}
	}
	return 0
}

// isWord reports whether a text is a reason or cause as this project names them, so that it can be printed anywhere.
func isWord(text string) bool {
	other := func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }
	return text != "" && !strings.ContainsFunc(text, other)
}

// standing returns the report for operators of the next request.
func (p *Processor) standing(now time.Duration) Standing {
	s := p.told
	if s.Slots > 0 {
		s.Used = p.inUse.Fraction()
	}
	s.Granted = p.ceiling.law.Config.Granted
	s.capped = p.tags.cappedPatterns()
	if s.Frozen = max(p.frozen-now, 0); s.Frozen > 0 {
		s.FrozenBy = p.frozenBy
	}
	return s
}

// useSpan is the least time over which recent use is measured; it may be twice as long. Syncs may follow each other at once, and a burst
// between two of them would look as if it went on.
const useSpan = time.Second

// A recentUse is the flow of a holder at two earlier moments, at least useSpan apart.
type recentUse struct{ before, since flowAt }

// of returns which part of a limit was used lately, given the flow until now. Flow.Since would count offered tokens where callers lack
// tokens.
func (r *recentUse) of(now flowAt, tokens int, per time.Duration) float64 {
	if now.at-r.since.at >= useSpan {
		r.before, r.since = r.since, now
	}
	earned := float64(tokens) * float64(now.at-r.before.at) / float64(per)
	if earned <= 0 || per <= 0 {
		return 0
	}
	return max(0, now.Used-r.before.Used) / earned
}

package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A pauseList is the document "pause": the pauses, their times and durations.
//
// The end of a pause is on the pool's logical clock: at is the logical time of writing, and left is
// the time left then. That clock follows the store's. So no processor's wall clock can shorten a
// pause, and it outlives all processors. The clock does not count time in which the pool was empty:
// Answer.Silence is subtracted for that.
//
// A processor writes the document again when the clock has lost time: the store was away for longer
// than a clamp, or lost the record. The next record has another clock.
type pauseList struct {
	entries []entry
	// resumed is the version of the document that recorded the last resumption; 0: none.
	resumed driver.Version
}

// An entry is one pause.
type entry struct {
	tag, reason, by string
	// at is the logical time of writing, in microseconds; 0 if the author knew no logical time. The
	// pause then counts from when a processor reads it.
	at int64
	// left is the time left at that moment; 0: until somebody resumes.
	left time.Duration
	// until is the end by the wall clock of the author, for people only; zero: no end.
	until time.Time
}

// The form of the document.
type pauseListJSON struct {
	Pauses  []entryJSON `json:"pauses"`
	Resumed uint64      `json:"resumed,omitempty"`
}

type entryJSON struct {
	Tag string `json:"tag,omitempty"`
	endJSON
}

// An endJSON says how long a pause or an override lasts, why, and who made it.
//
//nolint:tagliatelle // the unit belongs to the name
type endJSON struct {
	At     int64   `json:"at_us,omitempty"`
	Left   int64   `json:"left_us,omitempty"`
	Until  endTime `json:"until,omitzero"`
	Reason string  `json:"reason,omitempty"`
	By     string  `json:"by,omitempty"`
}

// An endTime is a time whose error names the field.
type endTime time.Time

// IsZero reports whether there is no end.
func (t endTime) IsZero() bool { return time.Time(t).IsZero() }

// MarshalJSON writes it as of RFC 3339.
func (t endTime) MarshalJSON() ([]byte, error) { return time.Time(t).MarshalJSON() }

// UnmarshalJSON reads a time as of RFC 3339.
func (t *endTime) UnmarshalJSON(text []byte) error {
	if err := (*time.Time)(t).UnmarshalJSON(text); err != nil {
		return fmt.Errorf("until is %.40s, allowed: a time as of RFC 3339", text)
	}
	return nil
}

// text returns the document's body, of any size.
func (n *pauseList) text() ([]byte, error) {
	j := pauseListJSON{Pauses: make([]entryJSON, 0, len(n.entries)), Resumed: uint64(n.resumed)}
	for _, e := range n.entries {
		j.Pauses = append(j.Pauses, entryJSON{e.tag, e.end()})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(j); err != nil {
		return nil, fmt.Errorf("consensus: the document %q: %w", pauseDocument, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// body returns the document's body. The error is a *throttle.PauseError if it is too large.
func (n *pauseList) body() ([]byte, error) {
	body, err := n.text()
	if err != nil {
		return nil, err
	}
	if len(n.entries) > bounds.MaxPausedTags || len(body) > wire.MaxDocumentBytes {
		return nil, &limit.PauseError{
			Field: "number", Value: fmt.Sprint(len(n.entries)),
			Allowed: fmt.Sprint("at most ", bounds.MaxPausedTags, " tags at a time, in ", wire.MaxDocumentBytes, " bytes with their reasons"),
		}
	}
	return body, nil
}

// parsePauseList reads a document's body. An unknown field is an error: it may be a pause of
// a kind that this release does not know.
func parsePauseList(body []byte) (n pauseList, err error) {
	if len(body) > wire.MaxDocumentBytes {
		return n, fmt.Errorf("the size of the document %s is %d, allowed: at most %d", pauseDocument, len(body), wire.MaxDocumentBytes)
	}
	var j pauseListJSON
	if err := decodeStrictly(body, &j); err != nil {
		return n, fmt.Errorf("consensus: the document %q holds no pauses: %.200s", pauseDocument, err.Error())
	}
	if j.Pauses == nil || len(j.Pauses) > bounds.MaxPausedTags || j.Resumed > wire.MaxVersion {
		return n, fmt.Errorf(`consensus: the document %q holds no pauses, allowed: {"pauses":[...]} with at most %d`, pauseDocument, bounds.MaxPausedTags)
	}
	n.resumed = driver.Version(j.Resumed)
	for _, o := range j.Pauses {
		e, err := o.entry()
		if err != nil {
			return pauseList{}, err
		}
		for _, other := range n.entries {
			if other.tag == e.tag {
				return pauseList{}, fmt.Errorf("consensus: the document %q pauses the tag %q twice", pauseDocument, e.tag)
			}
		}
		n.entries = append(n.entries, e)
	}
	return n, nil
}

func (o *entryJSON) entry() (e entry, err error) {
	if e, err = o.read(pauseDocument); err != nil {
		return entry{}, err
	}
	e.tag = o.Tag
	p := limit.Paused{Tag: e.tag, Reason: e.reason, By: e.by}
	return e, p.Check(time.Time{})
}

// end returns the entry without its tag in the form of a document.
func (e *entry) end() endJSON {
	return endJSON{e.at, e.left.Microseconds(), endTime(e.until.UTC().Truncate(time.Second)), e.reason, e.by}
}

// read returns the entry without its tag, of the document with that name.
func (j *endJSON) read(document string) (e entry, err error) {
	if j.At < 0 || j.At > wire.MaxMicros || j.Left < 0 || j.Left > bounds.MaxPause.Microseconds() {
		return e, fmt.Errorf("consensus: the document %q has a time out of bounds", document)
	}
	left := time.Duration(j.Left) * time.Microsecond
	return entry{reason: j.Reason, by: j.By, at: j.At, left: left, until: time.Time(j.Until).UTC()}, nil
}

// The document has places for MaxPausedTags pauses. The last one is for the pause of the whole pool, and pods leave some to operators, so
// that their callers' pauses keep nobody from stopping the pool.
const (
	placesOfPool      = 1
	placesOfOperators = 4 // the pool's included
	// placeBytes is the size of a place: that of the largest pause of the pool.
	placeBytes = 512
)

// with returns the list with one more pause, in place of an older one of its tag. ok is false if fewer places than spare would stay free.
// The pause of the whole pool always has room: in a full list of an earlier release it replaces the pause that ends first.
func (n *pauseList) with(e entry, spare int) (next pauseList, ok bool) {
	next = *n
	next.drop(e.tag)
	had := len(next.entries) < len(n.entries)
	next.entries = append(next.entries, e)
	if e.tag == "" {
		for len(next.entries) > 1 {
			if _, err := next.body(); err == nil {
				break
			}
			next.drop(next.firstToEnd())
		}
		return next, true
	}
	if had {
		spare = placesOfPool // it has its place
	}
	tags := next
	tags.drop("")
	text, err := tags.text()
	ok = err == nil && (had || len(tags.entries) <= bounds.MaxPausedTags-spare) && len(text) <= wire.MaxDocumentBytes-spare*placeBytes
	return next, ok
}

// firstToEnd returns the paused tag whose pause ends first.
func (n *pauseList) firstToEnd() (tag string) {
	end := time.Duration(math.MaxInt64)
	for i := range n.entries {
		e := &n.entries[i]
		at := e.left + time.Duration(e.at)*time.Microsecond
		if e.left == 0 {
			at = math.MaxInt64
		}
		if e.tag != "" && (tag == "" || at < end) {
			tag, end = e.tag, at
		}
	}
	return tag
}

// full is the error for the pause of a tag that finds no room.
func (n *pauseList) full(tag, why string) error {
	paused := 0
	for i := range n.entries {
		if n.entries[i].tag != "" {
			paused++
		}
	}
	return &limit.PauseError{
		Field: "tag", Value: fmt.Sprintf("%.40q", tag),
		Allowed: fmt.Sprintf("one that is paused already, or none for the whole pool: %d tags are paused, and %s", paused, why),
	}
}

// drop removes the pause of a tag.
func (n *pauseList) drop(tag string) {
	n.entries = slices.DeleteFunc(slices.Clone(n.entries), func(e entry) bool { return e.tag == tag })
}

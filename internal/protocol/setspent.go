package protocol

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A SpentChange sets the spending in one budget window of a tag.
type SpentChange struct {
	// Tag is the tag; empty for all tags without a quota of their own.
	Tag string
	// Start and End are those of the window, as limit.Budget.Window returns them. The store's clock must be in it. Budgets of the tag whose
	// windows begin at the same time count as one, so all of them are changed.
	Start, End time.Time
	// Tokens is the number spent since Start: 0 to 4e15.
	Tokens int64
	// By and Reason say who changed it and why; both can be empty. Processors log them.
	By, Reason string
}

// SetSpent sets the spending in a budget window of a pool to Tokens, regardless of the count. It is exact. It serves when the store and all
// processors have lost the count, or a bill differs. Later draws count on top. Tokens that processors had drawn before and did not use are
// subtracted when they give them back, as always.
//
// Processors remember the spending that the store reported, and report it to a store that has lost its state, where the largest number
// counts. So a change is also written to a document of the pool, by which they drop larger numbers with their next sync. Until then, or if
// the call fails in between, a store that loses its state gets the larger number back. Then less can be used than was set, never more.
// Setting less while the pool is frozen is refused, because processors report the number then.
//
// The pool must have a record: a processor has been in it. SetSpent blocks until the store has answered; ctx bounds it. After an error it
// can be called again. Errors: *RequestError for a field out of bounds, a window without the store's clock, and a lower number while the
// pool is frozen; *ConflictError when others keep changing it at the same time; those of the store. Others
// wrap ErrNoPool, driver.ErrNoTagBuckets for a store that is no driver.TagBucketSetter, or driver.ErrTagBucketsLost.
func SetSpent(ctx context.Context, s driver.Store, pool string, c SpentChange) error {
	report := driver.SpentReport{Key: tagname.Key(c.Tag), Start: c.Start.UnixMicro(), End: c.End.UnixMicro(), Tokens: c.Tokens}
	if err := cmp.Or(c.validate(), report.Validate(pool)); err != nil {
		return err
	}
	setter, ok := s.(driver.TagBucketSetter)
	if !ok {
		return fmt.Errorf("consensus: setting what is spent in pool %q: %w", pool, driver.ErrNoTagBuckets)
	}
	if err := mayLower(ctx, s, pool, &report); err != nil {
		return saving(err, "consensus: setting what is spent in pool %q: %w", pool)
	}
	// The tag bucket comes first: a reader of the document then has an answer with the new number.
	if err := setter.SetSpent(ctx, pool, report); err != nil {
		return saving(err, "consensus: setting what is spent in pool %q: %w", pool)
	}
	_, err := spentDoc.Change(ctx, s, pool, func(r pooldoc.Recorded[spentList]) (spentList, bool, error) {
		return r.Value.with(spentEntry{SpentChange: c, at: r.Next}), true, nil // earlier ones that cannot be read have been taken, or never will be
	})
	return saving(err, "consensus: setting what is spent in pool %q: %w", pool)
}

func (c *SpentChange) validate() error {
	if c.Tag != "" && !tagname.Valid(c.Tag) {
		return &driver.RequestError{
			Field: "Tag", Value: fmt.Sprintf("%.40q", c.Tag), Allowed: fmt.Sprint("1 to ", tagname.MaxLen, " bytes of text; empty for all other tags"),
		}
	}
	return (&limit.Paused{By: c.By, Reason: c.Reason}).Check(time.Time{})
}

// mayLower refuses to lower the spending while the pool is frozen.
func mayLower(ctx context.Context, s driver.Store, pool string, r *driver.SpentReport) error {
	o, err := LoadOverview(ctx, s, pool)
	if err != nil || o.Frozen <= 0 {
		return err
	}
	tagBuckets, err := loadTagBuckets(ctx, s, pool)
	if err != nil {
		return err
	}
	for i := range tagBuckets {
		for _, w := range tagBuckets[i].Spent {
			if tagBuckets[i].Key == r.Key && w.Start == r.Start && w.Tokens > r.Tokens {
				return &driver.RequestError{
					Field: "Tokens", Value: fmt.Sprint(r.Tokens),
					Allowed: fmt.Sprintf("%d or more while the pool is frozen, for %v yet", w.Tokens, o.Frozen.Round(100*time.Millisecond)),
				}
			}
		}
	}
	return nil
}

// maxSpentEntries is how many changes the document holds, fewer if they are long. A processor needs each once, at its next sync.
const maxSpentEntries = 20

// A spentEntry is one change, and the version of the document that brought it.
type spentEntry struct {
	SpentChange

	at driver.Version
}

// A spentList is the document "spent": the newest changes of spending, the oldest first.
type spentList []spentEntry

// with returns the list with one more change, in place of an older one of the same window. The oldest ones go if there is no room.
func (l spentList) with(e spentEntry) spentList {
	l = slices.DeleteFunc(slices.Clone(l), func(o spentEntry) bool { return o.Tag == e.Tag && o.Start.Equal(e.Start) })
	l = append(l, e)
	for len(l) > 1 {
		if body, err := l.body(); len(l) <= maxSpentEntries && err == nil && len(body) <= wire.MaxDocumentBytes {
			break
		}
		l = l[1:]
	}
	return l
}

// since returns the changes newer than that version of the document.
func (l spentList) since(v driver.Version) spentList {
	return slices.DeleteFunc(slices.Clone(l), func(e spentEntry) bool { return e.at <= v })
}

// The form of the document.
type spentJSON struct {
	Set []spentEntryJSON `json:"set"`
}

//nolint:tagliatelle // the unit belongs to the name
type spentEntryJSON struct {
	At     uint64 `json:"at"`
	Tag    string `json:"tag"`
	Start  int64  `json:"start_us"`
	End    int64  `json:"end_us"`
	Tokens int64  `json:"tokens"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func (l spentList) body() ([]byte, error) {
	j := spentJSON{Set: []spentEntryJSON{}}
	for _, e := range l {
		j.Set = append(j.Set, spentEntryJSON{uint64(e.at), e.Tag, e.Start.UnixMicro(), e.End.UnixMicro(), e.Tokens, e.By, e.Reason})
	}
	return json.Marshal(j)
}

// parseSpentList reads a document's body. An unknown field is an error: a later release may count by it.
func parseSpentList(body []byte) (spentList, error) {
	var j spentJSON
	if err := decodeStrictly(body, &j); err != nil {
		return nil, fmt.Errorf("consensus: the document %q has no changes of what is spent: %.200s", spentDocument, err.Error())
	}
	if len(j.Set) > maxSpentEntries {
		return nil, fmt.Errorf("consensus: the document %q has no changes of what is spent, allowed: at most %d", spentDocument, maxSpentEntries)
	}
	var l spentList
	for _, e := range j.Set {
		c := SpentChange{e.Tag, time.UnixMicro(e.Start).UTC(), time.UnixMicro(e.End).UTC(), e.Tokens, e.By, e.Reason}
		report := driver.SpentReport{Start: e.Start, End: e.End, Tokens: e.Tokens}
		if err := errors.Join(c.validate(), report.Validate("pool")); err != nil {
			return nil, fmt.Errorf("consensus: the document %q has a change out of bounds: %w", spentDocument, err)
		}
		l = append(l, spentEntry{c, driver.Version(e.At)})
	}
	return l, nil
}

package protocol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A TagSpent lists how much one tag of a pool has spent of its budgets.
type TagSpent struct {
	// Tag is its name: empty for all tags without a quota of their own, and if Unnamed.
	Tag string
	// Key is the store's key for the name. Unnamed says that none of the given names has it.
	Key     uint64
	Unnamed bool
	// Windows are those that the store has on record, by rising Start: at least one. An ended window stays for ten minutes or longer.
	Windows []SpentWindow
}

// A SpentWindow is the spending in one budget window, or in several that begin at the same time.
type SpentWindow struct {
	// Start is when it began, and End when the last one ends, by the store's clock, in UTC.
	Start, End time.Time
	// Tokens is the number spent since Start, plus those that processors have drawn and not used yet: 0 to 4e15.
	Tokens int64
}

// LoadSpent returns the spent budgets of a pool. Tags among names come first, by rising name, then all tags without a quota of their own,
// then unnamed tags, by rising key. Tags that have spent of no budget are not in it. It changes nothing. ctx bounds the call. Errors:
// *RequestError for a name that no pool can have; those of the store. Others wrap ErrNoPool, or driver.ErrNoTagBuckets for a store that is no
// driver.TagBucketReader.
func LoadSpent(ctx context.Context, s driver.Store, pool string, names []string) ([]TagSpent, error) {
	tagBuckets, err := loadTagBuckets(ctx, s, pool)
	if err != nil {
		return nil, fmt.Errorf("consensus: loading what is spent in pool %q: %w", pool, err)
	}
	named := map[uint64]string{tagname.OtherKey: ""}
	for _, name := range names {
		named[tagname.Key(name)] = name
	}
	var all []TagSpent
	for i := range tagBuckets {
		t := &tagBuckets[i]
		if len(t.Spent) == 0 {
			continue
		}
		name, known := named[t.Key]
		spent := TagSpent{Tag: name, Key: t.Key, Unnamed: !known}
		for _, w := range t.Spent {
			spent.Windows = append(spent.Windows, SpentWindow{time.UnixMicro(w.Start).UTC(), time.UnixMicro(w.End).UTC(), w.Tokens})
		}
		all = append(all, spent)
	}
	slices.SortFunc(all, func(a, b TagSpent) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Key, b.Key))
	})
	return all, nil
}

// place puts tags with names first, and unnamed ones last.
func (t *TagSpent) place() int {
	switch {
	case t.Unnamed:
		return 2
	case t.Tag == "":
		return 1
	}
	return 0
}

func loadTagBuckets(ctx context.Context, s driver.Store, pool string) ([]driver.TagBucket, error) {
	reader, ok := s.(driver.TagBucketReader)
	if !ok {
		return nil, driver.ErrNoTagBuckets
	}
	return reader.TagBuckets(ctx, pool)
}

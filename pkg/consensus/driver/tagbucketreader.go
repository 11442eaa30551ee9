package driver

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// A TagBucketReader is a Store that can also read its tag buckets. It is for operators alone: no processor asks for it. The stores of this project are
// TagBucketReaders.
type TagBucketReader interface {
	// TagBuckets returns the tag buckets of a pool by rising key, as the last step left them; none if the pool has drawn nothing. Those of names that
	// go by a pattern are included, but not the amounts spent by names whose tag buckets were dropped. Windows of budgets that have ended stay
	// for ten minutes or longer. It changes nothing, and the result is the caller's. It may be called from any number of goroutines at
	// once. Errors: those of Store.Load, and one that wraps ErrNoTagBuckets.
	TagBuckets(ctx context.Context, pool string) ([]TagBucket, error)
}

// ErrNoTagBuckets is wrapped by the error of a TagBucketReader around a Store that is not one.
var ErrNoTagBuckets = errors.New("consensus: the store cannot tell what its tag buckets hold")

// LoadTagBuckets returns a copy of the tag buckets, as the last step left them; see [TagBucketReader]. The error is [ErrNoPool].
func (r *Record) LoadTagBuckets() ([]TagBucket, error) {
	if r.Revision == 0 {
		return nil, ErrNoPool
	}
	tagBuckets := slices.Clone(r.TagBuckets)
	for _, t := range r.Names.TagBuckets {
		if _, moved := findTagBucket(r.TagBuckets, t.Key); !moved {
			tagBuckets = append(tagBuckets, t)
		}
	}
	slices.SortFunc(tagBuckets, func(a, b TagBucket) int { return cmp.Compare(a.Key, b.Key) })
	for i := range tagBuckets {
		tagBuckets[i].Spent = slices.Clone(tagBuckets[i].Spent)
	}
	return tagBuckets, nil
}

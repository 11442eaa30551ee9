package natsstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.TagBucketSetter = (*Store)(nil)

// TagBuckets implements [driver.TagBucketReader]. It returns the errors of Load.
func (s *Store) TagBuckets(ctx context.Context, pool string) (tagBuckets []driver.TagBucket, err error) {
	_, err = s.see(ctx, pool, func(rec *driver.Record) (err error) {
		tagBuckets, err = rec.LoadTagBuckets()
		return err
	})
	return tagBuckets, err
}

// SetSpent implements [driver.TagBucketSetter]. It returns the errors of Save, and a *driver.RequestError as listed at TagBucketSetter.
func (s *Store) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	if err := r.Validate(pool); err != nil {
		return err
	}
	refused := driver.ErrNoPool // without a bucket nothing is applied
	err := s.carryOut(ctx, &step{pool: pool, apply: func(rec *driver.Record, at driver.At) (changed bool) {
		refused = rec.SetSpent(&r, at)
		return refused == nil
	}})
	if err = cmp.Or(err, refused); err != nil {
		return fmt.Errorf("natsstore: what is spent in pool %q: %w", pool, err)
	}
	return nil
}

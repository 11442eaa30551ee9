package memstore

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.TagBucketSetter = (*Store)(nil)

// TagBuckets implements [driver.TagBucketReader]. Errors are those of Load.
func (s *Store) TagBuckets(ctx context.Context, pool string) ([]driver.TagBucket, error) {
	if err := s.lock(ctx, driver.ValidatePool(pool)); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.record(pool).LoadTagBuckets()
}

// SetSpent implements [driver.TagBucketSetter]. Errors are those of Load, and *driver.RequestError as TagBucketSetter lists them.
func (s *Store) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	if err := s.lock(ctx, r.Validate(pool)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.record(pool).SetSpent(&r, s.at())
}

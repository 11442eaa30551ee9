package memstore

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.TillSetter = (*Store)(nil)

// Tills implements driver.TillReader. Errors are those of Load.
func (s *Store) Tills(ctx context.Context, pool string) ([]driver.Till, error) {
	if err := s.lock(ctx, driver.ValidatePool(pool)); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.record(pool).LoadTills()
}

// SetSpent implements driver.TillSetter. Errors are those of Load, and *driver.RequestError as TillSetter lists them.
func (s *Store) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	if err := s.lock(ctx, r.Validate(pool)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.record(pool).SetSpent(&r, s.at())
}

package memstore

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.TillReader = (*Store)(nil)

// Tills implements driver.TillReader. Errors are those of Load.
func (s *Store) Tills(ctx context.Context, pool string) ([]driver.Till, error) {
	if err := driver.ValidatePool(pool); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record(pool).LoadTills()
}

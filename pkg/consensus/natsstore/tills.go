package natsstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.TillReader = (*Store)(nil)

// Tills implements driver.TillReader. Errors are those of Load.
func (s *Store) Tills(ctx context.Context, pool string) (tills []driver.Till, err error) {
	if err := driver.ValidatePool(pool); err != nil {
		return nil, err
	}
	found := driver.ErrNoPool // without a bucket nothing is applied
	err = s.step(ctx, pool, false, func(rec *driver.Record, _ driver.At) bool {
		tills, found = rec.LoadTills()
		return false
	})
	if err = cmp.Or(err, found); err != nil {
		return nil, fmt.Errorf("natsstore: pool %q: %w", pool, err)
	}
	return tills, nil
}

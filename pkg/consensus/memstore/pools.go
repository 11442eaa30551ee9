package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.Lister = (*Store)(nil)

// Pools implements [driver.Lister]. The only error is the context's own if that has ended before the call.
func (s *Store) Pools(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.pools)), nil
}

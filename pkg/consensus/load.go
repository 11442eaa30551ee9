package consensus

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// load is Store.Load whose answer can be believed: the error wraps ErrWrongAnswer for one that no store gives.
func load(ctx context.Context, s Store, pool string) ([]Document, []RosterRow, error) {
	docs, roster, err := s.Load(ctx, pool)
	if err == nil {
		err = driver.CheckLoaded(docs, roster)
	}
	if err != nil {
		return nil, nil, err
	}
	return docs, roster, nil
}

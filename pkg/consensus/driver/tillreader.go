package driver

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// A TillReader is a Store that can also read its tills. It is for operators alone: no processor asks for it. The stores of this project are
// TillReaders.
type TillReader interface {
	// Tills returns the tills of a pool by rising key, as the last step left them; none if the pool has drawn nothing. Those of names that
	// go by a pattern are included, but not the amounts spent by names whose tills were dropped. Windows of budgets that have ended stay
	// for ten minutes or longer. It changes nothing, and the result is the caller's. It may be called from any number of goroutines at
	// once. Errors: those of Store.Load, and one that wraps ErrNoTills.
	Tills(ctx context.Context, pool string) ([]Till, error)
}

// ErrNoTills is wrapped by the error of a TillReader around a Store that is not one.
var ErrNoTills = errors.New("consensus: the store cannot tell what its tills hold")

// LoadTills returns a copy of the tills, as the last step left them; see TillReader. The error is ErrNoPool.
func (r *Record) LoadTills() ([]Till, error) {
	if r.Revision == 0 {
		return nil, ErrNoPool
	}
	tills := slices.Clone(r.Tills)
	for _, t := range r.Names.Tills {
		if _, moved := findTill(r.Tills, t.Key); !moved {
			tills = append(tills, t)
		}
	}
	slices.SortFunc(tills, func(a, b Till) int { return cmp.Compare(a.Key, b.Key) })
	for i := range tills {
		tills[i].Spent = slices.Clone(tills[i].Spent)
	}
	return tills, nil
}

package driver

import (
	"context"
	"errors"
)

// A Lister is a Store that can also tell which pools it has. It is for operators alone: no
// processor asks for it. The stores of this project are Listers.
type Lister interface {
	// Pools returns the names of the pools with a record, also of those that nobody is in any
	// more, by rising name and each once. A pool that begins or ends meanwhile may be in it. It
	// changes nothing. It asks every server that has pools, and may take several round trips. It
	// may be called from any number of goroutines at once.
	// Errors: one that wraps ErrNoList; anything else is the store's, and passing.
	Pools(ctx context.Context) ([]string, error)
}

// ErrNoList is wrapped by the error of a Lister around a Store that is none.
var ErrNoList = errors.New("consensus: the store cannot tell which pools it has")

package driver

import (
	"context"
	"errors"
	"time"
)

// A Lister is a Store that can also list its pools. It is for operators alone: no processor asks for it. The stores of this project are
// Listers.
type Lister interface {
	// Pools returns the names of the pools with a record, including empty ones, by rising name and each once. A pool that begins or ends
	// meanwhile may be in it. It changes nothing. It asks every server that has pools, and may take several round trips. It may be called
	// from any number of goroutines at once. Errors: one that wraps ErrNoList; any other error is the store's, and transient.
	Pools(ctx context.Context) ([]string, error)
}

// ErrNoList is wrapped by the error of a Lister around a Store that is none.
var ErrNoList = errors.New("consensus: the store cannot tell which pools it has")

// An Ager is a Store that also knows how long ago a processor asked it for a pool. It is for operators alone: a pool whose processors have
// all died stays on record as it was. The stores of this project are Agers.
type Ager interface {
	// Age returns for how long nobody has synced with the pool, by the store's own clock; 0 if unknown. On some stores a change by an
	// operator counts as a sync. It changes nothing. It may be called from any number of goroutines at once. Errors: those of Store.Load.
	Age(ctx context.Context, pool string) (time.Duration, error)
}

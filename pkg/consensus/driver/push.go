package driver

import (
	"context"
	"errors"
	"fmt"
)

// A Pusher is a Store that can also carry news to all processors of a pool at once. News
// are hints, and never the truth: each is delivered at most once, perhaps late, and the
// channel may be silent for long without any error. All methods may be called from any
// number of goroutines and processes at once. The stores of this project are Pushers.
type Pusher interface {
	// Push sends news of at most MaxNewsBytes to everybody who watches the pool, the
	// sender included. It returns when they are on their way.
	// Errors: *RequestError for a name that no pool can have or news of a wrong size;
	// anything else is the store's, and passing: whether anybody heard it is not known.
	Push(ctx context.Context, pool string, news []byte) error

	// Watch calls heard with all news of a pool from about now on, one at a time, until stop
	// is called, whatever becomes of the connection meanwhile. heard may keep news. It
	// may call Push, but should return soon: what comes meanwhile may be lost. stop
	// waits for nothing, and may be called more than once; one more call of heard may come
	// after it. ctx bounds Watch alone.
	// Errors: *RequestError for a name that no pool can have; ErrNoPush; anything else is
	// the store's, and passing. A server that is away is no error.
	Watch(ctx context.Context, pool string, heard func(news []byte)) (stop func(), err error)
}

// MaxNewsBytes is the size of the largest news.
const MaxNewsBytes = 8192

// ErrNoPush is wrapped by the error of a Pusher around a Store that is none.
var ErrNoPush = errors.New("consensus: the store has no channel for news")

// ValidateNews returns a *RequestError for news that no Pusher sends, or nil. Every Pusher
// calls it first in Push.
func ValidateNews(pool string, news []byte) error {
	if err := ValidatePool(pool); err != nil {
		return err
	}
	if len(news) == 0 || len(news) > MaxNewsBytes {
		return &RequestError{"News", fmt.Sprint(len(news), " bytes"), fmt.Sprint("1 to ", MaxNewsBytes, " bytes")}
	}
	return nil
}

package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A Pusher is a Store that can also carry news to all processors of a pool at once. News are hints, never facts: each is delivered at most
// once, perhaps late, and the channel may be silent for long without any error. All methods may be called from any number of goroutines and
// processes at once. The stores of this project are Pushers.
type Pusher interface {
	// Push sends news of at most 8,192 bytes to all watchers of the pool, the sender included. It returns when they are on their way.
	// Errors: *RequestError for a name that no pool can have or news of a wrong size. Any other error is the store's, and transient: the
	// news may or may not have been received.
	Push(ctx context.Context, pool string, news []byte) error

	// Watch calls heard with all news of a pool from about now on, one at a time. It goes on until stop is called, even if the connection
	// is lost meanwhile. heard may keep news. It may call Push, but should return soon: news that arrive meanwhile may be lost. stop does
	// not block, and may be called more than once. One more call of heard may follow it. ctx bounds Watch alone. Errors: *RequestError for
	// a name that no pool can have; ErrNoPush; any other error is the store's, and transient. An absent server is no error.
	Watch(ctx context.Context, pool string, received func(news []byte)) (stop func(), err error)
}

// ErrNoPush is wrapped by the error of a Pusher around a Store that is not one.
var ErrNoPush = errors.New("consensus: the store has no channel for news")

// ValidateNews returns a *RequestError for news that no Pusher sends, or nil. Every Pusher calls it first in Push.
func ValidateNews(pool string, news []byte) error {
	if err := ValidatePool(pool); err != nil {
		return err
	}
	if len(news) == 0 || len(news) > wire.MaxNewsBytes {
		return &RequestError{"News", fmt.Sprint(len(news), " bytes"), fmt.Sprint("1 to ", wire.MaxNewsBytes, " bytes")}
	}
	return nil
}

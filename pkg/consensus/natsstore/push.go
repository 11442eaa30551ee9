package natsstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.Pusher = (*Store)(nil)

// newsBranch is the first token of the subjects of news, below that of the keys. The key of a
// pool is one token, so no key is below it.
const newsBranch = "push."

// notKept is the stream that news are expected to be kept in: none. News go to a subject
// of the bucket, because that is what users may publish to; but the bucket is to refuse them, so that they
// do not come between the writes of records.
const notKept = "numathrottle-news-are-not-kept"

func (s *Store) newsSubject(pool string) string { return s.prefix + newsBranch + keyOf(pool) }

// Push publishes news with core NATS: whoever is connected hears it, and nobody keeps it. It
// works while the bucket has no leader. It does not wait for the server. Errors:
// *driver.RequestError for a name that no pool can have or news of a wrong size; that of the
// connection when there is none.
func (s *Store) Push(ctx context.Context, pool string, news []byte) error {
	if err := driver.ValidateNews(pool, news); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	msg := nats.NewMsg(s.newsSubject(pool))
	msg.Data = news
	msg.Header.Set(headerExpectStream, notKept)
	if _, err := bounded.Call(ctx, func() (none struct{}, err error) { return none, s.nc.PublishMsg(msg) }); err != nil {
		return fmt.Errorf("natsstore: news of pool %q: %w", pool, err)
	}
	return nil
}

// Watch subscribes to the news of a pool with core NATS: no consumer of the bucket, of which
// there may be but a thousand. The connection subscribes anew when it was lost. A user who may not
// subscribe hears nothing; the server tells the connection's error handler. Errors:
// *driver.RequestError for a name that no pool can have; that of a closed connection.
func (s *Store) Watch(ctx context.Context, pool string, heard func(news []byte)) (stop func(), err error) {
	if err := driver.ValidatePool(pool); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sub, err := s.nc.Subscribe(s.newsSubject(pool), func(m *nats.Msg) {
		if len(m.Data) > 0 && len(m.Data) <= driver.MaxNewsBytes {
			heard(m.Data)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("natsstore: news of pool %q: %w", pool, err)
	}
	return sync.OnceFunc(func() { _ = sub.Unsubscribe() }), nil // fails only on a closed connection
}

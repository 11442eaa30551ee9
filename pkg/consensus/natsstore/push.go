package natsstore

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.Pusher = (*Store)(nil)

// newsBranch is the first token of news subjects, below the prefix of the keys. The key of a pool is one token, so no key is below
// newsBranch.
const newsBranch = "push."

// notKept is the stream that news expects to be kept in; it does not exist. News uses subjects of the bucket because users may publish to
// these. The bucket must refuse news, so that none comes between the writes of records.
const notKept = "numathrottle-news-are-not-kept"

func (s *Store) newsSubject(pool string) string { return s.prefix + newsBranch + keyOf(pool) }

// Push publishes news with core NATS: connected processors receive it, and nobody keeps it. It works while the bucket has no leader, and
// does not wait for the server. It returns a *driver.RequestError for an invalid pool name or news of a wrong size, or the error of the
// connection if there is none.
func (s *Store) Push(ctx context.Context, pool string, news []byte) error {
	if err := cmp.Or(driver.ValidateNews(pool, news), ctx.Err()); err != nil {
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

// Watch subscribes to the news of a pool with core NATS, without a consumer of the bucket, which allows only a thousand. The client
// subscribes again after a reconnect. A user without the permission receives nothing; the server reports it to the connection's error
// handler. Watch returns a *driver.RequestError for an invalid pool name, or the error of a closed connection.
func (s *Store) Watch(ctx context.Context, pool string, received func(news []byte)) (stop func(), err error) {
	if err := cmp.Or(driver.ValidatePool(pool), ctx.Err()); err != nil {
		return nil, err
	}
	sub, err := s.nc.Subscribe(s.newsSubject(pool), func(m *nats.Msg) {
		if len(m.Data) > 0 && len(m.Data) <= wire.MaxNewsBytes {
			received(m.Data)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("natsstore: news of pool %q: %w", pool, err)
	}
	return sync.OnceFunc(func() { _ = sub.Unsubscribe() }), nil // fails only on a closed connection
}

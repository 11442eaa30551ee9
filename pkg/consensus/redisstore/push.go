package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.Pusher = (*Store)(nil)

// channelOf returns the channel of a pool's news. In a Cluster it belongs to the node that has the pool's key. Channels belong to the whole
// server, so the name contains the database.
func (s *Store) channelOf(pool string) string {
	key, _ := s.keys(pool)
	branch := "}:push:"
	if c, ok := s.client.(*redis.Client); ok && c.Options().DB != 0 {
		branch = fmt.Sprintf("}:push@%d:", c.Options().DB)
	}
	return strings.Replace(key, "}:pool:", branch, 1)
}

// Push publishes news in one request. In a Cluster with sharded channels (Redis 7), it stays on the nodes that have the pool. It returns a
// *driver.RequestError for an invalid pool name, news of a wrong size, or an invalid option. Other errors are those of the client or the
// server, and temporary.
func (s *Store) Push(ctx context.Context, pool string, news []byte) error {
	if err := cmp.Or(s.fault, driver.ValidateNews(pool, news)); err != nil {
		return err
	}
	if s.sharded() {
		err := s.client.SPublish(ctx, s.channelOf(pool), news).Err()
		if !isUnknownCommand(err) {
			return s.explainPush(pool, err)
		}
		s.unsharded.Store(true)
	}
	return s.explainPush(pool, s.client.Publish(ctx, s.channelOf(pool), news).Err())
}

func (s *Store) explainPush(pool string, err error) error {
	if err == nil {
		return nil
	}
	return explain("news", pool, s.prefix, err)
}

// sharded reports whether to use sharded channels.
func (s *Store) sharded() bool {
	_, cluster := s.client.(*redis.ClusterClient)
	return cluster && !s.unsharded.Load()
}

// isUnknownCommand reports whether the server does not know a command.
func isUnknownCommand(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(strings.ToLower(reply.Error()), "err unknown command")
}

// Watch subscribes to the news of a pool. All watchers of a pool in this Store share one connection, which is opened again when lost. Watch
// waits until the server has answered or ctx ends, and keeps trying to reach a server that is down. It returns a *driver.RequestError for
// an invalid pool name or an invalid option, or an error that names the permission the user lacks.
func (s *Store) Watch(ctx context.Context, pool string, received func(news []byte)) (stop func(), err error) {
	if err := cmp.Or(s.fault, driver.ValidatePool(pool)); err != nil {
		return nil, err
	}
	l, err := s.listener(ctx, pool)
	if err != nil {
		return nil, err
	}
	id := new(int)
	l.mu.Lock()
	l.received[id] = received
	l.mu.Unlock()
	return sync.OnceFunc(func() {
		l.mu.Lock()
		delete(l.received, id)
		l.mu.Unlock()
		s.release(pool, l)
	}), nil
}

// A listener is the subscription to one channel.
type listener struct {
	sub   *redis.PubSub
	users int // guarded by Store.listening

	mu       sync.Mutex
	received map[*int]func([]byte)
}

// listener returns the subscription to a pool's channel, to be released once.
func (s *Store) listener(ctx context.Context, pool string) (*listener, error) {
	s.listening.Lock()
	defer s.listening.Unlock()
	if l := s.listeners[pool]; l != nil {
		l.users++
		return l, nil
	}
	sub, err := s.subscribe(ctx, pool)
	if err != nil {
		return nil, err
	}
	l := &listener{sub: sub, users: 1, received: map[*int]func([]byte){}}
	if s.listeners == nil {
		s.listeners = map[string]*listener{}
	}
	s.listeners[pool] = l
	go l.run()
	return l, nil
}

// release gives a subscription back. It ends with its last user.
func (s *Store) release(pool string, l *listener) {
	s.listening.Lock()
	defer s.listening.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	delete(s.listeners, pool)
	_ = l.sub.Close() // fails only on a closed one
}

// subscribe subscribes to a pool's channel. If the server does not answer, it returns no error, and subscribes when the server does.
func (s *Store) subscribe(ctx context.Context, pool string) (*redis.PubSub, error) {
	for {
		sharded := s.sharded()
		subscribe := s.client.Subscribe
		if sharded {
			subscribe = s.client.SSubscribe
		}
		sub := subscribe(ctx, s.channelOf(pool))
		_, err := sub.ReceiveTimeout(ctx, clientTimeout)
		switch reply, refused := errors.AsType[redis.Error](err); {
		case err == nil, !refused:
			return sub, nil
		case sharded && isUnknownCommand(err):
			s.unsharded.Store(true)
			_ = sub.Close()
		case strings.HasPrefix(reply.Error(), "LOADING"), strings.HasPrefix(reply.Error(), "CLUSTERDOWN"), strings.HasPrefix(reply.Error(), "MOVED"):
			return sub, nil // passing
		default:
			_ = sub.Close()
			return nil, fmt.Errorf("redisstore: news of pool %q: %w", pool, explain("news", pool, s.prefix, err))
		}
	}
}

// run passes on news until the subscription is closed. It checks an idle connection every three seconds.
func (l *listener) run() {
	for m := range l.sub.Channel(redis.WithChannelSize(backlog), redis.WithChannelHealthCheckInterval(3*time.Second)) {
		if len(m.Payload) == 0 || len(m.Payload) > wire.MaxNewsBytes {
			continue
		}
		l.mu.Lock()
		received := make([]func([]byte), 0, len(l.received))
		for _, f := range l.received {
			received = append(received, f)
		}
		l.mu.Unlock()
		for _, f := range received {
			f([]byte(m.Payload))
		}
	}
}

// backlog is how many news may wait to be passed on. More are lost after a while.
const backlog = 256

package drivers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Secrets holds every secret that a connection ever received.
type Secrets struct {
	mu    sync.Mutex
	words []string
}

// Add remembers a secret.
func (s *Secrets) Add(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if word == "" || slices.Contains(s.words, word) {
		return
	}
	s.words = append(s.words, word)
	// As it appears in a message that quotes it.
	if quoted := strings.Trim(strconv.Quote(word), `"`); quoted != word {
		s.words = append(s.words, quoted)
	}
	// A secret that is a part of another is removed after it.
	slices.SortFunc(s.words, func(a, b string) int { return len(b) - len(a) })
}

// Clean returns an error whose text shows no secret: a server that does not know a command repeats its arguments, and the arguments of AUTH
// are secret. errors.Is and errors.As find the same in it as in err.
func (s *Secrets) Clean(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := err.Error()
	shown := text
	for _, word := range s.words {
		shown = strings.ReplaceAll(shown, word, config.Redacted)
	}
	if shown == text {
		return err
	}
	return &cleaned{text: shown, err: err}
}

// A cleaned error replaces one whose text contains a secret.
type cleaned struct {
	text string
	err  error
}

// Error returns the text without the secret.
func (e *cleaned) Error() string { return e.text }

// Is and As search the error with the secret. There is no Unwrap: services that collect errors print all wrapped errors, and would print
// the secret.

// Is implements the method that errors.Is looks for.
func (e *cleaned) Is(target error) bool { return errors.Is(e.err, target) }

// As implements the method that errors.As looks for.
func (e *cleaned) As(target any) bool { return errors.As(e.err, target) }

// A Remote is a store that processes share. It implements everything that a store can.
type Remote interface {
	driver.Store
	driver.Pusher
	driver.Lister
	driver.Ager
	driver.TagBucketSetter
}

// A Guarded store wraps another one so that its errors show no secret, and state the remedy; see RemedyError.
type Guarded struct {
	// Get returns the store. It may wait for it as long as its context allows.
	Get func(ctx context.Context) (Remote, error)
	// Explain adds to an error of the store why there is no connection. Nil adds nothing.
	Explain func(ctx context.Context, err error) error
	// End closes the connection. It does not wait beyond the end of its context.
	End func(ctx context.Context) error
	// Of is the request that opened the store, for the remedies in errors.
	Of *Request

	answered atomic.Bool // the store has answered before
}

var _ Remote = (*Guarded)(nil)

// closeTimeout bounds Close.
const closeTimeout = time.Second

// ask calls the store.
func ask[R any](ctx context.Context, g *Guarded, call func(s Remote) (R, error)) (answer R, err error) {
	s, err := g.Get(ctx)
	if err == nil {
		if answer, err = call(s); err != nil && g.Explain != nil {
			err = g.Explain(ctx, err)
		}
	}
	return answer, g.tell(err)
}

// demand is ask for a call without an answer.
func demand(ctx context.Context, g *Guarded, call func(s Remote) error) error {
	_, err := ask(ctx, g, func(s Remote) (struct{}, error) { return struct{}{}, call(s) })
	return err
}

// Sync implements consensus.Store.
func (g *Guarded) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	return ask(ctx, g, func(s Remote) (driver.Answer, error) { return s.Sync(ctx, req) })
}

// Leave implements consensus.Store.
func (g *Guarded) Leave(ctx context.Context, req driver.Leave) error {
	return demand(ctx, g, func(s Remote) error { return s.Leave(ctx, req) })
}

// Load implements consensus.Store.
func (g *Guarded) Load(ctx context.Context, pool string) (docs []driver.Document, roster []driver.RosterRow, err error) {
	err = demand(ctx, g, func(s Remote) (err error) {
		docs, roster, err = s.Load(ctx, pool)
		return err
	})
	return docs, roster, err
}

// Save implements consensus.Store.
func (g *Guarded) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	return ask(ctx, g, func(s Remote) (driver.Version, error) { return s.Save(ctx, pool, d) })
}

// Reserve implements consensus.Store.
func (g *Guarded) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	return ask(ctx, g, func(s Remote) (driver.Reserved, error) { return s.Reserve(ctx, req) })
}

// Push implements consensus.Pusher.
func (g *Guarded) Push(ctx context.Context, pool string, news []byte) error {
	return demand(ctx, g, func(s Remote) error { return s.Push(ctx, pool, news) })
}

// Watch implements consensus.Pusher.
func (g *Guarded) Watch(ctx context.Context, pool string, received func(news []byte)) (stop func(), err error) {
	s, err := g.Get(ctx)
	if err == nil {
		if stop, err = s.Watch(ctx, pool, received); err == nil {
			return stop, nil // the server need not have answered
		}
	}
	return nil, g.tell(err)
}

// Pools implements driver.Lister.
func (g *Guarded) Pools(ctx context.Context) ([]string, error) {
	return ask(ctx, g, func(s Remote) ([]string, error) { return s.Pools(ctx) })
}

// Age implements driver.Ager.
func (g *Guarded) Age(ctx context.Context, pool string) (time.Duration, error) {
	return ask(ctx, g, func(s Remote) (time.Duration, error) { return s.Age(ctx, pool) })
}

// TagBuckets implements driver.TagBucketReader.
func (g *Guarded) TagBuckets(ctx context.Context, pool string) ([]driver.TagBucket, error) {
	return ask(ctx, g, func(s Remote) ([]driver.TagBucket, error) { return s.TagBuckets(ctx, pool) })
}

// SetSpent implements driver.TagBucketSetter.
func (g *Guarded) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	return demand(ctx, g, func(s Remote) error { return s.SetSpent(ctx, pool, r) })
}

// Close implements consensus.Store: it closes the connection.
func (g *Guarded) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return g.secrets().Clean(g.End(ctx))
}

func (g *Guarded) secrets() *Secrets { return &g.Of.Credentials.Seen }

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
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
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

// A Guarded store wraps another one so that its errors show no secret, and state the remedy; see RemedyError.
type Guarded struct {
	Store   consensus.Store
	Secrets *Secrets
	// Of is the request that opened the store, for the remedies in errors. Nil: no remedies.
	Of *Request

	answered atomic.Bool // the store has answered before
}

var (
	_ driver.Pusher     = (*Guarded)(nil)
	_ driver.Lister     = (*Guarded)(nil)
	_ driver.Ager       = (*Guarded)(nil)
	_ driver.TillSetter = (*Guarded)(nil)
)

// Sync implements consensus.Store.
func (g *Guarded) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	answer, err := g.Store.Sync(ctx, req)
	return answer, g.tell(err)
}

// Leave implements consensus.Store.
func (g *Guarded) Leave(ctx context.Context, req driver.Leave) error {
	return g.tell(g.Store.Leave(ctx, req))
}

// Load implements consensus.Store.
func (g *Guarded) Load(ctx context.Context, pool string) ([]driver.Document, []consensus.RosterRow, error) {
	docs, roster, err := g.Store.Load(ctx, pool)
	return docs, roster, g.tell(err)
}

// Save implements consensus.Store.
func (g *Guarded) Save(ctx context.Context, pool string, d driver.DocumentReport) (consensus.Version, error) {
	current, err := g.Store.Save(ctx, pool, d)
	return current, g.tell(err)
}

// Reserve implements consensus.Store.
func (g *Guarded) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	res, err := g.Store.Reserve(ctx, req)
	return res, g.tell(err)
}

// Push implements consensus.Pusher.
func (g *Guarded) Push(ctx context.Context, pool string, news []byte) error {
	store, ok := g.Store.(driver.Pusher)
	if !ok {
		return consensus.ErrNoPush
	}
	return g.tell(store.Push(ctx, pool, news))
}

// Watch implements consensus.Pusher.
func (g *Guarded) Watch(ctx context.Context, pool string, heard func(news []byte)) (stop func(), err error) {
	store, ok := g.Store.(driver.Pusher)
	if !ok {
		return nil, consensus.ErrNoPush
	}
	stop, err = store.Watch(ctx, pool, heard)
	return stop, g.tell(err)
}

// Pools implements driver.Lister.
func (g *Guarded) Pools(ctx context.Context) ([]string, error) {
	store, ok := g.Store.(driver.Lister)
	if !ok {
		return nil, driver.ErrNoList
	}
	pools, err := store.Pools(ctx)
	return pools, g.tell(err)
}

// Age implements driver.Ager.
func (g *Guarded) Age(ctx context.Context, pool string) (time.Duration, error) {
	store, ok := g.Store.(driver.Ager)
	if !ok {
		return 0, nil
	}
	age, err := store.Age(ctx, pool)
	return age, g.tell(err)
}

// Tills implements driver.TillReader.
func (g *Guarded) Tills(ctx context.Context, pool string) ([]driver.Till, error) {
	store, ok := g.Store.(driver.TillReader)
	if !ok {
		return nil, driver.ErrNoTills
	}
	tills, err := store.Tills(ctx, pool)
	return tills, g.tell(err)
}

// SetSpent implements driver.TillSetter.
func (g *Guarded) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	store, ok := g.Store.(driver.TillSetter)
	if !ok {
		return driver.ErrNoTills
	}
	return g.tell(store.SetSpent(ctx, pool, r))
}

// Close implements consensus.Store.
func (g *Guarded) Close() error { return g.Secrets.Clean(g.Store.Close()) }

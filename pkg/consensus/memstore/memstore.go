package memstore

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Store is a [driver.Store] in memory. Share one value between the members of one process: two values know nothing of each other, so that
// each would give out the whole limit. All methods may be called from any goroutine. They block only on each other.
//
// A Store never freezes a pool. Its records end with the process, and so do all
// processors that were promised anything by it.
type Store struct {
	now func() time.Time

	mu    sync.Mutex
	start time.Time // when the first step was taken
	pools map[string]*driver.Record

	watchers map[string]map[*watcher]bool // by pool
}

var _ driver.Store = (*Store)(nil)

// An Option changes how a Store works.
type Option func(*Store)

// WithClock sets where the Store reads the time. It may be called from several
// goroutines, but never at once. Defaults to time.Now.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// New returns an empty Store.
func New(opts ...Option) *Store {
	s := &Store{now: time.Now, pools: map[string]*driver.Record{}}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// lock locks the Store for a call, unless that is malformed or its context has ended.
func (s *Store) lock(ctx context.Context, fault error) error {
	if err := cmp.Or(fault, ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	return nil
}

// Sync records what the request reports and answers it. The answer shares no
// memory with the Store.
// Errors: *driver.RequestError for a malformed request, and the context's own
// if that has ended before the call.
func (s *Store) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if err := s.lock(ctx, req.Validate()); err != nil {
		return driver.Answer{}, err
	}
	defer s.mu.Unlock()
	rec := s.pools[req.Pool]
	if rec == nil {
		rec = &driver.Record{}
		s.pools[req.Pool] = rec
	}
	ans, _ := rec.Sync(&req, s.at())
	return ans, nil
}

// Leave frees the claims of one incarnation. Errors are those of Sync.
func (s *Store) Leave(ctx context.Context, req driver.Leave) error {
	if err := s.lock(ctx, req.Validate()); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if rec := s.pools[req.Pool]; rec != nil {
		rec.Leave(&req, s.at())
	}
	return nil
}

// Load returns the documents of a pool and its roster. They share no memory with
// the Store. Errors: *driver.RequestError for a name that no pool can have,
// [driver.ErrNoPool], and the context's own if that has ended before the call.
func (s *Store) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	if err := s.lock(ctx, driver.ValidatePool(pool)); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	return s.record(pool).Load()
}

// Age implements [driver.Ager]. Errors are those of Load.
func (s *Store) Age(ctx context.Context, pool string) (time.Duration, error) {
	if _, _, err := s.Load(ctx, pool); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.record(pool)
	if rec.Wall == 0 {
		return 0, nil
	}
	return max(0, time.Duration(s.at().Now-rec.Wall)*time.Microsecond), nil
}

// Save changes a document of a pool; see [driver.Store]. Errors:
// *driver.RequestError for a malformed document, or one more than
// 8; *driver.ConflictError; [driver.ErrNoPool]; and the
// context's own if that has ended before the call.
func (s *Store) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	if err := s.lock(ctx, d.ValidateSave(pool)); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	current, _, err := s.record(pool).Save(&d, driver.At{})
	return current, err
}

// record returns the record of a pool, or an empty one if it has none.
func (s *Store) record(pool string) *driver.Record {
	if rec := s.pools[pool]; rec != nil {
		return rec
	}
	return &driver.Record{}
}

// Reserve reserves slots. A pool that nobody has joined grants none. Errors are
// those of Sync.
func (s *Store) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	if err := s.lock(ctx, req.Validate()); err != nil {
		return driver.Reserved{}, err
	}
	defer s.mu.Unlock()
	res, _ := s.record(req.Pool).Reserve(&req, s.at())
	return res, nil
}

// Close does nothing and returns nil: other members may still use the Store. Its
// memory is freed when nobody refers to it any more.
func (s *Store) Close() error { return nil }

// at returns the moment of a step. s.mu is held, so that the time of one step is never before that of the last. Measured from the first
// one, it follows the monotonic clock: a step of the wall clock does not count for a store without a server.
func (s *Store) at() driver.At {
	now := s.now()
	if s.start.IsZero() {
		s.start = now
	}
	return driver.At{Now: s.start.Add(now.Sub(s.start)).UnixMicro()}
}

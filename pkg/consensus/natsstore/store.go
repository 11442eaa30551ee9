package natsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The context ends most steps before they have been tried that often.
const maxAttempts = 100

// A Store is a driver.Store in a NATS key-value bucket. All methods may be
// called from any goroutine; they block for as long as the context allows, and
// for no more than a second or two at a server that answers late. A Store has no
// state that matters but its connection: any number of Stores on one bucket show the same pools.
type Store struct {
	nc       *nats.Conn
	opts     *options
	stream   string
	prefix   string // of the subjects of all keys
	subjects string
	warned   atomic.Bool
	lines    lines
	glances  glances
	turns    turns
	tending  tending

	// tried, if not nil, is told how often a step was tried. For tests.
	tried func(attempts int)
}

var _ driver.Store = (*Store)(nil)

// New returns a Store on a connection, which should be made with ConnectOptions.
// It does no I/O: the bucket is made or checked by the first sync. The connection
// stays the caller's, to be closed after the Store.
// The error names every option that is out of range.
func New(nc *nats.Conn, opts ...Option) (*Store, error) {
	o, err := newOptions(opts)
	if nc == nil {
		err = errors.Join(errors.New("natsstore: the connection is nil"), err)
	}
	if err != nil {
		return nil, err
	}
	prefix := "$KV." + o.bucket + "."
	return &Store{nc: nc, opts: o, stream: "KV_" + o.bucket, prefix: prefix, subjects: prefix + ">"}, nil
}

// Sync records what the request reports and answers it. The bucket is made if
// there is none.
//
// Errors: *driver.RequestError for a malformed request or a lease above the
// longest one (see WithLongestLease); the context's own when it has ended; one
// that wraps driver.ErrWrongAnswer when the pool's key holds something else,
// which is left as it is; an error that names the setting when the bucket is not
// fit for pools. Anything else is the server's or the network's: passing, and the
// request may have been recorded. When the connected server has not served for a
// second and the connection knows others, a second connection is opened to one of
// them until the first one serves again.
func (s *Store) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if err := req.Validate(); err != nil {
		return driver.Answer{}, err
	}
	if err := s.checkLease(req.Lease); err != nil {
		return driver.Answer{}, err
	}
	var ans driver.Answer
	st := step{pool: req.Pool, mayCreate: true, apply: func(rec *driver.Record, at driver.At) (changed bool) {
		ans, changed = rec.Sync(&req, at)
		return changed
	}}
	if deadline, ok := ctx.Deadline(); ok {
		st.contend, st.yields = time.Now().Add(req.Patience(time.Until(deadline))), req.LastSeq == 0
	}
	err := s.carryOut(ctx, &st)
	if err != nil {
		return driver.Answer{}, err
	}
	return ans, nil
}

// Leave frees the claims of one incarnation. A pool or bucket that does not exist
// is left as it is. Errors are those of Sync.
func (s *Store) Leave(ctx context.Context, req driver.Leave) error {
	if err := req.Validate(); err != nil {
		return err
	}
	return s.carryOut(ctx, &step{pool: req.Pool, apply: func(rec *driver.Record, at driver.At) bool {
		return rec.Leave(&req, at)
	}})
}

// Load returns the documents of a pool and its roster. A bucket that does not exist
// holds no pool. Errors are those of Sync, and one that wraps driver.ErrNoPool.
func (s *Store) Load(ctx context.Context, pool string) (docs []driver.Document, roster []driver.RosterRow, err error) {
	if err := driver.ValidatePool(pool); err != nil {
		return nil, nil, err
	}
	found := driver.ErrNoPool // without a bucket nothing is applied
	err = s.carryOut(ctx, &step{pool: pool, apply: func(rec *driver.Record, _ driver.At) bool {
		docs, roster, found = rec.Load()
		return false
	}})
	if err = cmp.Or(err, found); err != nil {
		return nil, nil, fmt.Errorf("natsstore: pool %q: %w", pool, err)
	}
	return docs, roster, nil
}

// Age implements driver.Ager: any change of the record counts as a sync. Errors are those of Load.
func (s *Store) Age(ctx context.Context, pool string) (time.Duration, error) {
	if err := driver.ValidatePool(pool); err != nil {
		return 0, err
	}
	found := driver.ErrNoPool
	st := step{pool: pool, apply: func(rec *driver.Record, _ driver.At) bool {
		_, _, found = rec.Load()
		return false
	}}
	if err := cmp.Or(s.carryOut(ctx, &st), found); err != nil {
		return 0, fmt.Errorf("natsstore: pool %q: %w", pool, err)
	}
	return st.age, nil
}

// Save changes a document of a pool; see driver.Store. Errors are those of Sync,
// *driver.ConflictError, and one that wraps driver.ErrNoPool.
func (s *Store) Save(ctx context.Context, pool string, d driver.DocumentReport) (current driver.Version, err error) {
	if err := d.ValidateSave(pool); err != nil {
		return 0, err
	}
	refused := driver.ErrNoPool
	err = s.carryOut(ctx, &step{pool: pool, apply: func(rec *driver.Record, at driver.At) (changed bool) {
		current, changed, refused = rec.Save(&d, at)
		return changed
	}})
	if err != nil {
		return 0, err
	}
	if refused != nil {
		return current, fmt.Errorf("natsstore: pool %q: %w", pool, refused)
	}
	return current, nil
}

func (s *Store) checkLease(lease time.Duration) error {
	if lease > s.opts.longest {
		return &driver.RequestError{
			Field: "Lease", Value: lease.String(), Allowed: "at most " + s.opts.longest.String() + " in this store",
		}
	}
	return nil
}

// Close frees what the Store has opened itself, and returns nil: the connection is
// the caller's.
func (s *Store) Close() error {
	s.lines.close()
	return nil
}

// A passing is an error that another try may not meet.
type passing struct {
	error
	// least is the shortest pause before that try.
	least time.Duration
}

func (p passing) Unwrap() error { return p.error }

var (
	errConflict = passing{error: driver.ErrContention}
	errCrowded  = passing{error: fmt.Errorf("holders of shares wait to renew them: %w", driver.ErrContention)}
	errBehind   = passing{error: fmt.Errorf("%w, but the server shows no newer record", driver.ErrContention)}
	errNoLeader = passing{errors.New("the bucket's servers have no leader at the moment"), electionPause}
	errMade     = passing{error: errors.New("the bucket was just made")}
	errGone     = passing{error: errors.New("the bucket was just deleted")}
)

// electionPause is the shortest pause while a leader is elected, which takes seconds.
const electionPause = 30 * time.Millisecond

// A step is one step on a pool, over all its tries.
type step struct {
	pool      string
	mayCreate bool // the bucket, if there is none
	// apply applies the step to a record that was just read, and tells whether the record is to be written back.
	apply func(rec *driver.Record, at driver.At) bool
	// contend is until when the step competes with others that write the record. Zero: for as long as the context allows.
	// One that yields waits longer before it tries again, and while holders of shares have to wait.
	contend time.Time
	yields  bool
	crowded uint64 // number of the entry in which holders waited
	// info is the stream's information, as read by the first of several tries.
	info *streamInfo
	// age is how old the record was that was read, by the server's clock; 0: it does not tell.
	age  time.Duration
	lost uint64 // number of the entry that the last try could not replace; 0: there was no conflict
}

// gaveWay tells whether the step has lost to another, and is not to be tried again.
func (st *step) gaveWay(err error) bool {
	return errors.Is(err, driver.ErrContention) && !st.contend.IsZero() && time.Now().After(st.contend)
}

// carryOut carries out one step, and tries again while that may help.
func (s *Store) carryOut(ctx context.Context, st *step) error {
	if st.mayCreate { // a sync
		done, err := s.turns.take(ctx, st.pool)
		if err != nil {
			return err
		}
		defer done()
	}
	for attempt := 1; ; attempt++ {
		start := time.Now()
		l := s.lines.pick(ctx, s)
		err := l.try(ctx, st)
		if s.tried != nil {
			s.tried(attempt)
		}
		var again passing
		if !errors.As(err, &again) {
			s.lines.outcome(l, err)
			return err
		}
		if attempt == maxAttempts || st.gaveWay(err) || !pause(ctx, max(time.Since(start), again.least), st.yields) {
			s.lines.outcome(l, err)
			return noSuccess(st.pool, attempt, again)
		}
	}
}

// A late is the reason of the last try, when there was no time for another one.
type late struct{ error }

func (l late) Unwrap() error { return l.error }

// Timeout tells that more time may have been enough.
func (late) Timeout() bool { return true }

// noSuccess is the error of a call that has given up after so many tries.
func noSuccess(pool string, tries int, last passing) error {
	err := last.error
	if tries < maxAttempts {
		err = late{err}
	}
	return fmt.Errorf("natsstore: pool %q: no success in %d tries: %w", pool, tries, err)
}

// pause waits before the next attempt, for a random time up to three times what
// the last one took. Whenever somebody loses somebody has won, so waits that grow
// with every attempt would only put off those who have waited before. A step that yields
// waits four times as long. It returns
// false, at once, if there would be no time left for another attempt.
func pause(ctx context.Context, took time.Duration, yields bool) bool {
	most := max(3*took, time.Millisecond)
	if yields {
		most *= 4
	}
	wait := time.Duration(rand.Int64N(int64(most)))
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline) - took
		if left <= 0 {
			return false
		}
		wait = min(wait, left/2)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// try carries out one step, or returns a passing error. After a conflict it reads the entry again, and not the stream's
// information, which it asks for once more at the end instead: the bucket must be the same from the first try on.
func (s line) try(ctx context.Context, st *step) error {
	subject := s.prefix + keyOf(st.pool)
	known, lost := st.info, st.lost
	st.info, st.lost = nil, 0
	info, e, err := s.read(ctx, subject, known)
	switch {
	case is(err, codeStreamNotFound) && !st.mayCreate:
		return nil
	case is(err, codeStreamNotFound):
		// The reply to this tells less of the stream than its leader does.
		return s.create(ctx)
	case err != nil:
		return err
	case known != nil && e.seq <= lost:
		// A leader that was cut off from its followers refuses writes for those that it could not commit. The next try asks for the
		// stream's information, which such a server cannot give.
		return errBehind
	}
	rec, at, err := s.moment(&glance{info, e}, subject)
	if err != nil {
		return err
	}
	// A record that nobody has written since the last look has no holders that wait: they are dead.
	if st.yields && rec.HoldersWait() && st.crowded != e.seq {
		st.crowded = e.seq
		return errCrowded
	}
	if st.mayCreate && e.seq == 0 { // nothing, and no trace of a deleted record either
		if at.Remembers, err = s.remembers(ctx, info); err != nil {
			return err
		}
	}
	st.age = info.since(at.Now)
	if !st.apply(rec, at) {
		return nil
	}
	if err := s.writeBack(ctx, st, rec, &glance{info, e}); err != nil {
		return err
	}
	switch {
	case at.Remembers > 0 || known != nil:
		return s.confirm(ctx, st.pool, at.Identity)
	case st.mayCreate && e.seq != 0:
		s.tend(ctx, info)
	}
	return nil
}

// writeBack writes the record that a step has made of what was seen. After a conflict the next try knows the stream.
func (s line) writeBack(ctx context.Context, st *step, rec *driver.Record, seen *glance) error {
	subject := s.prefix + keyOf(st.pool)
	value, err := rec.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("natsstore: the value at %s: %w", subject, err)
	}
	err = s.write(ctx, subject, value, seen.entry.seq, seen.info)
	if errors.Is(err, driver.ErrContention) && seen.entry.seq > 0 && seen.info.checksTwice() {
		st.info, st.lost = seen.info, seen.entry.seq
	}
	return err
}

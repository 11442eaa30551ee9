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

// The context ends most steps before that many tries.
const maxAttempts = 100

// A Store is a [driver.Store] in a NATS key-value bucket. It is safe for concurrent use. Methods block as long as the context allows, but no
// more than a second or two at a server that answers late. A Store has no important state except its connection: any number of Stores on
// one bucket show the same pools.
type Store struct {
	nc          *nats.Conn
	connOpts    nats.Options // of nc, when the Store was made
	opts        *options
	stream      string
	prefix      string // of the subjects of all keys
	subjects    string
	warned      atomic.Bool
	lines       lines
	polls       polls
	turns       turns
	maintaining maintaining

	// tried, if not nil, receives the number of tries of a step. For tests.
	tried func(attempts int)
}

var _ driver.Store = (*Store)(nil)

// New returns a Store on a connection, which should be made with [ConnectOptions]. It does no I/O: the first sync makes or checks the bucket.
// The caller closes the connection after the Store. The error names every option that is out of range.
func New(nc *nats.Conn, opts ...Option) (*Store, error) {
	o, err := newOptions(opts)
	if nc == nil {
		err = errors.Join(errors.New("natsstore: the connection is nil"), err)
	}
	if err != nil {
		return nil, err
	}
	prefix := "$KV." + o.bucket + "."
	return &Store{nc: nc, connOpts: nc.Opts, opts: o, stream: "KV_" + o.bucket, prefix: prefix, subjects: prefix + ">"}, nil
}

// Sync records the report of the request and answers it. It makes the bucket if there is none.
//
// It returns a *driver.RequestError for a malformed request or a lease above the longest one (see [WithLongestLease]), or the context's error
// when it has ended. The error wraps [driver.ErrWrongAnswer] if the pool's key has other content, which stays unchanged. It names the setting
// if the bucket is unfit for pools. Other errors are those of the server or the network: temporary, and the request may have been recorded.
// If the connected server hasn't served for a second and the connection knows others, the Store opens a second connection to one of them.
// It closes that again when the first server serves.
func (s *Store) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if err := cmp.Or(req.Validate(), s.checkLease(req.Lease)); err != nil {
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

// Leave frees the claims of one incarnation. It ignores a missing pool or bucket. It returns the errors of Sync.
func (s *Store) Leave(ctx context.Context, req driver.Leave) error {
	if err := req.Validate(); err != nil {
		return err
	}
	return s.carryOut(ctx, &step{pool: req.Pool, apply: func(rec *driver.Record, at driver.At) bool {
		return rec.Leave(&req, at)
	}})
}

// Load returns the documents of a pool and its roster. A missing bucket holds no pool. It returns the errors of Sync, or an error that
// wraps [driver.ErrNoPool].
func (s *Store) Load(ctx context.Context, pool string) (docs []driver.Document, roster []driver.RosterRow, err error) {
	_, err = s.see(ctx, pool, func(rec *driver.Record) (err error) {
		docs, roster, err = rec.Load()
		return err
	})
	return docs, roster, err
}

// Age implements [driver.Ager]: any change of the record counts as a sync. It returns the errors of Load.
func (s *Store) Age(ctx context.Context, pool string) (time.Duration, error) {
	return s.see(ctx, pool, func(rec *driver.Record) error {
		_, _, err := rec.Load()
		return err
	})
}

// see reads the record of a pool, and returns the record's age.
func (s *Store) see(ctx context.Context, pool string, read func(rec *driver.Record) error) (age time.Duration, err error) {
	if err := driver.ValidatePool(pool); err != nil {
		return 0, err
	}
	found := driver.ErrNoBucket // then nothing is applied
	st := step{pool: pool, apply: func(rec *driver.Record, _ driver.At) bool {
		found = read(rec)
		return false
	}}
	if err := s.carryOut(ctx, &st); err != nil {
		return 0, err
	}
	if found != nil {
		return 0, fmt.Errorf("natsstore: pool %q: %w", pool, found)
	}
	return st.age, nil
}

// Save changes a document of a pool; see [driver.Store]. It returns the errors of Sync, a *driver.ConflictError, or an error that wraps
// [driver.ErrNoPool].
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

// Close frees the resources that the Store has opened itself, and returns nil. The connection belongs to the caller.
func (s *Store) Close() error {
	s.lines.close()
	return nil
}

// A passing is an error that another try may avoid.
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
	errIsolated = passing{errors.New("the bucket's leader can't reach the other servers"), electionPause}
	errMade     = passing{error: errors.New("the bucket was just made")}
	errGone     = passing{error: errors.New("the bucket was just deleted")}
)

// electionPause is the shortest pause during an election, which takes seconds.
const electionPause = 30 * time.Millisecond

// A step is one step on a pool, over all its tries.
type step struct {
	pool      string
	mayCreate bool // the bucket, if there is none
	// apply applies the step to the record just read, and reports whether to write the record back.
	apply func(rec *driver.Record, at driver.At) bool
	// contend is until when the step competes with other writers of the record. Zero: as long as the context allows. A step that yields
	// waits longer before it tries again, and while holders of shares have to wait.
	contend time.Time
	yields  bool
	crowded uint64 // number of the entry in which holders waited
	// info is the stream's information, as read by the first of several tries.
	info *streamInfo
	on   *nats.Conn // of the last try
	// age is how old the record was when read, by the server's clock; 0 if the server does not report it.
	age  time.Duration
	lost uint64 // number of the entry that the last try could not replace; 0: there was no conflict
}

// gaveWay reports whether the step has lost to another, and must not be tried again.
func (st *step) gaveWay(err error) bool {
	return errors.Is(err, driver.ErrContention) && !st.contend.IsZero() && time.Now().After(st.contend)
}

// carryOut executes one step, and tries again while that may help.
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
		if l.nc != st.on {
			st.on, st.info, st.lost = l.nc, nil, 0 // another server may know another stream
		}
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

// A late wraps the error of the last try if there was no time for another one.
type late struct{ error }

func (l late) Unwrap() error { return l.error }

// Timeout reports that more time may have been enough.
func (late) Timeout() bool { return true }

// noSuccess is the error of a call that has given up after that many tries.
func noSuccess(pool string, tries int, last passing) error {
	err := last.error
	if tries < maxAttempts {
		err = late{err}
	}
	return fmt.Errorf("natsstore: pool %q: no success in %d tries: %w", pool, tries, err)
}

// pause waits before the next attempt, for a random time of up to three times the duration of the last one. Whenever one step loses another
// has won, so waits that grow with every attempt would only delay the steps that have waited longest. A step that yields waits four times
// as long. pause returns false, at once, if there would be no time left for another attempt.
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

// try executes one step, or returns a passing error. After a conflict it reads the entry again, but not the stream's information. It
// requests that once more at the end instead: the bucket must be the same from the first try on.
func (s line) try(ctx context.Context, st *step) error {
	subject := s.prefix + keyOf(st.pool)
	known, lost := st.info, st.lost
	st.info, st.lost = nil, 0
	info, e, err := s.read(ctx, subject, known)
	switch {
	case is(err, codeStreamNotFound) && !st.mayCreate:
		return nil
	case is(err, codeStreamNotFound):
		// This reply has less information about the stream than its leader has.
		return s.create(ctx)
	case err != nil:
		return err
	case known != nil && e.seq <= lost:
		// A leader cut off from its followers refuses writes because of writes that it could not commit. The next try requests the stream's
		// information, which such a server cannot give.
		return errBehind
	}
	rec, at, err := s.moment(&poll{info, e}, subject)
	if err != nil {
		return err
	}
	// If nobody has written the record since the last look, its waiting holders are dead.
	if st.yields && rec.HoldersWait() && st.crowded != e.seq {
		st.crowded = e.seq
		return errCrowded
	}
	if st.mayCreate && e.seq == 0 { // neither a record nor a trace of a deleted one
		if at.Remembers, err = s.remembers(ctx, info); err != nil {
			return err
		}
	}
	st.age = info.since(at.Now)
	if !st.apply(rec, at) {
		return nil
	}
	if err := s.writeBack(ctx, st, rec, &poll{info, e}); err != nil {
		return err
	}
	switch {
	case at.Remembers > 0 || known != nil:
		return s.confirm(ctx, st.pool, at.Identity)
	case st.mayCreate && e.seq != 0:
		s.maintain(ctx, info)
	}
	return nil
}

// writeBack writes the record that a step has made from a poll. After a conflict the next try knows the stream.
func (s line) writeBack(ctx context.Context, st *step, rec *driver.Record, seen *poll) error {
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

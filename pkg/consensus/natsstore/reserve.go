package natsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Reserve reserves slots. The time of a write, and with it the slots, is known only when the entry is read back. If others have written
// since, their record has the outcome, as long as it remembers the step. If the leader that granted the slots no longer leads the stream at
// that time, nobody knows its other grants: the slots are lost, and the error says so.
//
// Other errors are those of Sync, and slots may be lost after one. Without interference, a reservation is two messages to the server, one
// after the other.
func (s *Store) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	if err := cmp.Or(req.Validate(), s.checkLease(req.Lease)); err != nil {
		return driver.Reserved{}, err
	}
	subject := s.prefix + keyOf(req.Pool)
	known := s.polls.take(subject)
	for attempt := 1; ; attempt++ {
		start := time.Now()
		l := s.lines.pick(ctx, s)
		res, seen, err := l.reserve(ctx, subject, &req, known)
		if s.tried != nil {
			s.tried(attempt)
		}
		var again passing
		if !errors.As(err, &again) {
			s.lines.outcome(l, err)
			// Success at the first try suggests that nobody else is reserving.
			if err == nil && attempt == 1 {
				s.polls.keep(subject, seen)
			}
			return res, err
		}
		if known != nil {
			known = nil // it was old: this try cost only a message
			continue
		}
		if attempt == maxAttempts || !pause(ctx, max(time.Since(start), again.least), false) {
			s.lines.outcome(l, err)
			return driver.Reserved{}, noSuccess(req.Pool, attempt, again)
		}
	}
}

var errLeaderChanged = errors.New("the stream has another leader than when the slots were reserved: they are lost")

// reserve executes one reservation on the last known state of the entry, or on its present state. It returns the state read after it.
func (s line) reserve(ctx context.Context, subject string, req *driver.Reserve, known *poll) (driver.Reserved, *poll, error) {
	var none driver.Reserved
	if known == nil {
		info, e, err := s.read(ctx, subject, nil)
		if is(err, codeStreamNotFound) {
			rec := driver.Record{}
			none, _ = rec.Reserve(req, driver.At{})
			return none, nil, nil
		}
		if err != nil {
			return none, nil, err
		}
		known = &poll{info, e}
	}
	rec, at, err := s.moment(known, subject)
	if err != nil {
		return none, nil, err
	}
	res, changed := rec.Reserve(req, at)
	if !changed {
		return res, nil, nil // nothing was recorded, so nothing may be remembered
	}
	value, err := rec.AppendBinary(nil)
	if err != nil {
		return none, nil, fmt.Errorf("natsstore: the value at %s: %w", subject, err)
	}
	if err := s.write(ctx, subject, value, known.entry.seq, known.info); err != nil {
		return none, nil, err
	}
	return s.readBack(ctx, subject, req, at.Identity, res.Revision)
}

// readBack returns the outcome of a reservation written under an identity.
func (s line) readBack(ctx context.Context, subject string, req *driver.Reserve, identity string, revision uint64,
) (res driver.Reserved, seen *poll, err error) {
	for {
		start := time.Now()
		var rec *driver.Record
		var at driver.At
		if seen, err = s.look(ctx, subject); err == nil {
			rec, at, err = s.moment(seen, subject)
		}
		var again passing
		switch {
		case err == nil && at.Identity != identity:
			return res, nil, fmt.Errorf("natsstore: pool %q: %w", req.Pool, errLeaderChanged)
		case err == nil:
			return rec.ReadReservation(req, revision, at), seen, nil
		case !errors.As(err, &again):
			return res, nil, err
		case !pause(ctx, max(time.Since(start), again.least), false):
			// Not a passing error: another try would reserve again.
			return res, nil, fmt.Errorf("natsstore: pool %q: reserved, but the slots are not known: %w", req.Pool, again.error)
		}
	}
}

// A poll is the known state of the stream and of an entry; the entry was not read before the stream.
type poll struct {
	info  *streamInfo
	entry *entry
}

// look requests both from the stream's leader at once. The stream must be known to hold the entry, which read cannot know.
func (s line) look(ctx context.Context, subject string) (*poll, error) {
	var g poll
	var infoErr error
	var asked sync.WaitGroup
	asked.Go(func() { g.info, infoErr = s.info(ctx) })
	e, err := s.get(ctx, subject)
	asked.Wait()
	if g.entry = e; infoErr != nil {
		err = infoErr
	}
	return &g, err
}

// moment reads the record from a poll, and the known data about the moment of a step on it.
func (s *Store) moment(g *poll, subject string) (*driver.Record, driver.At, error) {
	identity, err := g.info.identity()
	if err != nil {
		return nil, driver.At{}, err
	}
	rec := &driver.Record{}
	if g.entry.value != nil {
		if rec, err = driver.ParseRecord(g.entry.value); err != nil {
			return nil, driver.At{}, fmt.Errorf("natsstore: the value at %s: %w; unless a newer release wrote it, delete the key (nats kv del %s %s), "+
				"then the pool begins anew, with a freeze", subject, err, s.opts.bucket, strings.TrimPrefix(subject, s.prefix))
		}
	}
	// A pool may have a longer lease than this Store knows. Then its promises may last longer, too.
	return rec, driver.At{
		Now: g.entry.micros(), Identity: identity, Deferred: true, Longest: max(s.opts.longest, rec.Lease),
	}, nil
}

// polls keeps the newest poll at each entry that only this Store seems to write. An old poll only makes a write fail. A reservation
// is valid only if the entry was unchanged, and if the stream has the same leader afterwards.
type polls struct {
	mu sync.Mutex
	of map[string]*poll
}

// maxPolls bounds the memory for pools no longer used.
const maxPolls = 64

func (c *polls) take(subject string) *poll {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[subject]
	delete(c.of, subject)
	return g
}

func (c *polls) keep(subject string, g *poll) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g == nil {
		return
	}
	if c.of == nil || len(c.of) >= maxPolls {
		c.of = map[string]*poll{}
	}
	c.of[subject] = g
}

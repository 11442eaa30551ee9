package natsstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Reserve reserves slots. The time of a write, and with it the slots, is known only
// when the entry is read back; if others have written since, their record tells what
// it came to, as long as it remembers the step. With slots granted by a leader that is not
// the stream's any more when it is read back, nobody knows what else it has granted:
// they are lost, and the error says so.
//
// Other errors are those of Sync. After one, slots may be lost. One reservation is two
// messages to the server, one after the other, when nobody interferes.
func (s *Store) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	if err := s.checkReserve(&req); err != nil {
		return driver.Reserved{}, err
	}
	subject := s.prefix + keyOf(req.Pool)
	known := s.glances.take(subject)
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
			// Who was in nobody's way will probably be in nobody's way again.
			if err == nil && attempt == 1 {
				s.glances.keep(subject, seen)
			}
			return res, err
		}
		if known != nil {
			known = nil // it was old: this try has cost nothing but a message
			continue
		}
		if attempt == maxAttempts || !pause(ctx, max(time.Since(start), again.least), false) {
			s.lines.outcome(l, err)
			return driver.Reserved{}, noSuccess(req.Pool, attempt, again)
		}
	}
}

func (s *Store) checkReserve(req *driver.Reserve) error {
	if err := req.Validate(); err != nil {
		return err
	}
	return s.checkLease(req.Lease)
}

var errLeaderChanged = errors.New("the stream has another leader than when the slots were reserved: they are lost")

// reserve carries out one reservation on what was seen of the entry last, or on what is
// there now. It returns what it has seen after it.
func (s line) reserve(ctx context.Context, subject string, req *driver.Reserve, known *glance) (driver.Reserved, *glance, error) {
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
		known = &glance{info, e}
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

// readBack learns what a reservation came to that was written under an identity.
func (s line) readBack(ctx context.Context, subject string, req *driver.Reserve, identity string, revision uint64,
) (res driver.Reserved, seen *glance, err error) {
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
			// Not a passing error: another try would reserve once more.
			return res, nil, fmt.Errorf("natsstore: pool %q: reserved, but the slots are not known: %w", req.Pool, again.error)
		}
	}
}

// A glance is what was seen of the stream and of an entry, the entry not before the stream.
type glance struct {
	info  *streamInfo
	entry *entry
}

// look asks the stream's leader for both at once: of a stream that is known to hold the
// entry, which read cannot know.
func (s line) look(ctx context.Context, subject string) (*glance, error) {
	var g glance
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

// moment reads the record from a glance, and what there is to know of the moment of a step on it.
func (s *Store) moment(g *glance, subject string) (*driver.Record, driver.At, error) {
	identity, err := g.info.identity()
	if err != nil {
		return nil, driver.At{}, err
	}
	rec := &driver.Record{}
	if g.entry.value != nil {
		if rec, err = driver.ParseRecord(g.entry.value); err != nil {
			return nil, driver.At{}, fmt.Errorf("natsstore: the value at %s: %w", subject, err)
		}
	}
	// A pool may have a longer lease than this Store was told of. Then what is
	// promised may last longer, too.
	return rec, driver.At{
		Now: g.entry.micros(), Identity: identity, Deferred: true, Longest: max(s.opts.longest, rec.Lease),
	}, nil
}

// glances keeps the newest glance at each entry that this Store alone seems to write. One that
// is old makes a write fail and nothing else: a reservation stands only if the entry was
// as it was seen, and if the stream has the same leader after it.
type glances struct {
	mu sync.Mutex
	of map[string]*glance
}

// maxGlances bounds the memory for pools that are not used any more.
const maxGlances = 64

func (c *glances) take(subject string) *glance {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.of[subject]
	delete(c.of, subject)
	return g
}

func (c *glances) keep(subject string, g *glance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g == nil {
		return
	}
	if c.of == nil || len(c.of) >= maxGlances {
		c.of = map[string]*glance{}
	}
	c.of[subject] = g
}

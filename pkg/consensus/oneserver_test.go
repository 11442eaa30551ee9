package consensus_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A server keeps one record in memory as a remote store does: it can lose it, and go
// back to an older copy, and it freezes then.
type server struct {
	deferred bool
	forgets  bool // it cannot tell a new pool from one that it has lost

	mu      sync.Mutex
	rec     *driver.Record
	lives   int
	written int64
	skew    time.Duration // of its clock
}

func newServer() *server { return &server{rec: &driver.Record{}} }

var _ driver.Store = (*server)(nil)

func (s *server) at() driver.At {
	now := time.Now().Add(s.skew).UnixMicro()
	at := driver.At{Now: now, Identity: fmt.Sprint("server ", s.lives), Deferred: s.deferred, Longest: driver.DefaultLease}
	if s.lives == 0 && !s.forgets {
		at.Remembers = math.MaxInt64
	}
	if s.deferred {
		at.Now, s.written = s.written, now
	}
	return at
}

func (s *server) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if err := req.Validate(); err != nil {
		return driver.Answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ans, _ := s.rec.Sync(&req, s.at())
	return ans, ctx.Err()
}

func (s *server) Leave(ctx context.Context, l driver.Leave) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec.Leave(&l, s.at())
	return ctx.Err()
}

func (s *server) Load(ctx context.Context, _ string) ([]driver.Document, []driver.RosterRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	docs, rows, err := s.rec.Load()
	if err == nil {
		err = ctx.Err()
	}
	return docs, rows, err
}

func (s *server) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	if err := d.ValidateSave(pool); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _, err := s.rec.Save(&d, s.at())
	if err == nil {
		err = ctx.Err()
	}
	return v, err
}

func (s *server) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	if err := req.Validate(); err != nil {
		return driver.Reserved{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	res, changed := s.rec.Reserve(&req, s.at())
	if changed && s.deferred {
		res = s.rec.ReadReservation(&req, res.Revision, s.at())
	}
	return res, ctx.Err()
}

func (s *server) Close() error { return nil }

// wipe restarts the server without anything.
func (s *server) wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec, s.written = &driver.Record{}, 0
	s.lives++
}

// snapshot returns a function that makes another server of the present copy.
func (s *server) snapshot() (failOver func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.rec.AppendBinary(nil)
	if err != nil {
		return nil
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		rec, err := driver.ParseRecord(text)
		if err != nil {
			return
		}
		s.rec = rec
		s.lives++
	}
}

package world

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Server keeps the record of one pool in memory as a remote store does: it can lose it, and go back to an older copy, and it freezes then.
// Its methods are safe for concurrent use.
type Server struct {
	// Deferred says that an answer has the time of the write before. Set it before the first request.
	Deferred bool
	// Forgets says that it cannot tell a new pool from one that it has lost. Set it before the first request.
	Forgets bool

	mu      sync.Mutex
	rec     *driver.Record
	lives   int
	written int64
	skew    time.Duration // of its clock
}

// NewServer returns a Server without a pool.
func NewServer() *Server { return &Server{rec: &driver.Record{}} }

var _ driver.Store = (*Server)(nil)

// Record calls f with the record, which f must not keep.
func (s *Server) Record(f func(*driver.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.rec)
}

// Skew sets how far the clock is ahead of the test's.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = d
}

func (s *Server) at() driver.At {
	now := time.Now().Add(s.skew).UnixMicro()
	at := driver.At{Now: now, Identity: fmt.Sprint("server ", s.lives), Deferred: s.Deferred, Longest: driver.DefaultLease}
	if s.lives == 0 && !s.Forgets {
		at.Remembers = math.MaxInt64
	}
	if s.Deferred {
		at.Now, s.written = s.written, now
	}
	return at
}

// Sync implements driver.Store.
func (s *Server) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if err := req.Validate(); err != nil {
		return driver.Answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ans, _ := s.rec.Sync(&req, s.at())
	return ans, ctx.Err()
}

// Leave implements driver.Store.
func (s *Server) Leave(ctx context.Context, l driver.Leave) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec.Leave(&l, s.at())
	return ctx.Err()
}

// Load implements driver.Store.
func (s *Server) Load(ctx context.Context, _ string) ([]driver.Document, []driver.RosterRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	docs, rows, err := s.rec.Load()
	if err == nil {
		err = ctx.Err()
	}
	return docs, rows, err
}

// Save implements driver.Store.
func (s *Server) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
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

// Reserve implements driver.Store.
func (s *Server) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	if err := req.Validate(); err != nil {
		return driver.Reserved{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	res, changed := s.rec.Reserve(&req, s.at())
	if changed && s.Deferred {
		res = s.rec.ReadReservation(&req, res.Revision, s.at())
	}
	return res, ctx.Err()
}

// Close implements driver.Store.
func (s *Server) Close() error { return nil }

// Wipe restarts the server without anything.
func (s *Server) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec, s.written = &driver.Record{}, 0
	s.lives++
}

// Snapshot returns a function that makes another server of the present copy.
func (s *Server) Snapshot() (failOver func()) {
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

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
	// Moment, if set, changes what a step is told of the moment at which the store makes it. It is called with the server locked. Set it before
	// the first request.
	Moment func(at *driver.At, rec *driver.Record)

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

// step makes a step at the present moment.
func (s *Server) step(do func(driver.At) (changed bool)) {
	now := time.Now().Add(s.skew).UnixMicro()
	at := driver.At{Now: now, Identity: fmt.Sprint("server ", s.lives), Deferred: s.Deferred, Longest: driver.DefaultLease}
	if s.lives == 0 && !s.Forgets {
		at.Remembers = math.MaxInt64
	}
	if s.Moment != nil {
		s.Moment(&at, s.rec)
	}
	if now = at.Now; s.Deferred {
		at.Now = s.written
	}
	if do(at) {
		s.written = now
	}
}

// Sync implements driver.Store.
func (s *Server) Sync(ctx context.Context, req driver.Request) (ans driver.Answer, err error) {
	if err := req.Validate(); err != nil {
		return ans, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(func(at driver.At) (changed bool) { ans, changed = s.rec.Sync(&req, at); return changed })
	return ans, ctx.Err()
}

// Leave implements driver.Store.
func (s *Server) Leave(ctx context.Context, l driver.Leave) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(func(at driver.At) bool { return s.rec.Leave(&l, at) })
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
func (s *Server) Save(ctx context.Context, pool string, d driver.DocumentReport) (v driver.Version, err error) {
	if err := d.ValidateSave(pool); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(func(at driver.At) (changed bool) { v, changed, err = s.rec.Save(&d, at); return changed })
	if err == nil {
		err = ctx.Err()
	}
	return v, err
}

// Reserve implements driver.Store.
func (s *Server) Reserve(ctx context.Context, req driver.Reserve) (res driver.Reserved, err error) {
	if err := req.Validate(); err != nil {
		return res, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	read := false
	s.step(func(at driver.At) (changed bool) {
		res, changed = s.rec.Reserve(&req, at)
		read = changed && s.Deferred
		return changed
	})
	if read {
		s.step(func(at driver.At) bool { res = s.rec.ReadReservation(&req, res.Revision, at); return false })
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
	written := s.written
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		rec, err := driver.ParseRecord(text)
		if err != nil {
			return
		}
		s.rec, s.written = rec, written
		s.lives++
	}
}

package storetest_test

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

const longest = 300 * time.Millisecond

// A server is what a store with a server behind it looks like to the suite, in
// one process: it has an identity and can forget.
type server struct {
	deferred bool
	knowsNew bool
	fault    func(*driver.At) // what it gets wrong about the moment

	mu       sync.Mutex
	identity string
	pools    map[string]*entry
}

// An entry is one record and the time at which it was written.
type entry struct {
	rec     driver.Record
	written int64
}

func newServer() *server {
	return &server{identity: "1", pools: map[string]*entry{}}
}

// step runs one step on what is kept of a pool, and notes when it has changed something. Of a pool that is
// not known yet nothing is kept, unless the step makes one. fault is what is wrong with the request.
func (s *server) step(ctx context.Context, fault error, pool string, makes bool, f func(e *entry) (changed bool)) error {
	if err := cmp.Or(fault, ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(pool)
	if makes {
		s.pools[pool] = e
	}
	if f(e) {
		e.written = time.Now().UnixMicro()
	}
	return nil
}

func (s *server) Sync(ctx context.Context, req driver.Request) (ans driver.Answer, err error) {
	err = s.step(ctx, req.Validate(), req.Pool, true, func(e *entry) (changed bool) {
		ans, changed = e.rec.Sync(&req, s.at(e))
		return changed
	})
	return ans, err
}

func (s *server) Leave(ctx context.Context, l driver.Leave) error {
	return s.step(ctx, l.Validate(), l.Pool, false, func(e *entry) bool { return e.rec.Leave(&l, s.at(e)) })
}

func (s *server) Load(ctx context.Context, pool string) (docs []driver.Document, roster []driver.RosterRow, err error) {
	var found error
	err = s.step(ctx, driver.ValidatePool(pool), pool, false, func(e *entry) bool {
		docs, roster, found = e.rec.Load()
		return false
	})
	return docs, roster, cmp.Or(err, found)
}

func (s *server) Save(ctx context.Context, pool string, d driver.DocumentReport) (current driver.Version, err error) {
	var refused error
	err = s.step(ctx, d.ValidateSave(pool), pool, false, func(e *entry) (changed bool) {
		current, changed, refused = e.rec.Save(&d, s.at(e))
		return changed
	})
	return current, cmp.Or(err, refused)
}

func (s *server) Reserve(ctx context.Context, req driver.Reserve) (res driver.Reserved, err error) {
	err = s.step(ctx, req.Validate(), req.Pool, false, func(e *entry) (changed bool) {
		if res, changed = e.rec.Reserve(&req, s.at(e)); changed && s.deferred {
			e.written = time.Now().UnixMicro() // the slots are told by it
			res = e.rec.ReadReservation(&req, res.Revision, s.at(e))
			return false
		}
		return changed
	})
	return res, err
}

func (s *server) Close() error { return nil }

// entry returns what is kept of a pool, or an empty one. s.mu is held.
func (s *server) entry(pool string) *entry {
	if e := s.pools[pool]; e != nil {
		return e
	}
	return &entry{}
}

func (s *server) at(e *entry) driver.At {
	at := driver.At{Now: time.Now().UnixMicro(), Identity: s.identity, Deferred: s.deferred, Longest: longest}
	if s.knowsNew {
		at.Remembers = math.MaxInt64
	}
	if s.deferred {
		at.Now = e.written
	}
	if s.fault != nil {
		s.fault(&at)
	}
	return at
}

func (s *server) wipe(testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools, s.knowsNew = map[string]*entry{}, false
}

func (s *server) restart(testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identity += "'"
	s.knowsNew = false
}

func (s *server) snapshot(_ testing.TB, pool string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.pools[pool].clone()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.deferred {
			kept.written = time.Now().UnixMicro() // putting back is a write, too
		}
		s.pools[pool] = kept
	}
}

func (e *entry) clone() *entry {
	c := *e
	c.rec.Rows = append([]driver.Row(nil), e.rec.Rows...)
	c.rec.Documents = append([]driver.Document(nil), e.rec.Documents...)
	c.rec.TagBuckets = append([]driver.TagBucket(nil), e.rec.TagBuckets...)
	c.rec.Names = e.rec.Names.Clone()
	return &c
}

func (s *server) harness() storetest.Harness {
	return storetest.Harness{
		New:      func(testing.TB) driver.Store { return s },
		Deferred: s.deferred,
		KnowsNew: s.knowsNew,
		Longest:  longest,
		Wipe:     s.wipe,
		Restart:  s.restart,
		Snapshot: s.snapshot,
	}
}

func TestServer(t *testing.T) {
	storetest.Run(t, newServer().harness())
}

func TestServerThatKnowsNewPools(t *testing.T) {
	testkit.SkipShort(t, "TestServer runs the suite")
	s := newServer()
	s.knowsNew = true
	storetest.Run(t, s.harness())
}

func TestDeferredServer(t *testing.T) {
	testkit.SkipShort(t, "TestServer runs the suite")
	s := newServer()
	s.deferred = true
	storetest.Run(t, s.harness())
}

// A slowServer takes for most syncs nearly as long as a pool's clock can follow, so that as much time as possible
// passes between the steps of a case. Now and then one takes longer, and counts as no time.
type slowServer struct{ *server }

func (s slowServer) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	switch clamp := wire.Clamp(max(req.Lease, time.Millisecond)); rand.IntN(20) {
	case 0:
	case 1:
		time.Sleep(clamp + clamp/4)
	default:
		time.Sleep(clamp*3/4 + rand.N(clamp/5))
	}
	return s.server.Sync(ctx, req)
}

// A case that holds only where steps follow each other at once fails on a busy machine.
func TestTheSuitePassesOnASlowServer(t *testing.T) {
	testkit.SkipShort(t, "it waits for each step")
	t.Parallel()
	s := newServer()
	s.knowsNew = true
	h := s.harness()
	h.New = func(testing.TB) driver.Store { return slowServer{s} }
	storetest.Run(t, h)
}

package storetest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

const longest = 300 * time.Millisecond

// A server is what a store with a server behind it looks like to the suite, in
// one process: it has an identity and can forget.
type server struct {
	deferred bool
	knowsNew bool
	fault    func(*consensus.At) // what it gets wrong about the moment

	mu       sync.Mutex
	identity string
	pools    map[string]*entry
}

// An entry is one record and the time at which it was written.
type entry struct {
	rec     consensus.Record
	written int64
}

func newServer() *server {
	return &server{identity: "1", pools: map[string]*entry{}}
}

func (s *server) Sync(ctx context.Context, req consensus.Request) (consensus.Answer, error) {
	if err := req.Validate(); err != nil {
		return consensus.Answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return consensus.Answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pools[req.Pool]
	if e == nil {
		e = &entry{}
		s.pools[req.Pool] = e
	}
	ans, changed := e.rec.Sync(&req, s.at(e))
	if changed {
		e.written = time.Now().UnixMicro()
	}
	return ans, nil
}

func (s *server) Leave(ctx context.Context, l consensus.Leave) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.pools[l.Pool]; e != nil && e.rec.Leave(&l, s.at(e)) {
		e.written = time.Now().UnixMicro()
	}
	return nil
}

func (s *server) Reserve(ctx context.Context, req consensus.Reserve) (consensus.Reserved, error) {
	if err := req.Validate(); err != nil {
		return consensus.Reserved{}, err
	}
	if err := ctx.Err(); err != nil {
		return consensus.Reserved{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pools[req.Pool]
	if e == nil {
		e = &entry{} // not kept: the next sync makes it
	}
	res, changed := e.rec.Reserve(&req, s.at(e))
	if changed {
		e.written = time.Now().UnixMicro()
	}
	if changed && s.deferred {
		res = e.rec.Issued(&req, res.Revision, s.at(e))
	}
	return res, nil
}

func (s *server) Close() error { return nil }

func (s *server) at(e *entry) consensus.At {
	at := consensus.At{
		Now: time.Now().UnixMicro(), Identity: s.identity,
		KnownNew: s.knowsNew, Deferred: s.deferred, Longest: longest,
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
	c.rec.Rows = append([]consensus.Row(nil), e.rec.Rows...)
	for i := range c.rec.Rows {
		c.rec.Rows[i].Entries = append([]consensus.Entry(nil), c.rec.Rows[i].Entries...)
	}
	return &c
}

func (s *server) harness() storetest.Harness {
	return storetest.Harness{
		New:      func(testing.TB) consensus.Store { return s },
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
	s := newServer()
	s.knowsNew = true
	storetest.Run(t, s.harness())
}

func TestDeferredServer(t *testing.T) {
	s := newServer()
	s.deferred = true
	storetest.Run(t, s.harness())
}

package shell

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A server keeps the record of the one pool of a run, and loses it. It takes every
// step under its lock, and never waits while it holds it.
type server struct {
	plan  *plan
	start time.Time

	mu       sync.Mutex
	memory   *memstore.Store // takes the steps of a storeMemory
	rec      driver.Record
	identity string
	lives    int           // identities used up
	stepped  time.Duration // by how much the clock was set
	written  int64         // own time of the newest write, in microseconds; 0: never
	forgot   time.Time     // when it forgot something last; zero: never
	calmed   time.Time     // when the faults ended
	back     time.Time     // when it began to answer again last

	silent, refuses, hung bool
	queue                 []arrival // what came while it hung
	// deaf is set after a rollback that kept the identity: nobody is answered but
	// one who has seen a newer revision, for nobody else can tell.
	deaf bool

	syncs, leaves uint64
	slots         uint64
	answers       [driver.Behind + 1]uint64
	freezes       map[driver.FreezeCause]uint64
}

// An arrival is a message that has reached the server: a sync, a leave, or a request for slots.
type arrival struct {
	sent    time.Time
	sync    *driver.Request
	leave   *driver.Leave
	reserve *driver.Reserve
	// reply takes the answer. It is called with the server's lock held, and must
	// not wait.
	reply func(reply)
}

// A reply is what a call to the store comes to.
type reply struct {
	ans driver.Answer
	res driver.Reserved
	err error
}

var errRefused = errors.New("the store refuses")

func newServer(p *plan) *server {
	s := &server{plan: p, start: time.Now(), freezes: map[driver.FreezeCause]uint64{}}
	if p.store == storeMemory {
		s.memory = memstore.New()
	} else {
		s.newIdentity()
	}
	return s
}

func (s *server) newIdentity() {
	s.lives++
	s.identity = fmt.Sprintf("server-%d", s.lives)
}

// wall is the server's own time in microseconds since 1970.
func (s *server) wall() int64 {
	elapsed := float64(time.Since(s.start)) * s.plan.storeRate
	return s.start.Add(time.Duration(elapsed) + s.stepped).UnixMicro()
}

// at is what the server tells a step of the moment.
func (s *server) at() driver.At {
	at := driver.At{
		Now: s.wall(), Identity: s.identity, Deferred: s.plan.store == storeDeferred, Longest: s.plan.longest,
	}
	if at.Deferred {
		at.Now = s.written
	}
	if s.rec.Revision == 0 && s.plan.knownNew {
		at.Remembers = math.MaxInt64
		if !s.forgot.IsZero() {
			at.Remembers = time.Duration(float64(time.Since(s.forgot)) * (1 - drift) / (1 + drift))
		}
	}
	return at
}

// arrive takes a message in, unless it was sent under faults, or at the moment at which they
// ended, and comes more than a second later.
func (s *server) arrive(a arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.calmed.IsZero() && !a.sent.After(s.calmed) && time.Since(s.calmed) > time.Second {
		return
	}
	s.take(a)
}

// take does what a message asks. s.mu is held.
func (s *server) take(a arrival) {
	switch {
	case s.hung:
		s.queue = append(s.queue, a)
	case s.refuses, s.deaf && (a.sync == nil || a.sync.Revision <= s.rec.Revision):
		a.reply(reply{err: errRefused})
	case s.silent:
	case a.leave != nil:
		s.leaves++
		if s.memory != nil {
			a.reply(reply{err: s.memory.Leave(context.Background(), *a.leave)})
			return
		}
		if s.rec.Leave(a.leave, s.at()) {
			s.written = s.wall()
		}
		a.reply(reply{})
	case a.reserve != nil:
		a.reply(s.reserve(a.reserve))
	default:
		s.syncs++
		a.reply(s.sync(a.sync))
	}
}

// reserve is one reservation. A deferred store reads its own write back to learn what it
// came to.
func (s *server) reserve(req *driver.Reserve) reply {
	var res driver.Reserved
	var err error
	if s.memory != nil {
		res, err = s.memory.Reserve(context.Background(), *req)
	} else if err = req.Validate(); err == nil {
		var changed bool
		at := s.at()
		if res, changed = s.rec.Reserve(req, at); changed {
			s.written = s.wall()
		}
		if at.Deferred && changed {
			res = s.rec.ReadReservation(req, res.Revision, s.at())
		}
	}
	s.slots += uint64(res.Count)
	return reply{res: res, err: err}
}

// sync is one step of the record.
func (s *server) sync(req *driver.Request) reply {
	if s.memory != nil {
		ans, err := s.memory.Sync(context.Background(), *req)
		if err == nil {
			s.answers[ans.Status]++
		}
		return reply{ans: ans, err: err}
	}
	if err := req.Validate(); err != nil {
		return reply{err: err}
	}
	frozen := s.rec.FrozenUntil
	ans, changed := s.rec.Sync(req, s.at())
	if changed {
		s.written = s.wall()
	}
	if s.deaf && changed && (ans.Status == driver.Granted || ans.Status == driver.Behind) {
		s.deaf, s.back = false, time.Now()
	}
	s.answers[ans.Status]++
	if s.rec.FrozenUntil != frozen && s.rec.FrozenUntil > s.rec.Clock {
		s.freezes[s.rec.FrozenBy]++
	}
	return reply{ans: ans}
}

// set changes the server's state.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// resume ends a stall: what came meanwhile is done now, in the order of the sockets
// rather than of the requests.
func (s *server) resume(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung, s.back = false, time.Now()
	queue := s.queue
	s.queue = nil
	if r.IntN(2) == 0 {
		r.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	}
	for _, a := range queue {
		s.take(a)
	}
}

// A backup is the record at an earlier time, on a replica.
type backup struct {
	rec     driver.Record
	written int64
	lives   int
}

func (s *server) backup() backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.rec
	rec.Rows, rec.Documents = slices.Clone(s.rec.Rows), slices.Clone(s.rec.Documents)
	return backup{rec, s.written, s.lives}
}

// restore puts an older copy, or an empty record, in the place of the present one.
// It does nothing if the server has another identity than the copy's since.
func (s *server) restore(b backup, sameIdentity, deaf bool) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.lives != s.lives {
		return false
	}
	s.rec, s.written, s.forgot, s.deaf, s.queue = b.rec, b.written, time.Now(), deaf, nil
	s.back = s.forgot
	if !sameIdentity {
		s.newIdentity()
	}
	return true
}

// hear ends deafness: nobody who could tell has come for too long.
func (s *server) hear(lives int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf && s.lives == lives {
		s.deaf, s.back = false, time.Now()
		s.newIdentity()
	}
}

// spared tells whether the server is not to be lost now, for that happened a moment ago: somebody who asks
// on time might not have reached it between the two.
func (s *server) spared() bool {
	if !s.plan.together {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	away := s.silent || s.refuses || s.hung || s.deaf
	again := time.Duration(float64(slices.Max(s.plan.leases)/4)/(1-drift)) + 2*time.Second
	return away || time.Since(s.back) < again
}

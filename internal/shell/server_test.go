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

	links "github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A server keeps the record of the one pool of a run, and loses it. It takes every
// step under its lock, and never waits while it holds it.
type server struct {
	plan  *plan
	start time.Time

	mu      sync.Mutex
	store   driver.Store  // takes the steps: a memstore, or records
	records *links.Server // nil for a storeMemory
	lives   int           // identities used up
	stepped time.Duration // by how much the clock was set
	forgot  time.Time     // when it forgot something last; zero: never
	calmed  time.Time     // when the faults ended
	back    time.Time     // when it began to answer again last

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
	s := &server{plan: p, start: time.Now(), lives: 1, freezes: map[driver.FreezeCause]uint64{}}
	if p.store == storeMemory {
		s.store = memstore.New()
		return s
	}
	s.records = links.NewServer()
	s.records.Deferred, s.records.Moment, s.store = p.store == storeDeferred, s.moment, s.records
	return s
}

// moment says what a step is told of the moment. s.mu is held.
func (s *server) moment(at *driver.At, rec *driver.Record) {
	elapsed := time.Duration(float64(time.Since(s.start)) * s.plan.storeRate)
	at.Now, at.Identity, at.Longest, at.Remembers = s.start.Add(elapsed+s.stepped).UnixMicro(), fmt.Sprint("server-", s.lives), s.plan.longest, 0
	if rec.Revision == 0 && s.plan.knownNew {
		at.Remembers = math.MaxInt64
		if !s.forgot.IsZero() {
			at.Remembers = time.Duration(float64(time.Since(s.forgot)) * (1 - drift) / (1 + drift))
		}
	}
}

// record calls f with the record, if there is one.
func (s *server) record(f func(*driver.Record)) {
	if s.records != nil {
		s.records.Record(f)
	}
}

func (s *server) revision() (n uint64) {
	s.record(func(r *driver.Record) { n = r.Revision })
	return n
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
	case s.refuses, s.deaf && (a.sync == nil || a.sync.Revision <= s.revision()):
		a.reply(reply{err: errRefused})
	case s.silent:
	case a.leave != nil:
		s.leaves++
		a.reply(reply{err: s.store.Leave(context.Background(), *a.leave)})
	case a.reserve != nil:
		a.reply(s.reserve(a.reserve))
	default:
		s.syncs++
		a.reply(s.sync(a.sync))
	}
}

// reserve is one reservation.
func (s *server) reserve(req *driver.Reserve) reply {
	res, err := s.store.Reserve(context.Background(), *req)
	s.slots += uint64(res.Count)
	return reply{res: res, err: err}
}

// sync is one step of the record.
func (s *server) sync(req *driver.Request) reply {
	var revision uint64
	var frozen int64
	s.record(func(r *driver.Record) { revision, frozen = r.Revision, r.FrozenUntil })
	ans, err := s.store.Sync(context.Background(), *req)
	if err != nil {
		return reply{err: err}
	}
	s.answers[ans.Status]++
	s.record(func(r *driver.Record) {
		if s.deaf && r.Revision != revision && (ans.Status == driver.Granted || ans.Status == driver.Behind) {
			s.deaf, s.back = false, time.Now()
		}
		if r.FrozenUntil != frozen && r.FrozenUntil > r.Clock {
			s.freezes[r.FrozenBy]++
		}
	})
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

// A backup is a copy of the record, on a replica.
type backup struct {
	revision uint64
	lives    int
	takeOver func()
}

// backup copies the record as it is, or is empty.
func (s *server) backup(empty bool) backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision := s.revision()
	if empty || revision == 0 {
		return backup{0, s.lives, s.records.Wipe}
	}
	return backup{revision, s.lives, s.records.Snapshot()}
}

// restore puts an older copy, or an empty record, in the place of the present one.
// It does nothing if the server has another identity than the copy's since.
func (s *server) restore(b backup, sameIdentity, deaf bool) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.lives != s.lives {
		return false
	}
	b.takeOver()
	s.forgot, s.deaf, s.queue = time.Now(), deaf, nil
	s.back = s.forgot
	if !sameIdentity {
		s.lives++
	}
	return true
}

// hear ends deafness: nobody who could tell has come for too long.
func (s *server) hear(lives int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf && s.lives == lives {
		s.deaf, s.back = false, time.Now()
		s.lives++
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

package storetest

import (
	"context"
	crand "crypto/rand"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var (
	seedFlag      = flag.Uint64("storetest.seed", 0, "seed of the first random sequence; 0 draws one")
	sequencesFlag = flag.Int("storetest.sequences", 4, "number of random sequences; each has the next seed")
	stepsFlag     = flag.Int("storetest.steps", 250, "steps of a random sequence")
)

// A sequence is one random sequence under way: a pool, the processors that play
// in it, and the reference that follows.
type sequence struct {
	*pool
	rng   *rand.Rand
	ref   *reference
	trace strings.Builder
	start time.Time

	// watchers sync while time passes, and let Load show it. They do nothing wrong. A Deferred store does not know yet when the
	// last of them did.
	watchers [2]*player
	players  []*player
	// ghosts are processes that should be gone: replaced, cloned, left or given up.
	ghosts   []*player
	born     int
	poolSize int
	// Time is scarce: these operations are limited per sequence.
	silences, gaps int
	frozenFor      int // steps since the pool froze
	spacing        time.Duration
	reserved       []int64          // what can be given back, the newest last
	paid           map[uint64]int64 // the newest Drawn.Paid of each key
	restore        func()
}

// A player is a processor that remembers its answers and requests.
type player struct {
	*proc
	held driver.Share
	docs map[string]driver.Document
	sent []driver.Request // the newest last
}

// runRandom runs one sequence.
func (p *pool) runRandom(seed uint64, steps int) {
	p.lease = min(p.Longest, 200*time.Millisecond)
	s := &sequence{
		pool: p, rng: rand.New(rand.NewPCG(seed, 0)), ref: newReference(&p.Harness), start: time.Now(), silences: 2, gaps: 2,
		paid: map[uint64]int64{},
	}
	p.Logf("run it again with -storetest.seed=%d", seed)
	// Half of the sequences are about permits, too: they are issued now and then.
	s.spacing = []time.Duration{0, 0, 12 * time.Millisecond, 7 * time.Millisecond}[s.rng.IntN(4)]
	s.newWatchers()
	s.watch()
	if s.rng.IntN(4) > 0 {
		s.thaw()
	}
	for range 5 {
		s.players = append(s.players, s.join())
	}
	for range steps {
		s.step()
	}
	s.thaw()
}

func (s *sequence) player(id string) *player {
	s.born++
	pl := &player{proc: s.proc(id), docs: map[string]driver.Document{}}
	pl.incarnation = fmt.Sprint(s.born, "-", crand.Text()[:4])
	pl.spacing, pl.strict = s.spacing, s.spacing > 0 && s.rng.IntN(10) == 0
	pl.reach = []time.Duration{0, 0, 3*time.Millisecond + 1, 40 * time.Millisecond}[s.rng.IntN(4)]
	return pl
}

func (s *sequence) join() *player { return s.player(fmt.Sprint("p", s.born)) }

// step does one random thing. A pool that is frozen for long is dull.
func (s *sequence) step() {
	s.frozenFor++
	if s.ref.rec.FrozenUntil <= s.ref.rec.Clock {
		s.frozenFor = 0
	}
	if s.frozenFor > 20 {
		s.thaw()
	}
	total := 0
	for _, op := range operations {
		total += op.weight
	}
	n := s.rng.IntN(total)
	for _, op := range operations {
		if n -= op.weight; n < 0 {
			op.run(s, s.players[s.rng.IntN(len(s.players))])
			return
		}
	}
}

// do sends a request, takes the answer if take is set, and compares it.
func (s *sequence) do(pl *player, what string, req driver.Request, take bool) driver.Answer {
	s.Helper()
	s.attend(pl)
	return s.exchange(pl, what, req, take)
}

// attend ensures that Load will show the time of the next step, which is that of a player.
func (s *sequence) attend(pl *player) {
	s.Helper()
	if !s.ref.attended(pl.id) {
		s.watch()
	}
}

func (s *sequence) exchange(pl *player, what string, req driver.Request, take bool) driver.Answer {
	s.Helper()
	var ans driver.Answer
	attempts := 0
	err := s.call(func(ctx context.Context) (err error) {
		attempts++
		ans, err = pl.store.Sync(ctx, req)
		return err
	})
	s.note(pl, what, req, ans)
	s.follow(err, ans.Time, req.LastTime, s.ref.sync(req, ans, attempts > 1))
	if n := len(pl.sent); n == 0 || pl.sent[n-1].Seq < req.Seq {
		pl.sent = append(pl.sent, req)
	}
	if !take {
		return ans
	}
	pl.take(ans)
	if ans.Status == driver.Granted {
		pl.held = ans.Share
	}
	for _, d := range ans.Draws {
		s.paid[d.Key] = d.Paid
	}
	s.load(pl, &req, &ans)
	return ans
}

// follow lets the reference take the step that the store has taken, at the time told, if any.
func (s *sequence) follow(err error, told, lastTime int64, do step) {
	s.Helper()
	after := shown{told: told}
	if err == nil {
		after.documents, after.roster, err = s.pool.load()
	}
	if err == nil {
		err = s.ref.take(do, after, lastTime)
	}
	if err != nil {
		s.Fatalf("%v\nafter\n%s", err, s.trace.String())
	}
}

func (s *sequence) doLeave(pl *player, what string, seq uint64) {
	s.Helper()
	s.attend(pl)
	l := pl.farewell(seq)
	err := s.call(func(ctx context.Context) error { return pl.store.Leave(ctx, l) })
	s.tracef("%s/%s %s #%d", pl.id, pl.incarnation, what, seq)
	s.follow(err, 0, 0, func(rec *driver.Record, at driver.At) error {
		rec.Leave(&l, at)
		return nil
	})
}

// tracef adds one line to the trace.
func (s *sequence) tracef(format string, args ...any) {
	fmt.Fprintf(&s.trace, "%8s %s\n", time.Since(s.start).Round(time.Millisecond), fmt.Sprintf(format, args...))
}

// note adds one line to the trace for a sync.
func (s *sequence) note(pl *player, what string, req driver.Request, ans driver.Answer) {
	var w strings.Builder
	for _, d := range req.Documents {
		fmt.Fprintf(&w, " %s is %d of %d %.20q;", d.Name, d.Version, d.Base, d.Body)
	}
	if ans.Status == driver.Granted {
		fmt.Fprintf(&w, " time %d rev %d", ans.Time, ans.Revision)
	}
	if len(ans.Documents) > 0 {
		fmt.Fprintf(&w, " told %s", outline(ans.Documents))
	}
	if ans.Frozen > 0 {
		fmt.Fprintf(&w, " frozen %s by %s", ans.Frozen, ans.FrozenBy)
	}
	s.tracef("%s/%s %s #%d after #%d rev %d: uses %d wants %d; %s %d live %d;%s", pl.id, pl.incarnation, what,
		req.Seq, req.LastSeq, req.Revision, req.InUse, req.Wanted, ans.Status, ans.Share, ans.Live, w.String())
}

func (s *sequence) newWatchers() {
	for i := range s.watchers {
		s.watchers[i] = s.player(fmt.Sprint("watcher ", i))
	}
}

// watch lets the watchers sync. It returns the last answer.
func (s *sequence) watch() (ans driver.Answer) {
	s.Helper()
	for i := range s.watchers {
		ask := func() driver.Answer {
			w := s.watchers[i]
			return s.exchange(w, "watches", w.request(driver.Report{PoolSize: s.poolSize}), true)
		}
		if ans = ask(); ans.Status == driver.Removed { // it has not been needed for long
			s.watchers[i] = s.player(s.watchers[i].id)
			ans = ask()
		}
		if ans.Status != driver.Granted {
			s.Fatalf("the watcher was told %s\nafter\n%s", ans.Status, s.trace.String())
		}
	}
	return ans
}

// thaw lets time pass until the pool is not frozen.
func (s *sequence) thaw() {
	s.Helper()
	s.eventually("the freeze ends", func() bool { return s.watch().Frozen == 0 })
}

// random runs the random sequences.
func (s *suite) random(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	var cases []testCase
	for i := range *sequencesFlag {
		cases = append(cases, testCase{
			name: fmt.Sprint("sequence ", i+1),
			run:  func(p *pool) { p.runRandom(seed+uint64(i), *stepsFlag) },
		})
	}
	s.runAll(t, cases, len(cases))
}

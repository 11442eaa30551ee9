package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// operations are the things that happen in a random sequence. pl is one of the
// players, drawn at random.
var operations = []struct {
	weight int
	run    func(s *sequence, pl *player)
}{
	{50, (*sequence).honest},
	{8, (*sequence).answerLost},
	{3, (*sequence).requestLost},
	{8, (*sequence).repeat},
	{4, (*sequence).late},
	{5, (*sequence).liar},
	{4, (*sequence).restart},
	{3, (*sequence).crash},
	{4, (*sequence).inherits},
	{4, (*sequence).leaves},
	{2, (*sequence).staleLeave},
	{3, (*sequence).cloned},
	{10, (*sequence).haunt},
	{2, (*sequence).gap},
	{2, (*sequence).silence},
	{2, (*sequence).recount},
	{1, (*sequence).rollback},
	{4, (*sequence).operator},
	{15, (*sequence).reserves},
}

// honest syncs as a processor should.
func (s *sequence) honest(pl *player) {
	s.outcome(pl, s.do(pl, "syncs", s.request(pl), true))
}

// outcome does what a processor does when it is refused.
func (s *sequence) outcome(pl *player, ans driver.Answer) {
	i := slices.Index(s.players, pl)
	if ans.Status == driver.Granted || i < 0 || ans.Status == driver.Behind && pl.recalled == ans.Newest {
		return
	}
	s.ghosts = append(s.ghosts, pl)
	if ans.Status == driver.Replaced {
		s.players[i] = s.join()
	} else {
		s.players[i] = s.player(pl.id)
	}
}

// report draws a report: the share held is in use, unless less is wanted.
func (s *sequence) report(pl *player) driver.Report {
	want := s.share()
	inUse := min(pl.held, want)
	if s.rng.IntN(3) == 0 {
		inUse = pl.held // wants less, but still uses what it holds
	}
	pl.held = inUse
	return driver.Report{InUse: inUse, Wanted: want, Demand: s.share(), PoolSize: s.poolSize, Note: s.body(3), Busy: s.busy()}
}

// share draws a share. Most are such that several processors hold one.
func (s *sequence) share() driver.Share {
	switch s.rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return whole
	case 2:
		return driver.Share(s.rng.Int64N(int64(whole) + 1))
	default:
		return whole/5 + driver.Share(s.rng.Int64N(3)) - 1
	}
}

func (s *sequence) answerLost(pl *player) {
	s.outcome(pl, s.do(pl, "syncs without an answer", s.request(pl), false))
}

func (s *sequence) requestLost(pl *player) { pl.request(s.report(pl)) }

// repeat sends the newest request again.
func (s *sequence) repeat(pl *player) {
	if n := len(pl.sent); n > 0 {
		s.do(pl, "repeats", pl.sent[n-1], true)
	}
}

// late sends an older request again.
func (s *sequence) late(pl *player) {
	if n := len(pl.sent); n > 1 {
		s.do(pl, "is late with", pl.sent[s.rng.IntN(n-1)], false)
	}
}

// liar reports facts that the store cannot know, and that its memory cannot explain.
func (s *sequence) liar(pl *player) {
	req := s.request(pl)
	req.InUse = s.share()
	what := "lies"
	if s.gaps > 0 && s.rng.IntN(3) == 0 {
		s.gaps--
		if what = "has seen a newer record"; s.rng.IntN(2) == 0 {
			what, req.LastSeq, req.Seq = "has seen a newer row", req.Seq+1, req.Seq+3
			pl.seq, pl.history[len(pl.history)-1].Seq = req.Seq, req.Seq
			req.Unanswered, req.Recalled = nil, driver.Ticket{}
			if s.rng.IntN(2) == 0 {
				req.Recalled = s.ref.newest(req)
			}
		} else {
			req.Revision = s.ref.rec.Revision + 1 + s.rng.Uint64N(1<<40)
		}
	}
	s.outcome(pl, s.do(pl, what, req, s.rng.IntN(2) == 0))
}

// restart is a new process under the same ID; the old one may still be there.
func (s *sequence) restart(pl *player) {
	s.ghosts = append(s.ghosts, pl)
	s.players[slices.Index(s.players, pl)] = s.player(pl.id)
}

// crash is the end of a process; another one joins.
func (s *sequence) crash(pl *player) {
	s.ghosts = append(s.ghosts, pl)
	s.players[slices.Index(s.players, pl)] = s.join()
}

func (s *sequence) leaves(pl *player) {
	pl.seq++
	s.doLeave(pl, "leaves", pl.seq)
	s.crash(pl)
}

// staleLeave is a leave that a newer request has overtaken, or one from nowhere.
func (s *sequence) staleLeave(pl *player) {
	if pl.seq > 0 && s.rng.IntN(2) == 0 {
		s.doLeave(pl, "is late with a leave", 1+s.rng.Uint64N(pl.seq))
		return
	}
	s.doLeave(s.player(pl.id), "leaves without having joined", 1)
}

// cloned copies a process with all that it knows. Both go on.
func (s *sequence) cloned(pl *player) {
	ghost := &player{proc: pl.clone(), held: pl.held, docs: maps.Clone(pl.docs), sent: slices.Clone(pl.sent)}
	s.ghosts = append(s.ghosts, ghost)
	if s.rng.IntN(2) == 0 {
		s.honest(ghost)
		s.honest(pl)
	}
}

// recount changes the number that all divide by from then on: the right one more often than not.
func (s *sequence) recount(*player) {
	s.poolSize = s.ref.live()
	if s.rng.IntN(3) == 0 {
		s.poolSize = s.rng.IntN(8)
	}
}

// haunt lets a process that should be gone do something, more often than not one of the newest.
func (s *sequence) haunt(*player) {
	n := len(s.ghosts)
	if n == 0 {
		return
	}
	pl := s.ghosts[n-1-s.rng.IntN([]int{n, min(n, 2)}[s.rng.IntN(2)])]
	switch s.rng.IntN(6) {
	case 0:
		s.repeat(pl)
	case 1:
		s.late(pl)
	case 2:
		pl.seq++
		s.doLeave(pl, "leaves as a ghost", pl.seq)
	default:
		s.honest(pl)
	}
}

// gap is a pause beyond the clamp.
func (s *sequence) gap(*player) {
	pause(driver.Clamp(s.lease) * 5 / 4)
}

// silence lets a removal time pass, in which all but the watcher and some others
// are silent.
func (s *sequence) silence(pl *player) {
	if s.silences == 0 {
		return
	}
	s.silences--
	quiet := s.rng.IntN(2) == 0
	until := s.ref.rec.Clock + driver.Removal(s.lease).Microseconds()*11/10
	s.eventually("a removal time passes", func() bool {
		if !quiet && slices.Contains(s.players, pl) && s.rng.IntN(8) == 0 {
			s.honest(pl)
		}
		return s.watch().Time > until
	})
	if s.rng.IntN(2) == 0 {
		s.thaw()
	}
}

// rollback keeps a copy of the record, or puts it back.
func (s *sequence) rollback(*player) {
	switch {
	case s.Snapshot == nil:
	case s.restore == nil:
		restore, rec := s.Snapshot(s, s.name), clone(&s.ref.rec)
		s.restore = func() {
			restore()
			s.ref.rec = rec
		}
		s.tracef("the record is copied")
	default:
		s.restore()
		s.restore = nil
		s.newWatchers() // the old ones could be asked what they remember
		s.tracef("the copy is put back")
	}
}

// reserves asks for slots, and gives some back. It skips a Deferred store: a failed reservation there may have been written, and is no
// repeat when it is sent again.
func (s *sequence) reserves(*player) {
	if s.spacing == 0 || s.Deferred {
		return
	}
	req := driver.Reserve{
		Pool: s.name, Lease: s.lease, Count: s.rng.IntN(4), Ahead: s.rng.IntN(5),
		Spacing: s.spacing + time.Duration(s.rng.IntN(3)), Revision: s.ref.rec.Revision,
	}
	if n := len(s.reserved); n > 0 && s.rng.IntN(3) == 0 {
		req.Return, req.Unused = s.reserved[n-1-s.rng.IntN(min(n, 2))], s.rng.IntN(3)
	}
	if s.rng.IntN(60) == 0 {
		req.Revision += 10
	}
	res, _ := s.reserve(s.store, req)
	s.tracef("reserves %+v: %+v", req, res)
	s.follow(nil, res.Time, 0, reserve(req, res))
	if res.Last != 0 {
		s.reserved = append(s.reserved, res.Last)
	}
}

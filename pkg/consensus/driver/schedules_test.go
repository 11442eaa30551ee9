package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const half = Whole / 2

// A schedule is a story in which the bound holds because of one rule: without
// it, the shares in use or the claims add up to more than the whole.
type schedule struct {
	rule string // see package mutants
	name string
	run  func(tr *trial)
}

// Processors draw on what they hold until their lease ends, also while they are
// cut off: what is not said to sync does not.
var schedules = []schedule{
	{"freeze", "a wiped store does not know who draws", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(Whole)
		tr.wipe()
		tr.keepBusy(20*time.Second, Whole, b)
	}},
	{"freeze", "a failover to another server lost the newest answer", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(half)
		older := tr.snapshot()
		b.sync(half)
		older()
		tr.at.Identity = "server 2"
		a.sync(Whole)
	}},
	{"freeze", "an older record under the same identity, noticed by its revision", func(tr *trial) {
		a, b, c := tr.actor("a"), tr.actor("b"), tr.actor("c")
		a.sync(0)
		older := tr.snapshot()
		b.sync(Whole)
		a.sync(0)
		older()
		a.sync(0) // has seen a newer one, and holds nothing itself
		c.sync(Whole)
	}},
	{"freeze", "a lost row whose loss nothing else shows", func(tr *trial) {
		a, b, c := tr.actor("a"), tr.actor("b"), tr.actor("c")
		d := tr.actor("d")
		d.sync(0)
		older := tr.snapshot()
		a.sync(half)
		b.sync(half)
		older()
		tr.keepBusy(4*time.Second, 0, d) // the record grows past what they have seen
		a.sync(half)                     // its row is missing
		c.sync(half)                     // b is cut off
	}},
	{"freeze-removal", "the first to come after a wipe has a short lease", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		b.lease = short
		a.sync(Whole)
		tr.wipe()
		tr.keepBusy(20*time.Second, Whole, b)
	}},
	{"freeze-removal", "the holder's clock is slow, the store's fast", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.rate, tr.storeRate = 1-0.0833, 1+0.0833
		b.sync(0)
		a.sync(Whole)
		tr.at.Identity = "server 2"
		older := copyRecord(tr.record)
		older.Rows = older.Rows[1:] // a's
		tr.record, tr.forgot = older, true
		tr.keepBusy(20*time.Second, Whole, b)
	}},
	{"clock-clamp", "the store's clock leaps by an hour", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(Whole)
		tr.storeTime += micros(time.Hour)
		tr.keepBusy(20*time.Second, Whole, b)
	}},
	{"clock-clamp", "the store's clock leaps again and again", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(Whole)
		for range 20 {
			tr.storeTime += micros(time.Minute)
			b.sync(Whole)
		}
	}},
	{"removal-margin", "the holder's clock is slow, the store's fast", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.rate, tr.storeRate = 1-0.0833, 1+0.0833
		a.sync(Whole)
		tr.keepBusy(20*time.Second, Whole, b)
	}},
	{"removal-margin", "the store's clock leaps by a clamp", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(Whole)
		tr.storeTime += micros(Clamp(longest))
		tr.keepBusy(20*time.Second, Whole, b)
	}},
	{"sequence", "a request from before the grant arrives after it", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		late := a.ask(0)
		a.sync(Whole)
		a.take(late, tr.deliver(late))
		b.sync(Whole)
	}},
	{"clone", "two processes with one memory ask for the same", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(0)
		twin := tr.twin(a)
		a.sync(half)
		twin.sync(half)
		b.sync(Whole)
	}},
	{"clone", "one of two processes with one memory is ahead", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(0)
		twin := tr.twin(a)
		twin.seq += 2
		a.sync(half)
		a.sync(half)
		twin.sync(half)
		b.sync(Whole)
	}},
	{"replaced-claim", "a process is restarted while the old one still draws", func(tr *trial) {
		a := tr.actor("a")
		a.sync(Whole)
		again := tr.actor("a")
		tr.keepBusy(20*time.Second, Whole, again)
	}},
	{"replaced-claim", "two restarts under one ID", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(half)
		tr.actor("a").sync(half)
		tr.actor("a").sync(Whole)
		b.sync(Whole)
	}},
	{"tombstone", "a packet of a processor that left arrives after the leave", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(Whole)
		late := a.ask(Whole)
		a.leave()
		b.sync(Whole)
		tr.deliver(late)
	}},
	{"room", "after two shares came to overlap, the next syncs end it", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(half)
		older := tr.snapshot()
		b.sync(half)
		older()
		a.sync(Whole) // nobody has noticed: this much no store can help
		b.sync(half)
		a.sync(Whole)
		tr.forgive()
		tr.keepBusy(20*time.Second, Whole, a, b)
	}},
	{"claim-falls", "the answer with the lower share is lost", func(tr *trial) {
		a, b := tr.actor("a"), tr.actor("b")
		a.sync(Whole)
		tr.deliver(a.askWithout(half))
		b.sync(Whole)
	}},
}

// twin is a copy of the process, with all that it knows.
func (tr *trial) twin(a *actor) *actor {
	b := *a
	b.held = 0
	tr.actors = append(tr.actors, &b)
	return &b
}

// play runs a schedule on an open pool, until every lease is over.
func (s schedule) play(tb testing.TB, deferred bool) *trial {
	tb.Helper()
	tr := newTrial(tb)
	tr.at.Deferred = deferred
	tr.open()
	s.run(tr)
	tr.wait(2 * longest)
	return tr
}

func TestSchedules(t *testing.T) {
	for _, s := range schedules {
		for _, deferred := range []bool{false, true} {
			name := s.name
			if deferred {
				name += ", time known afterwards"
			}
			t.Run(name, func(t *testing.T) {
				tr := s.play(t, deferred)
				require.LessOrEqual(t, tr.inUse, Whole, "shares in use")
				require.LessOrEqual(t, tr.claims, Whole, "claims on record")
				require.Positive(t, tr.inUse, "nobody held anything")
			})
		}
	}
}

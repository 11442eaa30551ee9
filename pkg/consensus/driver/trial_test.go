package driver

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A trial is a pool in true time: one Record as the store's memory, and actors that follow the processor's rules and hold no share.
type trial struct {
	t      testing.TB
	record *Record
	at     At
	// now is true time; the store's clock has a rate and can be set.
	now       time.Duration
	storeRate float64
	storeTime int64
	written   int64 // the store's time of the newest write, for Deferred stores

	actors []*actor
	nonce  uint64
}

// An actor is one process with one incarnation, honest but not clever.
type actor struct {
	trial           *trial
	id, incarnation string

	seq        uint64
	last       Answer   // the answer taken last
	answered   []Ticket // all that were
	recalled   Ticket
	unanswered []Ticket
	revision   uint64
	spacing    time.Duration // of the limit, if it can use permits
	strict     bool
	furthest   time.Duration // true time of the last slot that it tells of
}

const half = Whole / 2

// longest is the longest lease of trials, short one of a pool with less.
const longest, short = 10 * time.Second, 4 * time.Second

// remembers is At.Remembers of a store that knows new pools as such.
const remembers = time.Duration(math.MaxInt64)

func newTrial(tb testing.TB) *trial {
	tb.Helper()
	return &trial{t: tb, record: &Record{}, at: At{Identity: "server 1", Longest: longest}, storeRate: 1, storeTime: t0}
}

// wait lets true time pass.
func (tr *trial) wait(d time.Duration) {
	tr.now += d
	tr.storeTime += micros(time.Duration(float64(d) * tr.storeRate))
}

// moment is the At of a step.
func (tr *trial) moment() At {
	at := tr.at
	at.Now = tr.storeTime
	if at.Deferred {
		at.Now = tr.written
	}
	return at
}

// actor is a new process.
func (tr *trial) actor(id string) *actor {
	a := &actor{trial: tr, id: id, incarnation: fmt.Sprint(len(tr.actors))}
	tr.actors = append(tr.actors, a)
	return a
}

// sync makes the next request and takes the answer. It answers the question of a store that is behind.
func (a *actor) sync() Answer {
	tr := a.trial
	a.seq++
	tr.nonce++
	req := Request{
		Pool: "pool", ID: a.id, Incarnation: a.incarnation, Seq: a.seq, Nonce: tr.nonce, Lease: longest, Report: Report{PoolSize: 1},
		LastSeq: a.last.Seq, LastNonce: a.last.Nonce, LastTime: a.last.Time, Unanswered: a.unanswered, Recalled: a.recalled,
		Revision: a.revision, Spacing: a.spacing, Strict: a.strict, Reach: max(0, a.furthest-tr.now),
	}
	require.NoError(tr.t, req.Validate())
	ans, changed := tr.record.Sync(&req, tr.moment())
	if changed {
		tr.written = tr.storeTime
	}
	a.unanswered = append(slices.Clone(a.unanswered), Ticket{req.Seq, req.Nonce})
	switch {
	case ans.Status == Granted:
		a.answered = append(a.answered, Ticket{ans.Seq, ans.Nonce})
		a.last, a.unanswered, a.recalled, a.revision = ans, nil, Ticket{}, max(a.revision, ans.Revision)
	case ans.Status == Behind && slices.Contains(a.answered, ans.Newest):
		a.recalled = ans.Newest
		return a.sync()
	}
	return ans
}

func (a *actor) leave() {
	a.seq++
	l := Leave{Pool: "pool", ID: a.id, Incarnation: a.incarnation, Seq: a.seq, LastSeq: a.last.Seq, LastNonce: a.last.Nonce, Unanswered: a.unanswered}
	if a.trial.record.Leave(&l, a.trial.moment()) {
		a.trial.written = a.trial.storeTime
	}
}

// wipe empties the store.
func (tr *trial) wipe() { tr.record, tr.written = &Record{}, 0 }

// snapshot copies the record; the function it returns puts the copy back.
func (tr *trial) snapshot() func() {
	kept, written := copyRecord(tr.record), tr.written
	return func() { tr.record, tr.written = copyRecord(kept), written }
}

func copyRecord(r *Record) *Record {
	c := *r
	c.Rows = append([]Row(nil), r.Rows...)
	return &c
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	crand "crypto/rand"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A pool is the pool that one case works on.
type pool struct {
	*testing.T
	*suite

	name  string
	store driver.Store
	lease time.Duration
}

// A proc is a scripted processor. It keeps the numbers that a request carries; the case decides on reports and on the answers to take. It
// is a plain value: a copy of it is a clone of its process.
type proc struct {
	pool            *pool
	store           driver.Store
	id, incarnation string
	lease           time.Duration
	seq             uint64
	lastSeq         uint64
	lastNonce       uint64
	lastTime        int64
	history         []driver.Ticket // every request
	recalled        driver.Ticket
	revision        uint64
	spacing         time.Duration // of the limit; 0: it can use no permits
	strict          bool
	reach           time.Duration // how far ahead it says its slots lie
	dead            []driver.Death
	draws           []driver.Draw // of the next request
}

// proc returns a processor that has not joined yet.
func (p *pool) proc(id string) *proc {
	return &proc{pool: p, store: p.store, id: id, incarnation: crand.Text(), lease: p.lease}
}

// reborn returns the next incarnation of a's ID: the process was restarted.
func (a *proc) reborn() *proc {
	b := a.pool.proc(a.id)
	b.store = a.store
	return b
}

// clone returns a copy of the process.
func (a *proc) clone() *proc {
	b := *a
	b.history = slices.Clone(a.history)
	return &b
}

// one is the report of a processor that could use the share it wants, and knows of no other.
func one(inUse, wanted driver.Share) driver.Report {
	return driver.Report{InUse: inUse, Wanted: wanted, Demand: wanted, PoolSize: 1}
}

// request returns the next request, with reports on documents.
func (a *proc) request(report driver.Report, documents ...driver.DocumentReport) driver.Request {
	a.seq++
	req := driver.Request{
		Pool: a.pool.name, ID: a.id, Incarnation: a.incarnation,
		Seq: a.seq, Nonce: rand.Uint64(),
		LastSeq: a.lastSeq, LastNonce: a.lastNonce, LastTime: a.lastTime,
		Revision: a.revision, Lease: a.lease, Spacing: a.spacing, Strict: a.strict, Reach: a.reach, Dead: a.dead, Report: report,
		Draws: a.draws, Documents: documents,
	}
	a.draws = nil
	req.Unanswered = a.unanswered(a.lastSeq, a.seq)
	if a.recalled.Seq < a.lastSeq {
		req.Recalled = a.recalled
	}
	a.history = append(a.history, driver.Ticket{Seq: req.Seq, Nonce: req.Nonce})
	return req
}

// unanswered lists the requests between two numbers, as many as may be named.
func (a *proc) unanswered(last, seq uint64) (tickets []driver.Ticket) {
	for _, t := range a.history {
		if t.Seq > last && t.Seq < seq {
			tickets = append(tickets, t)
		}
	}
	return tickets[max(0, len(tickets)-wire.MaxUnanswered):]
}

// send sends a request, and takes no answer.
func (a *proc) send(req driver.Request) driver.Answer {
	a.pool.Helper()
	var ans driver.Answer
	require.NoError(a.pool, a.pool.call(func(ctx context.Context) (err error) {
		ans, err = a.store.Sync(ctx, req)
		return err
	}))
	require.Equal(a.pool, req.Seq, ans.Seq, "the answer's Seq is that of the request")
	require.Equal(a.pool, req.Nonce, ans.Nonce, "the answer's Nonce is that of the request")
	if ans.Status != driver.Granted {
		require.Equal(a.pool, driver.Answer{Status: ans.Status, Seq: ans.Seq, Nonce: ans.Nonce, Newest: ans.Newest}, ans,
			"nothing else is set in a refusal")
		require.Equal(a.pool, ans.Status == driver.Behind, ans.Newest != driver.Ticket{})
	}
	return ans
}

// take takes an answer.
func (a *proc) take(ans driver.Answer) {
	if ans.Status == driver.Granted {
		a.lastSeq, a.lastNonce, a.lastTime = ans.Seq, ans.Nonce, ans.Time
		a.revision = max(a.revision, ans.Revision)
		a.recalled, a.dead = driver.Ticket{}, nil
	}
	if ans.Status == driver.Behind && slices.Contains(a.history, ans.Newest) {
		a.recalled = ans.Newest
	}
}

// sync sends the next request and takes the answer, which must be Granted. It answers the question of a store that is behind once.
func (a *proc) sync(report driver.Report, documents ...driver.DocumentReport) driver.Answer {
	a.pool.Helper()
	ans := a.send(a.request(report, documents...))
	if ans.Status == driver.Behind {
		a.take(ans)
		ans = a.send(a.request(report, documents...))
	}
	require.Equal(a.pool, driver.Granted, ans.Status)
	a.take(ans)
	return ans
}

// share does the same with the report of one, and returns the share.
func (a *proc) share(inUse, wanted driver.Share) driver.Share {
	a.pool.Helper()
	return a.sync(one(inUse, wanted)).Share
}

// refused sends the next request, which must be refused with status.
func (a *proc) refused(status driver.Status, inUse, wanted driver.Share) {
	a.pool.Helper()
	require.Equal(a.pool, status, a.send(a.request(one(inUse, wanted))).Status)
}

// leave leaves the pool.
func (a *proc) leave() {
	a.pool.Helper()
	a.seq++
	a.sendLeave(a.seq)
}

// sendLeave sends a leave with any number.
func (a *proc) sendLeave(seq uint64) {
	a.pool.Helper()
	l := a.farewell(seq)
	require.NoError(a.pool, a.pool.call(func(ctx context.Context) error { return a.store.Leave(ctx, l) }))
}

// farewell returns a leave with any number. It remembers as much as the process did when it was to send that number.
func (a *proc) farewell(seq uint64) driver.Leave {
	l := driver.Leave{Pool: a.pool.name, ID: a.id, Incarnation: a.incarnation, Seq: seq}
	if a.lastSeq < seq {
		l.LastSeq, l.LastNonce = a.lastSeq, a.lastNonce
	}
	l.Unanswered = a.unanswered(l.LastSeq, seq)
	return l
}

// call calls the store. By the store's contract an error is transient, and a repeat harmless: a slow server does not fail a case that is
// not about errors.
func (p *pool) call(do func(ctx context.Context) error) error {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), callTimeout)
	defer cancel()
	for {
		err := do(ctx)
		var bad *driver.RequestError
		var conflict *driver.ConflictError
		decided := errors.As(err, &bad) || errors.As(err, &conflict) || errors.Is(err, driver.ErrNoPool)
		if err == nil || decided || ctx.Err() != nil {
			return err
		}
		p.Logf("a call failed, and is repeated: %v", err)
		pause(10 * time.Millisecond)
	}
}

// open makes the pool, waits until the freeze of a new one is over, and leaves no claim behind. It returns two processors that have not
// joined yet.
func (p *pool) open() (a, b *proc) {
	p.Helper()
	first := p.proc("opens the pool")
	p.eventually("a new pool's freeze ends", func() bool {
		return first.sync(one(0, 0)).Frozen == 0
	})
	first.leave()
	return p.proc("a"), p.proc("b")
}

// inTime runs do, which works with several processors, in a pool of its own, and then its check. On a busy machine the first of the
// processors may have been removed, a removal time after the moment that do names. Then there is no check, and inTime tries again until its
// patience ends. The leases are as long as the store was built for, up to a second: they do not have to end here.
func (p *pool) inTime(do func(p *pool) (began time.Time, check func())) {
	p.Helper()
	q := *p
	q.lease = max(p.lease, min(p.Longest, time.Second))
	for attempt, limit := 0, time.Now().Add(patience); time.Now().Before(limit); attempt++ {
		q := q
		q.name = fmt.Sprint(p.name, " ", attempt)
		if began, check := do(&q); time.Since(began) < wire.Removal(q.lease) {
			check()
			return
		}
		p.Logf("attempt %d took longer than a removal time", attempt)
	}
	p.Fatal("the store is too slow for a lease of ", q.lease)
}

// eventually calls sync until it returns true, three times as often as the pool's clock needs to run: sync must reach the store.
func (p *pool) eventually(what string, sync func() bool) {
	p.Helper()
	limit := time.Now().Add(patience + 2*wire.Removal(p.Longest))
	tick := time.NewTicker(wire.Clamp(p.lease) / 3)
	defer tick.Stop()
	for !sync() {
		require.True(p, time.Now().Before(limit), "%s: did not happen", what)
		<-tick.C
	}
}

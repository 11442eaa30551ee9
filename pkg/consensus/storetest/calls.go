package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// numberCases are about large numbers and long names, which some formats damage.
var numberCases = []testCase{
	{name: "large numbers are kept exactly", run: func(p *pool) {
		a, _ := p.open()
		a.seq = maxSeq - 10
		a.share(0, half)
		req := a.request(one(half, half))
		req.Nonce = math.MaxUint64
		a.take(a.send(req))
		require.Equal(p, a.lastNonce, uint64(math.MaxUint64))
		a.share(half, half)
		late := a.request(one(half, whole))
		a.share(half, half) // one more than late
		require.Equal(p, driver.Late, a.send(late).Status)
		req = a.request(one(half, half))
		req.Nonce = nonce()
		a.take(a.send(req))
		req.Nonce--
		require.Equal(p, driver.Cloned, a.send(req).Status)
	}},
	{name: "a nonce of nothing is as good as any", run: func(p *pool) {
		a, _ := p.open()
		req := a.request(one(0, half))
		req.Nonce = 0
		a.take(a.send(req))
		require.Equal(p, half, a.share(half, half))
	}},
	{name: "long and unusual names are kept exactly", run: unusualNames},
}

func unusualNames(p *pool) {
	long := func(suffix string) string { return strings.Repeat("n", 256-len(suffix)) + suffix }
	for i, ids := range [][]string{{long("1"), long("2")}, {"pod {a} \"b\" 'c' \\d\n\t<e>&", "\u65e5\u672c/ä:*.>"}, {"null", "\xff"}} {
		p.inTime(func(p *pool) (time.Time, func()) {
			p.name += fmt.Sprint(" ", i)
			p.name += strings.Repeat("\u65e5", (256-len(p.name))/3)
			p.open()
			began := time.Now()
			a, b := p.proc(ids[0]), p.proc(ids[1])
			a.incarnation, b.incarnation = b.id, a.id
			for _, pr := range []*proc{a, b} {
				ans := pr.sync(one(0, whole/8))
				require.Equal(p, whole/8, ans.Share, "ID %q", pr.id)
				require.Contains(p, timeless(ans.Roster), driver.RosterRow{ID: pr.id, Claim: whole / 8, Demand: whole / 8, PoolSize: 1})
			}
			a.sync(one(whole/8, whole/8))
			b.sync(one(whole/8, whole/8))
			left := p.proc("last").share(0, whole)
			return began, func() { require.Equal(p, whole-2*(whole/8), left) }
		})
	}
}

// maxSeq is the largest Seq that a request may have.
const maxSeq = 1<<53 - 1

// callCases are about calls as such: bad requests, contexts, handles, many callers.
var callCases = []testCase{
	{name: "a malformed request is a RequestError and changes nothing", run: malformed},
	{name: "an ended context ends the call", run: ended},
	{name: "the revision rises with every step", run: func(p *pool) {
		a, b := p.open()
		last := a.sync(one(0, 0)).Revision
		for range 10 {
			for _, by := range []*proc{a, b} {
				ans := by.sync(one(0, 0))
				require.Greater(p, ans.Revision, last)
				last = ans.Revision
			}
		}
		b.leave()
		require.Greater(p, a.sync(one(0, 0)).Revision, last+1, "a leave is a step")
	}},
	{name: "every handle shows the same pool", run: func(p *pool) {
		a, b := p.open()
		b.store = p.New(p)
		require.Equal(p, half, a.share(0, half))
		ans := b.sync(one(0, whole))
		require.Equal(p, half, ans.Share)
		require.Equal(p, 2, ans.Live)
		require.NoError(p, b.store.Close())
		require.Equal(p, half, a.share(half, half), "one handle's end is not the other's")
	}},
	{name: "an answer shares no memory with the store", run: func(p *pool) {
		a, _ := p.open()
		req := a.request(one(0, half))
		ans := a.send(req)
		ans.Roster[0] = driver.RosterRow{ID: "forged", Claim: whole}
		ans.Share = whole
		req.Report = one(whole, whole)
		a.take(ans)
		again := a.sync(one(half, half))
		require.Equal(p, []driver.RosterRow{{ID: "a", Claim: half, Demand: half, PoolSize: 1}}, timeless(again.Roster))
	}},
	{name: "many processors at once never hold more than the whole, nor have one revision", run: crowd},
}

func ended(p *pool) {
	a, _ := p.open()
	canceled, cancel := context.WithCancel(p.Context())
	cancel()
	expired, cancel := context.WithDeadline(p.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for want, ctx := range map[error]context.Context{context.Canceled: canceled, context.DeadlineExceeded: expired} {
		_, err := p.store.Sync(ctx, a.request(one(0, whole)))
		require.ErrorIs(p, err, want)
		require.ErrorIs(p, p.store.Leave(ctx, driver.Leave{Pool: p.name, ID: "a", Incarnation: "i", Seq: 1}), want)
		_, err = p.store.Save(ctx, p.name, change("limit", 0, 1, "x"))
		require.ErrorIs(p, err, want)
		_, _, err = p.store.Load(ctx, p.name)
		require.ErrorIs(p, err, want)
	}
	require.Equal(p, half, a.share(0, half))
	p.requireDocuments(a.exchange().Documents)
}

// A ledger is the oracle for shares, or slots of a tag, in use, and for revisions.
type ledger struct {
	mu        sync.Mutex
	total     int64
	most      int64 // that were in use at once
	inUse     map[string]holding
	revisions map[uint64]bool // given to a request
}

// A holding is what a processor may draw on, until its lease ends.
type holding struct {
	n     int64
	until time.Time
}

func newLedger(total int64) *ledger {
	return &ledger{total: total, inUse: map[string]holding{}, revisions: map[uint64]bool{}}
}

// set notes what a processor may draw on. It returns an error if all together
// may draw on too much.
func (l *ledger) set(id string, n int64, until time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse[id] = holding{n, until}
	now := time.Now()
	var sum int64
	for _, h := range l.inUse {
		if h.until.After(now) {
			sum += h.n
		}
	}
	if l.most = max(l.most, sum); sum > l.total {
		return fmt.Errorf("%d of %d are in use", sum, l.total)
	}
	return nil
}

// give notes the revision of a recorded request. It returns an error if another one has it.
func (l *ledger) give(revision uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revisions[revision] {
		return fmt.Errorf("two requests have the revision %d", revision)
	}
	l.revisions[revision] = true
	return nil
}

// crowd lets twenty honest processors over five handles sync as fast as they can.
func crowd(p *pool) {
	const procs, syncs = 20, 25
	p.open()
	l := newLedger(int64(whole))
	var handles []driver.Store
	for range 5 {
		handles = append(handles, p.New(p))
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(p.Context())
	defer cancel(nil)
	for i := range procs {
		a := p.proc(fmt.Sprint("p", i))
		a.store = handles[i%len(handles)]
		wg.Go(func() {
			if err := a.syncHonestly(ctx, l, syncs, whole/procs); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	require.NoError(p, context.Cause(ctx))
}

// syncHonestly syncs a number of times with a want that changes, and goes on
// until the answer is fair. A failed call is one that may have been recorded.
func (a *proc) syncHonestly(ctx context.Context, l *ledger, syncs int, fair driver.Share) error {
	var held driver.Share
	var until time.Time // end of the lease that held rests on
	limit := time.Now().Add(patience)
	for i := 0; i < syncs || held != fair; i++ {
		if ctx.Err() != nil || time.Now().After(limit) {
			return fmt.Errorf("%s holds %d and not its fair share after %d syncs", a.id, held, i)
		}
		if time.Now().After(until) {
			held = 0
		}
		want := fair
		if i < syncs {
			want = fair * driver.Share((i*7+len(a.id))%4)
		}
		held = min(held, want)
		if err := l.set(a.id, int64(held), until); err != nil { // less is in use before the store hears of it
			return err
		}
		sent := time.Now()
		call, cancel := context.WithTimeout(ctx, callTimeout)
		ans, err := a.store.Sync(call, a.request(one(held, want)))
		cancel()
		var bad *driver.RequestError
		switch {
		case errors.As(err, &bad):
			return err
		case err != nil:
			continue
		case ans.Status == driver.Removed: // the machine stood still for too long
			*a = *a.reborn()
			held = 0
			continue
		case ans.Status != driver.Granted:
			return fmt.Errorf("%s was told %s", a.id, ans.Status)
		case ans.Frozen > 0:
			return fmt.Errorf("the store has lost a step, by its own account: %s", ans.FrozenBy)
		}
		a.take(ans)
		if err := l.give(ans.Revision); err != nil {
			return err
		}
		if held > 0 && time.Now().After(until) {
			held = 0 // what the request reported has lapsed: nothing may rest on it
			continue
		}
		if until = sent.Add(ans.Lease); time.Now().Before(until) {
			held = ans.Share
			if err := l.set(a.id, int64(held), until); err != nil {
				return err
			}
		}
	}
	return nil
}

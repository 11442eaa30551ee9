package world

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// ErrCut is the error of a request on a link that is cut.
var ErrCut = errors.New("connection refused")

// A Link is one processor's way to a Store. Its fields are faults, which can be set at any time and from any goroutine; the zero ones do
// nothing. They concern the processor's own requests: to sync, to reserve and to leave. Other requests go to the store as they are.
type Link struct {
	driver.Store

	// Cut fails requests, with ErrCut or that of CutWith. Hang lets them wait until their context ends.
	Cut, Hang atomic.Bool
	err       atomic.Pointer[error]
	// Dead is Cut, but a request to leave seems to succeed, so that a test can clean up.
	Dead atomic.Bool
	// Takes and Returns are how long a request and its answer are on their way, as time.Durations.
	Takes, Returns atomic.Int64
	// Lose is how many answers are lost, after the store has carried out the requests.
	Lose atomic.Int64
	// Instead is asked in place of Store.
	Instead atomic.Pointer[driver.Store]

	// Syncs and Reserves count requests, Answered the syncs that the store answered, and Malformed the requests that it found wrong.
	Syncs, Reserves, Answered, Malformed atomic.Int64
	// Revision is the highest that a request has reported.
	Revision atomic.Uint64

	onSync    atomic.Pointer[func(*driver.Answer, error)]
	onReserve atomic.Pointer[func(*driver.Reserved, error)]
	onLoad    atomic.Pointer[func(*[]driver.Document, *[]driver.RosterRow)]
}

var _ driver.Store = (*Link)(nil)

// NewLink returns a link without faults.
func NewLink(s driver.Store) *Link { return &Link{Store: s} }

// OnSync has f called with each answer of the store, which it may change. nil ends that.
func (l *Link) OnSync(f func(*driver.Answer, error)) { put(&l.onSync, f, f == nil) }

// OnReserve is OnSync for answers to requests for slots.
func (l *Link) OnReserve(f func(*driver.Reserved, error)) { put(&l.onReserve, f, f == nil) }

// OnLoad is OnSync for what operators load.
func (l *Link) OnLoad(f func(*[]driver.Document, *[]driver.RosterRow)) { put(&l.onLoad, f, f == nil) }

func put[F any](at *atomic.Pointer[F], f F, none bool) {
	if none {
		at.Store(nil)
		return
	}
	at.Store(&f)
}

// Sync implements driver.Store.
func (l *Link) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	l.Syncs.Add(1)
	return travel(ctx, l, func(s driver.Store) (driver.Answer, error) {
		ans, err := s.Sync(ctx, req)
		l.note(req.Revision, err)
		if f := l.onSync.Load(); f != nil {
			(*f)(&ans, err)
		}
		if err == nil {
			l.Answered.Add(1)
		}
		return ans, err
	})
}

// Reserve implements driver.Store.
func (l *Link) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	l.Reserves.Add(1)
	return travel(ctx, l, func(s driver.Store) (driver.Reserved, error) {
		res, err := s.Reserve(ctx, req)
		l.note(req.Revision, err)
		if f := l.onReserve.Load(); f != nil {
			(*f)(&res, err)
		}
		return res, err
	})
}

// Leave implements driver.Store. It takes no time.
func (l *Link) Leave(ctx context.Context, req driver.Leave) error {
	switch {
	case l.Dead.Load():
		return nil
	case l.Cut.Load(), l.Hang.Load():
		return l.failure()
	}
	return l.store().Leave(ctx, req)
}

// Load implements driver.Store.
func (l *Link) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	docs, roster, err := l.store().Load(ctx, pool)
	if f := l.onLoad.Load(); f != nil {
		(*f)(&docs, &roster)
	}
	return docs, roster, err
}

func (l *Link) note(revision uint64, err error) {
	for {
		old := l.Revision.Load()
		if revision <= old || l.Revision.CompareAndSwap(old, revision) {
			break
		}
	}
	if bad := (*driver.RequestError)(nil); errors.As(err, &bad) {
		l.Malformed.Add(1)
	}
}

func (l *Link) store() driver.Store {
	if s := l.Instead.Load(); s != nil {
		return *s
	}
	return l.Store
}

// CutWith fails requests with an error; nil ends that.
func (l *Link) CutWith(err error) {
	put(&l.err, err, err == nil)
	l.Cut.Store(err != nil)
}

// Mend ends all faults, other than those of answers.
func (l *Link) Mend() {
	l.CutWith(nil)
	l.Hang.Store(false)
	l.Dead.Store(false)
	l.Takes.Store(0)
	l.Returns.Store(0)
	l.Lose.Store(0)
}

func (l *Link) failure() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return ErrCut
}

// travel takes a request to the store, and the answer back.
func travel[A any](ctx context.Context, l *Link, ask func(driver.Store) (A, error)) (none A, _ error) {
	if l.Hang.Load() {
		<-ctx.Done()
		return none, ctx.Err()
	}
	if err := Sleep(ctx, time.Duration(l.Takes.Load())); err != nil {
		return none, err
	}
	if l.Cut.Load() || l.Dead.Load() {
		return none, l.failure()
	}
	a, err := ask(l.store())
	if err := Sleep(ctx, time.Duration(l.Returns.Load())); err != nil {
		return none, err
	}
	if l.Lose.Load() > 0 {
		l.Lose.Add(-1)
		return none, ErrCut
	}
	return a, err
}

// Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

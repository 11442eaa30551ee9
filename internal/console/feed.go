package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A pool's history is bounded: a quarter of an hour at one sample a second.
const (
	mostSamples = 900
	mostEvents  = 200
)

// A feed holds the state of one pool while it is being viewed, and for a while after.
type feed struct {
	pool string

	mu      sync.Mutex
	last    *snapshot // nil before the first answer
	failure string    // of the newest request; empty: it was answered
	samples []sample
	events  []event
	// How many samples and events were dropped before the kept ones.
	droppedSamples, droppedEvents int
	wake                          map[chan struct{}]bool
	left                          time.Time          // when the last viewer left
	end                           context.CancelFunc // ends its poller, while there are viewers
	stale                         bool               // nobody viewed it in the meantime, and there is no new answer yet

	asking sync.Mutex // serialises requests to the store: a slow answer must not follow a newer one; it guards the fields below
	quotas quotaSource
	// spentAsked is when the store was last asked for spent budgets, and spentFailed the error of that request.
	spentAsked  time.Time
	spentFailed error
}

// An update is the news for one viewer.
type update struct {
	Now     int64     `json:"now"`
	Failure string    `json:"failure"`
	Why     string    `json:"why"` // as of the snapshot, or the failure of the store
	Level   why.Level `json:"level"`
	Missing bool      `json:"missing"` // the store answers, but has no record of the pool
	Pool    *snapshot `json:"state"`
	Samples []sample  `json:"samples"`
	Events  []event   `json:"events"`
}

// A position is how far one viewer has read.
type position struct{ samples, events int }

// news returns the news since a position and advances it.
func (f *feed) news(at *position, now time.Time) update {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := update{Now: now.UnixMilli(), Failure: f.failure, Missing: f.failure == noRecord, Pool: f.last, Samples: []sample{}, Events: []event{}}
	if f.stale {
		u.Pool, u.Failure, u.Missing = nil, "", false
	}
	switch {
	case u.Missing:
		u.Why, u.Level = noRecord, why.Nobody
	case u.Failure != "":
		a := why.Explain(why.State{Failure: u.Failure})
		u.Why, u.Level = a.Sentence, a.Level
	case u.Pool != nil:
		u.Why, u.Level = u.Pool.Why, u.Pool.Level
	}
	u.Samples = append(u.Samples, f.samples[min(max(at.samples-f.droppedSamples, 0), len(f.samples)):]...)
	u.Events = append(u.Events, f.events[min(max(at.events-f.droppedEvents, 0), len(f.events)):]...)
	*at = position{f.droppedSamples + len(f.samples), f.droppedEvents + len(f.events)}
	return u
}

// take records the changes in an answer of the store, and with sampled a sample. q is nil for a pool without quotas.
func (f *feed) take(o *protocol.Overview, q *quotaTable, err error, now time.Time, sampled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.rouse()
	f.stale = false
	if err != nil {
		if f.failure == "" {
			f.note(event{now.UnixMilli(), "store", storeText(err)})
		}
		f.failure = storeText(err)
		return
	}
	if f.failure != "" {
		f.failure = ""
		f.note(event{now.UnixMilli(), "store", "the store answers again"})
	}
	s := newSnapshot(o, now)
	s.Quotas = q
	if f.last != nil {
		f.note(changes(f.last, &s, now)...)
	}
	if f.last = &s; !sampled {
		return
	}
	var before *sample
	if n := len(f.samples); n > 0 {
		before = &f.samples[n-1]
	}
	f.samples = append(f.samples, newSample(&s, before, now))
	if more := len(f.samples) - mostSamples; more > 0 {
		f.samples, f.droppedSamples = append([]sample{}, f.samples[more:]...), f.droppedSamples+more
	}
}

const noRecord = "the store has no record of this pool"

// storeText returns the text to show for an error. Errors of a store contain no secret.
func storeText(err error) string {
	if errors.Is(err, driver.ErrNoPool) {
		return noRecord
	}
	return err.Error()
}

func (f *feed) note(list ...event) {
	f.events = append(f.events, list...)
	if more := len(f.events) - mostEvents; more > 0 {
		f.events, f.droppedEvents = append([]event{}, f.events[more:]...), f.droppedEvents+more
	}
}

// rouse wakes all viewers. f.mu is held.
func (f *feed) rouse() {
	for wake := range f.wake {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// A hub has the feeds of pools. It polls those being viewed. The others it asks now and then, for events.
type hub struct {
	store      driver.Store
	every      time.Duration
	configured func(pool string) throttle.Quotas

	mu    sync.Mutex
	feeds map[string]*feed
}

// The samples of a pool are kept for linger after the last viewer left, so that a reloaded page shows them. Its events stay. At most
// mostFeeds feeds are kept.
const (
	linger    = 2 * time.Minute
	mostFeeds = mostListed + mostStreams
)

// recordEvery is how many polling intervals pass between two looks at a pool that nobody views.
const recordEvery = 10

// record records the events of all pools, as far as the list shows them, until ctx ends.
func (h *hub) record(ctx context.Context) {
	tick := time.NewTicker(recordEvery * h.every)
	defer tick.Stop()
	for {
		h.recordAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *hub) recordAll(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, askTimeout)
	names, err := operate.Pools(within, h.store)
	cancel()
	if err != nil { // a viewer is told
		return
	}
	for _, name := range names[:min(len(names), mostListed)] {
		h.mu.Lock()
		f := h.feed(name)
		h.mu.Unlock()
		if !f.viewed() {
			h.ask(ctx, f, false)
			h.gone(f)
		}
	}
}

func (f *feed) viewed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.wake) > 0
}

// feed returns the feed of a pool, made if need be. h.mu is held.
func (h *hub) feed(pool string) *feed {
	f := h.feeds[pool]
	h.forget(time.Now(), f == nil)
	if f == nil {
		f = &feed{pool: pool, wake: map[chan struct{}]bool{}}
		h.feeds[pool] = f
	}
	return f
}

// look starts viewing a pool. wake receives when there is news, until stop is called.
func (h *hub) look(ctx context.Context, pool string) (f *feed, wake chan struct{}, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f = h.feed(pool)
	wake = make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake[wake] = true
	if f.end == nil {
		ctx, f.end = context.WithCancel(ctx)
		f.stale = f.last != nil
		go h.poll(ctx, f)
	}
	return f, wake, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.wake, wake)
		if f.left = time.Now(); len(f.wake) == 0 && f.end != nil {
			f.end()
			f.end = nil
		}
	}
}

// forget drops the samples of feeds that had no viewer for long, and feeds beyond the most that are kept, to make room for one more if need
// be. h.mu is held.
func (h *hub) forget(now time.Time, more bool) {
	tooMany := len(h.feeds) - mostFeeds
	if more {
		tooMany++
	}
	var idle []*feed
	for _, f := range h.feeds {
		f.mu.Lock()
		if len(f.wake) == 0 {
			idle = append(idle, f)
			if now.Sub(f.left) >= linger {
				f.samples, f.droppedSamples = nil, f.droppedSamples+len(f.samples)
			}
		}
		f.mu.Unlock()
	}
	if tooMany > 0 {
		slices.SortFunc(idle, func(a, b *feed) int { return a.left.Compare(b.left) })
		for _, f := range idle[:min(tooMany, len(idle))] {
			delete(h.feeds, f.pool)
		}
	}
}

// poll polls a pool until it has no viewers, ctx ends, or the store has no record of it.
func (h *hub) poll(ctx context.Context, f *feed) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for h.ask(ctx, f, true); !h.gone(f); h.ask(ctx, f, true) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gone drops the feed of a pool without a record, and reports whether it did. Viewers see that and can reload.
func (h *hub) gone(f *feed) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure != noRecord {
		return false
	}
	if h.feeds[f.pool] == f {
		delete(h.feeds, f.pool)
	}
	return true
}

// askTimeout bounds one request to the store.
const askTimeout = 5 * time.Second

// ask asks the store for a pool, and records the answer; with sampled also as a sample.
func (h *hub) ask(ctx context.Context, f *feed, sampled bool) {
	f.asking.Lock()
	defer f.asking.Unlock()
	within, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	o, err := protocol.LoadOverview(within, h.store, f.pool)
	var q *quotaTable
	if err == nil {
		q = h.quotas(within, f, &o, time.Now())
	}
	if ctx.Err() != nil {
		return // nobody has waited for the answer
	}
	f.take(&o, q, err, time.Now(), sampled)
}

// note adds an event to the feed of a pool, if it has one.
func (h *hub) note(pool string, e event) {
	h.mu.Lock()
	f := h.feeds[pool]
	h.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(e)
}

// hurry polls a pool at once, after a change.
func (h *hub) hurry(ctx context.Context, pool string) {
	h.mu.Lock()
	f := h.feeds[pool]
	h.mu.Unlock()
	if f != nil {
		h.ask(ctx, f, true)
	}
}

// recent returns the newest snapshot of a pool that is being viewed, or nil.
func (h *hub) recent(pool string) *snapshot {
	h.mu.Lock()
	f := h.feeds[pool]
	h.mu.Unlock()
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure != "" || f.stale || len(f.wake) == 0 {
		return nil
	}
	return f.last
}

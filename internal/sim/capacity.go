package sim

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A discipline is how a store of limited capacity treats requests that it can't serve at once.
type discipline uint8

const (
	// disciplineDrop serves requests in turn, and skips those older than their senders' patience, as Redis does with the scripts of package
	// redisstore.
	disciplineDrop discipline = iota
	// disciplineQueue serves all requests in turn, however old.
	disciplineQueue
	// disciplineSwap lets each request read the record and write it back if nobody else has written since. A request that lost retries
	// until its patience is over, as package natsstore does.
	disciplineSwap
)

func (d discipline) String() string { return [...]string{"drop", "queue", "swap"}[d] }

// A capacity is the throughput of a store. The zero value is a store that does everything at once.
type capacity struct {
	discipline discipline
	// service is the time for one request: the work of the store, or the time between a read and a write. A skipped request takes a
	// twentieth.
	service time.Duration
	free    time.Duration // when the store is done with all requests so far
	writes  int           // steps so far
	passed  int           // requests that were not carried out
}

// passedOver divides the service time for a skipped request.
const passedOver = 20

// queue carries out a request when its turn comes.
func (c *capacity) queue(w *world, m *message, serve func()) {
	sent := w.now
	if c.discipline == disciplineSwap {
		c.swap(w, m, sent, serve)
		return
	}
	c.free = max(c.free, w.now)
	if c.discipline == disciplineDrop && m.kind == messageSync && c.free > sent+patienceOf(m) {
		c.free += c.service / passedOver
		c.passed++
		w.release(m)
		return
	}
	c.free += c.service
	w.at(c.free, serve)
}

// swap is one try to read and write the record.
func (c *capacity) swap(w *world, m *message, sent time.Duration, serve func()) {
	seen := c.writes
	joins := m.kind == messageSync && m.req.LastSeq == 0
	w.after(c.service, func() {
		if seen == c.writes && (!joins || !w.store.rec.HoldersWait()) {
			c.writes++
			serve()
			return
		}
		if w.now > sent+patienceOf(m) {
			c.passed++
			w.release(m)
			return
		}
		pause := 3 * c.service
		if joins {
			pause *= 4
		}
		w.after(time.Duration(w.rng.net.Int64N(int64(pause))), func() { c.swap(w, m, sent, serve) })
	})
}

// patienceOf is how long a store tries to carry out a request.
func patienceOf(m *message) time.Duration {
	if m.kind != messageSync {
		return protocol.SyncTimeout(driver.DefaultLease)
	}
	return m.req.Patience(protocol.SyncTimeout(m.req.Lease))
}

package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// pauseDocument is the name of the document that holds the pauses.
const pauseDocument = "pause"

// An order is a pause of the pool that a process has to make.
type order struct {
	by *process
	// least is the earliest true time at which it may end.
	least time.Duration
	// recorded is when it was first on record; never: not yet.
	recorded time.Duration
}

// orders is the checks' view of pauses: by their makers and the record, independently of the processors.
type orders struct {
	active []*order
	// carries maps each version of the document to its orders, and recordedAt to when that version was first on record.
	carries    map[driver.Version][]*order
	recordedAt map[driver.Version]time.Duration
	// step counts the syncs of the store. recordedIn is the first sync whose answer may show a version: many steps may be made at the same
	// time.
	step       uint64
	recordedIn map[driver.Version]uint64
	seen       driver.Version // on record at the last check
	resumed    driver.Version // by which an operator last resumed
}

// A pausedState is the checks' view of one process.
type pausedState struct {
	list []throttle.Paused // received by its Throttle
	// held is the version of the document that its newest request reports. receipt is the version in force according to the request's note.
	held, receipt driver.Version
	// answer is the step of the store that made the answer being taken; 0: none. heard is the newest version in recent news. heardAt is
	// when it came, by the process's clock.
	answer     uint64
	received   driver.Version
	receivedAt time.Duration
}

// pauseSlack bounds how much shorter than ordered a pause may be, besides fast clocks. A logical time that is known late and a pool that
// starts again take a clamp each.
const pauseSlack = 2 * driver.MaxLease / 4

// pausesOf pauses the pool from time to time, for the rest of the run.
func (w *world) pausesOf(mean time.Duration) {
	w.after(exponential(w.rng.pause, mean), func() {
		if w.calm {
			return
		}
		r := w.rng.pause
		if n := len(w.procs); n > 0 {
			d := time.Duration(0)
			if r.IntN(4) > 0 {
				d = logUniform(r, 300*time.Millisecond, time.Minute)
			} else {
				w.after(exponential(r, 20*time.Second), w.resumeAll)
			}
			w.pause(w.procs[r.IntN(n)], d)
		}
		w.pausesOf(mean)
	})
}

// pause lets a process pause the pool for d; 0: until somebody resumes.
func (w *world) pause(p *process, d time.Duration) {
	if p.gone || p.left || p.halted() || p.overslept() || p.justCloned(w.now) {
		return
	}
	local := p.clock.read(w.now)
	o := &order{by: p, recorded: never, least: w.now + time.Hour}
	if d > 0 {
		o.least = w.now + d*million/(million+maxDrift) - pauseSlack
	}
	w.tracef("%s pauses the pool for %v", p, d)
	w.counters.Pauses++
	if driver.Version(p.proc.View(local).Generation) >= w.orders.resumed {
		w.orders.active = append(w.orders.active, o)
	} // else it will learn that its state from before the resume is outdated
	p.proc.Pause(local, d, "", "sim")
	w.touch(p, local)
	w.turn(p)
}

// resumeAll is an operator who ends all pauses, as soon as the store can be reached.
func (w *world) resumeAll() {
	s := &w.store
	if (console{w}).away() || s.rec.Revision == 0 {
		w.after(time.Second, w.resumeAll)
		return
	}
	base := s.version(pauseDocument)
	d := driver.DocumentReport{Name: pauseDocument, Base: base, Version: driver.NextVersion(base, uint16(w.rng.pause.Uint32()))}
	d.Body = fmt.Appendf(nil, `{"pauses":[],"resumed":%d}`, uint64(d.Version))
	if _, _, err := s.rec.Save(&d, s.moment(w)); err != nil {
		return // the pool has enough other documents
	}
	s.written = s.wall(w)
	w.tracef("operator: resumed")
	w.orders.active, w.orders.resumed = nil, d.Version
	w.orders.step++ // which no earlier answer shows
	w.notePause()
}

// version returns the version of a document on record; 0: none.
func (s *store) version(name string) driver.Version {
	i := slices.IndexFunc(s.rec.Documents, func(d driver.Document) bool { return d.Name == name })
	if i < 0 {
		return 0
	}
	return s.rec.Documents[i].Version
}

// notePause records the pauses on record.
func (w *world) notePause() {
	k := &w.orders
	v := w.store.version(pauseDocument)
	if v == k.seen {
		return
	}
	k.seen = v
	w.tracef("the pauses on record have version %d", uint64(v))
	if _, known := k.recordedAt[v]; !known {
		k.recordedAt[v], k.recordedIn[v] = w.now, k.step
	}
	for _, o := range k.carries[v] {
		if o.recorded == never {
			o.recorded = w.now
		}
	}
}

// notePauseSent records the pauses in a request, and pushes its proposals to the others: some of them receive them, sooner or later.
func (w *world) notePauseSent(p *process, req *driver.Request) {
	k := &w.orders
	if p.pauses.receipt = receiptIn(req.Note); p.pauses.receipt > 0 {
		w.counters.Receipts++
	}
	for i := range req.Documents {
		d := &req.Documents[i]
		if d.Name != pauseDocument {
			continue
		}
		if len(d.Body) == 0 {
			p.pauses.held = d.Version
			continue
		}
		p.pauses.held = driver.Version(p.proc.View(p.clock.read(w.now)).Generation)
		if _, made := k.carries[d.Version]; made {
			continue // a repeat
		}
		w.tracef("%s proposes pauses %d from %d: %s", p, uint64(d.Version), uint64(d.Base), d.Body)
		all := slices.Clone(k.carries[p.pauses.held])
		for _, o := range k.active {
			// A restored document holds the orders that its sender had seen in its place.
			seen := d.Base < p.pauses.held && d.Base > resumedIn(d.Body) && slices.Contains(k.carries[d.Base], o)
			if (o.by == p || seen) && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
		k.carries[d.Version] = all
		w.spread(p, d)
	}
}

// spread pushes news.
func (w *world) spread(p *process, d *driver.DocumentReport) {
	news, err := protocol.PauseNotification(p.incarnation, d)
	if err != nil {
		w.violatef(CheckPause, "%s proposes what nobody can read: %v", p, err)
		return
	}
	r, version := w.rng.pause, d.Version
	for _, q := range w.procs {
		if q == p || r.IntN(4) == 0 {
			continue
		}
		delay := exponential(r, 20*time.Millisecond)
		if r.IntN(16) == 0 {
			delay = exponential(r, 20*time.Second)
		}
		w.after(delay, func() { w.hear(q, version, news) })
	}
}

// hear delivers the news of a version to a process.
func (w *world) hear(p *process, version driver.Version, news []byte) {
	if p.gone || p.left || p.halted() {
		return
	}
	local := p.clock.read(w.now)
	if version > p.pauses.received {
		p.pauses.received, p.pauses.receivedAt = version, local
	}
	if err := p.proc.Notify(local, news); err != nil {
		w.violatef(CheckPause, "%s cannot read news: %v", p, err)
	}
	w.touch(p, local)
}

// hold hands the pauses in force to a process's Throttle, as consensus.Member does.
func (w *world) hold(p *process, list []throttle.Paused) {
	if !slices.Equal(list, p.pauses.list) {
		if len(list) == 0 {
			w.tracef("%s is paused no more", p)
		}
		p.pauses.list = list
		p.holder.SetPauses(list)
	}
	if v := p.pauses.receipt; v > 0 && len(list) == 0 {
		// It was news that nobody has recorded yet; or nobody had, as shown by an answer to a request sent a sync timeout after the news
		// came.
		in, known := w.orders.recordedIn[v]
		tried := p.pauses.received == v && p.pauses.answer > 0 && p.sentAt-p.pauses.receivedAt >= protocol.SyncTimeout(p.lease)
		if !known || tried && in > p.pauses.answer {
			p.pauses.receipt, p.pauses.received = 0, 0
		}
	}
}

// checkPaused checks that a process may draw now.
func (w *world) checkPaused(p *process) {
	k := &w.orders
	k.active = slices.DeleteFunc(k.active, func(o *order) bool { return w.now >= o.least })
	for _, o := range k.active {
		received := slices.Contains(k.carries[p.pauses.receipt], o) && w.store.lost < k.recordedAt[p.pauses.receipt] && k.recordedAt[p.pauses.receipt] > 0
		switch {
		case o.by == p:
			w.violatef(CheckPause, "%s draws, and has paused the pool for %v more", p, o.least-w.now)
		case slices.Contains(k.carries[p.pauses.held], o), received:
			w.violatef(CheckPause, "%s draws, and has sent its receipt for a pause of %v more", p, o.least-w.now)
		case o.recorded != never && w.store.lost < o.recorded && w.strict() && w.now > o.recorded+slowest(driver.MaxLease)+watch:
			w.violatef(CheckPause, "%s draws %v after a pause was recorded that lasts for %v more", p, w.now-o.recorded, o.least-w.now)
		}
	}
}

// checkResumed checks, once the pool is whole again and nothing was paused for long, that nobody is paused.
func (w *world) checkResumed() {
	for _, p := range w.procs {
		if list := p.proc.Orders(p.clock.read(w.now), 0, epoch).Pauses; len(list) > 0 {
			w.violatef(CheckRecovery, "%s is still paused: %v", p, list)
		}
	}
}

// receiptIn reads the receipt of a note; 0: there is none.
func receiptIn(note string) driver.Version {
	_, digits, ok := strings.Cut(note, " p:")
	if !ok {
		return 0
	}
	v, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0
	}
	return driver.Version(v)
}

// resumedIn reads the version of the last resume from a document; 0: none.
func resumedIn(body []byte) driver.Version {
	var n struct {
		Resumed driver.Version `json:"resumed"`
	}
	if err := json.Unmarshal(body, &n); err != nil {
		return 0
	}
	return n.Resumed
}

// Float64 returns random numbers for a process's Throttle.
func (m machine) Float64() float64 { return m.w.rng.pause.Float64() }

// drawPauses draws whether a run has pauses. There are none with a store whose clock is set by hours: a pool that sleeps takes that for
// time.
func (p *plan) drawPauses(r *rand.Rand) {
	if r.IntN(4) > 0 || p.faults[FaultStep] {
		return
	}
	p.pauses = logUniform(r, 5*time.Second, 2*time.Minute)
}

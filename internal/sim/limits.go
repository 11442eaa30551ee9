package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// limitDocument is the name of the document that overrides the limit.
const limitDocument = "limit"

// A quota is a limit in force from a moment on, in tokens per second.
type quota struct {
	from time.Duration
	rate float64
}

// limits is the checks' view of the limits in force: by the record, independently of the processors.
type limits struct {
	quotas  []quota // rising; the last one is on record now
	highest float64 // the highest of all
	burst   float64 // largest burst of any configured limit, in seconds' worth
	lowest  float64 // the lowest start of a ramp; 0: nobody has started
	// The configuration of each incarnation, and the saved overrides by version.
	configured map[string]float64
	saved      map[driver.Version]protocol.Override
	last       driver.Version // the last saved one
	savedAt    time.Duration
	heldAt     map[heldLimit]time.Duration // when a limit unknown to the store was noted last
}

// A heldLimit is an override that the store has lost, and the limit that it sets. An override that clears another sets the configured limit
// of the processors live at that moment.
type heldLimit struct {
	version driver.Version
	rate    float64
}

// noteLimit records the limit in force by the record.
func (w *world) noteLimit() {
	if !w.plan.noted {
		return
	}
	w.note(w.recorded())
}

// noteHeld records the limit of a process that has loaded a newer override than the store has, or than it had when it gave the answer p is
// taking now. The process will restore it.
func (w *world) noteHeld(p *process, lacked bool) {
	if w.plan.noted && (p.loaded > w.onRecord() || lacked) {
		w.noteAlso(p.loaded)
	}
}

// noteTold records the limit of processes that have loaded a newer override than the answer being given. If that override clears another,
// the limit is the configured one of the processors live now.
func (w *world) noteReported(m *message) {
	if loaded := reported(m.req.Documents); w.plan.noted && lacks(&m.ans, loaded) {
		w.noteAlso(loaded)
	}
}

// noteAlso records the limit set by an override that the store has lost, beside the one on record.
func (w *world) noteAlso(version driver.Version) {
	// A noted limit counts for longer than that.
	held := heldLimit{version, w.inForce(version)}
	if at, noted := w.limits.heldAt[held]; noted && w.now-at < w.outdated()/20 {
		return
	}
	w.limits.heldAt[held] = w.now
	w.note(held.rate)
	w.note(w.recorded())
}

// lacks reports whether the answer to a request that reports a version of the override shows an older version in the store, or none.
func lacks(a *driver.Answer, loaded driver.Version) bool {
	return slices.ContainsFunc(a.Documents, func(d driver.Document) bool { return d.Name == limitDocument && d.Version < loaded })
}

func (w *world) note(rate float64) {
	q := w.limits.quotas
	if rate == q[len(q)-1].rate {
		return
	}
	w.tracef("the limit in force is %g per second", rate)
	for keep := w.now - forgetLimits; len(q) > 1 && q[1].from < keep; {
		q = q[1:]
	}
	q = append(q, quota{w.now, rate})
	w.limits.quotas = q
	w.limits.highest = max(w.limits.highest, rate)
}

// recorded returns the limit in force by the record: its override, else the lowest configured limit of a live row. Without a live row it
// stays the same.
func (w *world) recorded() float64 { return w.inForce(w.onRecord()) }

// inForce does so for one version of the override.
func (w *world) inForce(v driver.Version) float64 {
	if o := w.saved(v); o.Max > 0 {
		return w.capHard(float64(o.Max) / o.Per.Seconds())
	}
	lowest := 0.0
	for i := range w.store.rec.Rows {
		row := &w.store.rec.Rows[i]
		if rate := w.limits.configured[row.Incarnation]; row.State == driver.RowLive && (lowest == 0 || rate < lowest) {
			lowest = rate
		}
	}
	if lowest == 0 {
		return w.limits.quotas[len(w.limits.quotas)-1].rate
	}
	return lowest
}

// onRecord returns the version of the override on record; 0: none.
func (w *world) onRecord() driver.Version { return override(&w.store.rec) }

func override(r *driver.Record) driver.Version {
	for i := range r.Documents {
		if r.Documents[i].Name == limitDocument {
			return r.Documents[i].Version
		}
	}
	return 0
}

func (w *world) saved(v driver.Version) protocol.Override { return w.limits.saved[v] }

// outdated bounds how long a limit that is off the record can stay in force: an uninformed processor continues until its lease ends.
func (w *world) outdated() time.Duration {
	return slowest(wire.Removal(w.plan.longestLease()))
}

// forgetLimits is how long limits matter.
const forgetLimits = 2 * time.Minute

// mayUse returns the tokens that the limits in force allow from a moment until now, by the largest limit of the last removal time at each
// instant. It also returns the largest of these limits.
func (w *world) mayUse(from time.Duration) (tokens, largest float64) {
	q := w.limits.quotas
	old := w.outdated()
	if last := q[len(q)-1]; last.from+old <= from {
		return last.rate * (w.now - from).Seconds(), last.rate
	}
	for at := from; at < w.now; {
		rate, until := 0.0, w.now
		for i := range q {
			end := w.now
			if i+1 < len(q) {
				end = q[i+1].from + old
			}
			switch {
			case q[i].from > at:
				until = min(until, q[i].from)
			case i+1 == len(q) || end > at:
				rate, until = max(rate, q[i].rate), min(until, max(end, at+1))
			}
		}
		tokens += rate * (until - at).Seconds()
		largest = max(largest, rate)
		at = until
	}
	return tokens, largest
}

// checkCeiling compares the ceiling of a process with the limits in force.
func (w *world) checkCeiling(p *process) {
	if !w.strict() || p.overslept() || p.justCloned(w.now) {
		return
	}
	const rounding = 1e-9
	rate := p.ceiling / period(p.limit).Seconds()
	least, most := w.limits.highest, 0.0
	q, old := w.limits.quotas, w.outdated()
	for i := range q {
		if i+1 == len(q) || q[i+1].from+old >= w.now {
			least, most = min(least, q[i].rate), max(most, q[i].rate)
		}
	}
	// A ramp continues from its last position, even if that was below Min. A store that fell back to an older copy has an older override
	// until a processor that knows the newer one has asked.
	if r := &w.store.rec; p.limit.Ramps() || r.FrozenBy == driver.FreezeRollback && r.FrozenUntil > r.Clock {
		for i := range q {
			least = min(least, q[i].rate)
		}
	}
	if p.limit.Ramps() {
		least = min(least, w.limits.lowest) // any process that steps the ramp applies its own Min
		if rate < most*(1-rounding) {
			w.counters.Ramping++
		}
	}
	low := rounding
	if p.limit.Ramps() {
		low = 1e-5 // a ramp's position is stored in whole microseconds, rounded down
	}
	if rate > most*(1+rounding) || rate < least*(1-low) {
		w.violatef(CheckCeiling, "%s goes by %.6g per second, the limits in force were %.6g to %.6g (ramp from %d)", p, rate, least, most, p.limit.Min)
	}
}

// reported returns the version of the override that a request reports; 0: none.
func reported(reports []driver.DocumentReport) driver.Version {
	for i := range reports {
		if reports[i].Name == limitDocument {
			return reports[i].Version
		}
	}
	return 0
}

// changesOf changes the limit from time to time, for the rest of the run.
func (w *world) changesOf(mean time.Duration) {
	w.after(exponential(w.rng.more, mean), func() {
		if !w.calm {
			w.changeLimit()
			w.changesOf(mean)
		}
	})
}

// changeLimit changes the limit: an operator sets or clears an override, or a rollout restarts processes one after the other with another
// limit.
func (w *world) changeLimit() {
	if w.plan.limit.Hard {
		w.changeHard()
		return
	}
	r := w.rng.more
	switch r.IntN(4) {
	case 0:
		w.rollOut()
		return
	case 1:
		w.override(protocol.Override{})
		return
	}
	o := protocol.Override{Max: max(1, int(float64(w.plan.limit.Max)*(0.1+1.9*r.Float64())))}
	if r.IntN(2) == 0 {
		o.Per = period(w.plan.limit)
	}
	w.override(o)
}

// rollOut sets another limit for every process that starts from now on, and restarts half of them.
func (w *world) rollOut() {
	r := w.rng.more
	l := w.plan.limit
	l.Max = max(1, int(float64(l.Max)*(0.3+1.4*r.Float64())))
	if l.Burst > 0 {
		l.Burst = max(1, w.plan.limit.Burst*l.Max/w.plan.limit.Max)
	}
	l.Min = min(l.Min, l.Max)
	w.meet(FaultLimit, nil)
	w.tracef("a rollout of %d per %v", l.Max, period(l))
	w.limit = l
	w.limits.burst = max(w.limits.burst, burst(l)/perSecond(l))
	for _, p := range w.procs {
		if p.left || r.IntN(2) == 0 {
			continue
		}
		w.after(exponential(r, 10*time.Second), func() {
			if !p.gone && !p.left && !w.calm {
				w.kill(p)
				w.join(p.id)
			}
		})
	}
}

// override is an operator who saves an override, unless the store is unreachable.
func (w *world) override(o protocol.Override) {
	before := w.onRecord()
	err := protocol.SaveOverride(context.Background(), console{w}, "pool", o)
	w.tracef("operator: override %d per %v: %v", o.Max, o.Per, err)
	if request := (*driver.RequestError)(nil); errors.As(err, &request) {
		w.counters.Refused++ // no live processor reports a limit, or the override is beyond it
	}
	if w.onRecord() != before {
		w.meet(FaultLimit, nil)
		w.noteLimit()
	}
}

// A console is the store as an operator's program sees it: without network delays, but unreachable as often as for a processor.
type console struct{ w *world }

var errAway = errors.New("the store is away")

func (c console) away() bool { return c.w.store.down || c.w.store.hung || c.w.store.deaf }

// Load implements driver.Store. Now and then somebody else saves before the caller does.
func (c console) Load(context.Context, string) ([]driver.Document, []driver.RosterRow, error) {
	if c.away() {
		return nil, nil, errAway
	}
	docs, roster, err := c.w.store.rec.Load()
	if err == nil && c.w.rng.more.IntN(8) == 0 {
		o := protocol.Override{Max: c.w.plan.limit.Max, Per: period(c.w.plan.limit)}
		if c.w.plan.limit.Hard {
			o.Max *= 2 // by a program that ignores the configuration of the processors
		}
		body := fmt.Sprintf(`{"max":%d,"per":%q}`, o.Max, o.Per)
		_, _ = c.put(driver.DocumentReport{Name: limitDocument, Base: c.w.onRecord(), Body: []byte(body)}, o)
	}
	return docs, roster, err
}

// Save implements driver.Store.
func (c console) Save(_ context.Context, _ string, d driver.DocumentReport) (driver.Version, error) {
	if c.away() {
		return 0, errAway
	}
	var o protocol.Override
	var per string
	if _, err := fmt.Sscanf(string(d.Body), `{"max":%d,"per":%q}`, &o.Max, &per); err == nil {
		o.Per, _ = time.ParseDuration(per)
	}
	if o.Per == 0 {
		o.Per = period(c.w.plan.limit) // no processor was there to report it
	}
	return c.put(d, o)
}

// put saves a document under a version drawn from the seed.
func (c console) put(d driver.DocumentReport, o protocol.Override) (driver.Version, error) {
	w, s := c.w, &c.w.store
	d.Version = driver.NextVersion(d.Base, uint16(w.rng.more.Uint32()))
	before := w.onRecord()
	v, changed, err := s.rec.Save(&d, s.moment(w))
	if err != nil {
		return v, err
	}
	if d.Base != before {
		w.violatef(CheckDocument, "a change made from version %d of the override was taken in place of %d", d.Base, before)
	}
	if changed {
		s.written = s.wall(w)
		w.limits.saved[d.Version] = o
		w.limits.last, w.limits.savedAt = d.Version, w.now
	}
	return v, nil
}

// Sync implements driver.Store. No operator's program syncs.
func (console) Sync(context.Context, driver.Request) (driver.Answer, error) {
	return driver.Answer{}, errAway
}

// Leave implements driver.Store.
func (console) Leave(context.Context, driver.Leave) error { return errAway }

// Reserve implements driver.Store.
func (console) Reserve(context.Context, driver.Reserve) (driver.Reserved, error) {
	return driver.Reserved{}, errAway
}

// Close implements driver.Store.
func (console) Close() error { return nil }

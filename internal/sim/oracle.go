package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Check is a kind of check.
type Check uint8

// The checks.
const (
	CheckSum          Check = iota // shares in use add up to at most the whole
	CheckClaim                     // a share in use is at most its claim on the record
	CheckRecord                    // the record is well formed, and no answer lifts it above the whole
	CheckAnswer                    // the processor accepts every answer of the store
	CheckWindow                    // calls in any window are within the bound
	CheckRecovery                  // the pool recovers once the faults are off
	CheckCeiling                   // a processor applies a limit that is in force
	CheckPermit                    // permits are a spacing apart, and none is too far ahead
	CheckWhole                     // shares and permits add up to at most the whole
	CheckDocument                  // the version of a document does not fall
	CheckPause                     // no paused process draws
	CheckTagTotal                  // the use of a tag in any window is within its total
	CheckTagBudget                 // the use of a tag in a budget window is within its budget
	CheckSlots                     // no more calls are in flight than slots
	CheckSlotTotal                 // no more calls of a tag are in flight than its total
	CheckSlotReserved              // a slot that becomes free is for a tag below its reservation first
	CheckSlotFair                  // what nobody reserved is divided by weight and class
	CheckSlotIdle                  // no slot is free for long while somebody who may have it waits
)

// String returns the check's name.
func (c Check) String() string {
	return [...]string{
		"sum of shares", "share above claim", "record", "answer refused", "calls in a window", "no recovery",
		"ceiling", "permits", "shares and permits", "documents", "pause", "total of a tag", "budget of a tag",
		"calls in flight", "calls in flight of a tag", "reserved slots", "division of slots", "idle slots",
	}[c]
}

// Promise returns the promise that the check verifies, as docs/reliability.md numbers them.
func (c Check) Promise() string {
	switch c {
	case CheckWindow:
		return "R4"
	case CheckRecovery:
		return "R5"
	case CheckCeiling, CheckPause:
		return "R4"
	case CheckPermit:
		return "R10"
	default:
		return "R1"
	}
}

func (w *world) violatef(kind Check, format string, args ...any) {
	if w.violation != nil {
		return
	}
	w.violation = &Violation{At: w.now, Kind: kind, Text: fmt.Sprintf(format, args...)}
	w.tracef("VIOLATION %s: %s", kind, w.violation.Text)
}

// strict reports whether the bound is promised without exception.
func (w *world) strict() bool { return w.plan.loss == protocol.Stop }

// touch records the share in force. A process's share only grows by its own actions. So the value recorded here shows what the process may
// use until the lease ends, without querying its processor.
func (w *world) touch(p *process, local time.Duration) {
	before := p.held
	o := p.proc.Orders(local, ahead, epoch)
	p.held, p.until = p.proc.Held(local), p.proc.Until()
	w.noteAlone(p, local, before)
	w.hold(p, o.Pauses)
	if max(before, p.held) > 0 {
		p.drawer.heldAt = w.now
	}
	switch {
	case w.plan.slots != nil:
		p.obeySlots(&o)
	case w.plan.noted:
		w.apply(p, local, &o.Lease)
	default:
		w.tell(p)
	}
	w.takeTags(p, o.Grants)
}

// usable returns the share that the process may use now. A stopped process counts as drawing.
func (w *world) usable(p *process) driver.Share {
	if p.held == 0 || p.suspended || p.overslept() {
		return 0
	}
	local := p.clock.read(w.now)
	if local < p.until {
		return p.held
	}
	// Its lease is over, but it has not looked yet: ask a copy for its share.
	look := *p.proc
	return look.Held(local)
}

// checkSum adds up the usable shares of all processes.
func (w *world) checkSum() {
	var sum, granted driver.Share
	for i, p := range w.procs {
		use := w.usable(p)
		if use > 0 && p.justCloned(w.now) {
			use = w.excuse(p, i, use)
		}
		sum += use
		if use > 0 && !w.alone(p) {
			granted += use
		}
	}
	if sum > w.counters.Peak && w.promised() {
		w.counters.Peak = sum
	}
	switch {
	case sum > driver.Whole && w.promised():
		w.violatef(CheckSum, "%v in use: %s", sum, w.shares())
	case granted > driver.Whole && w.now > w.store.lost+slowest(wire.Removal(driver.MaxLease)):
		w.violatef(CheckSum, "%v in use with the store's consent: %s", granted, w.shares())
	}
	w.checkWhole(sum)
}

// excuse returns how much of the share of a process, at index i, counts if it is part of a cloning in the last lease. All parts together
// count as much as one of them. They count at most the claim of their incarnation on record, or when that record was lost, because one part
// may lower it while another still uses it.
func (w *world) excuse(p *process, i int, use driver.Share) driver.Share {
	claim, _ := w.claim(p.incarnation)
	use = min(use, claim, p.promised)
	for k, q := range w.procs {
		if k == i || q.incarnation != p.incarnation || !q.justCloned(w.now) {
			continue
		}
		other := w.usable(q)
		switch {
		case w.store.lost < min(p.grounded, q.grounded) && k < i:
			use -= min(use, other)
		case w.store.lost < min(p.grounded, q.grounded):
		case k < i:
			return 0
		default:
			use = min(use, other) // the claim that counted is lost: it may be the claim of either
		}
	}
	return use
}

// forgetClones notes that the store loses its record. It loses what one part of a cloning reported, and cannot tell the parts apart until
// they come again, for a lease.
func (w *world) forgetClones() {
	for _, p := range w.procs {
		if claim, ok := w.claim(p.incarnation); ok && p.justCloned(w.now) {
			p.promised = min(p.promised, claim)
			p.cloned = w.now + slowest(max(p.lease, w.store.rec.Lease))
		}
	}
}

// justCloned reports whether the process is part of a cloning that may be undetected yet; see the package documentation.
func (p *process) justCloned(now time.Duration) bool {
	return now < p.cloned && p.incarnation == p.clonedAs
}

// claim returns the claim of an incarnation on record, and whether it has a row.
func (w *world) claim(incarnation string) (claim driver.Share, ok bool) {
	rows := w.store.rec.Rows
	for i := range rows {
		if rows[i].Incarnation == incarnation {
			return rows[i].Claim, true
		}
	}
	return 0, false
}

// shares lists the usable shares of the processes, for messages.
func (w *world) shares() string {
	var b strings.Builder
	for _, p := range w.procs {
		if use := w.usable(p); use > 0 {
			fmt.Fprintf(&b, "%s %v (%v left), ", p, use, p.until-p.clock.read(w.now))
		}
	}
	fmt.Fprintf(&b, "on record %v", w.store.rec.Claims())
	return b.String()
}

// checkClaim compares a process's share with the claim on the record.
func (w *world) checkClaim(p *process) {
	if !w.promised() || w.store.lost >= p.grounded || p.justCloned(w.now) {
		return
	}
	use := w.usable(p)
	if use == 0 {
		return
	}
	if claim, ok := w.claim(p.incarnation); use > claim {
		w.violatef(CheckClaim, "%s uses %v and has %v on record (row there: %v); %s", p, use, claim, ok, w.shares())
	}
}

// A recordOutline is compared with the record after a step.
type recordOutline struct {
	rows               int
	revision           uint64
	clock, frozenUntil int64
	claims             driver.Share
	override           driver.Version
}

func outline(r *driver.Record) recordOutline {
	o := recordOutline{rows: len(r.Rows), revision: r.Revision, clock: r.Clock, frozenUntil: r.FrozenUntil, claims: r.Claims()}
	o.override = override(r)
	return o
}

// checkStep checks the record after a step of the store. req is nil for a leave.
func (w *world) checkStep(req *driver.Request, before recordOutline) {
	r := &w.store.rec
	if r.Revision < before.revision || r.Clock < before.clock || r.FrozenUntil < before.frozenUntil {
		w.violatef(CheckRecord, "revision, clock or freeze went back: %+v, now %d, %d, %d", before, r.Revision, r.Clock, r.FrozenUntil)
	}
	if v := override(r); v < before.override {
		w.violatef(CheckDocument, "the override on record was of version %d, and is of %d", before.override, v)
	}
	if after := r.Claims(); after > driver.Whole && after > before.claims {
		w.checkRise(req, after)
	}
	whole := len(r.Rows) != before.rows || req == nil || len(req.Dead) > 0 || w.counters.Events%64 == 0
	if whole {
		w.checkRows()
	}
	for _, p := range w.procs {
		if whole || req != nil && p.incarnation == req.Incarnation {
			w.checkClaim(p)
		}
	}
}

// checkRise checks that claims rise above the whole only by facts, never by an answer.
func (w *world) checkRise(req *driver.Request, after driver.Share) {
	if w.store.lost == never {
		w.counters.Ghosts++
	}
	for i := range w.store.rec.Rows {
		row := &w.store.rec.Rows[i]
		if req == nil || row.Incarnation != req.Incarnation {
			continue
		}
		if row.Answered > row.InUse {
			w.violatef(CheckRecord, "an answer of %v for %v in use lifts the claims to %v", row.Answered, row.InUse, after)
		}
	}
}

// checkRows checks the order of rows, claims, and that an ID has at most one live row.
func (w *world) checkRows() {
	rows := w.store.rec.Rows
	live := ""
	for i := range rows {
		row := &rows[i]
		if i > 0 && (rows[i-1].ID > row.ID || rows[i-1].ID == row.ID && rows[i-1].Incarnation >= row.Incarnation) {
			w.violatef(CheckRecord, "rows %v and %v are out of order", rows[i-1].RowKey, row.RowKey)
		}
		if row.State == driver.RowLive {
			if row.ID == live {
				w.violatef(CheckRecord, "two live rows of %s", live)
			}
			live = row.ID
		}
		if row.Claim > driver.Whole || row.InUse < 0 || row.Answered < 0 {
			w.violatef(CheckRecord, "row %v claims %v, in use %v, answered %v", row.RowKey, row.Claim, row.InUse, row.Answered)
		}
	}
}

// meet counts a fault and the states in which it happens: those of p, or of any process if p is nil.
func (w *world) meet(f Fault, p *process) {
	w.counters.Faults[f]++
	var met [numMet]bool
	if p != nil {
		w.states(p, &met)
	} else {
		for _, p := range w.procs {
			w.states(p, &met)
		}
	}
	met[MetFrozen] = w.store.rec.FrozenUntil > w.store.rec.Clock
	for m, ok := range met {
		if ok {
			w.counters.FaultMet[f][m]++
		}
	}
}

func (w *world) states(p *process, met *[numMet]bool) {
	use := w.usable(p)
	if use == 0 {
		return
	}
	if left := p.until - p.clock.read(w.now); left < p.lease*2/3 {
		met[MetExpiring] = true
	} else {
		met[MetValid] = true
	}
	if claim, _ := w.claim(p.incarnation); claim > use {
		met[MetLowered] = true
	}
}

package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A slotHolder is an InFlight as its sharer sees it.
type slotHolder struct{ *InFlight }

var _ sharing.Holder = slotHolder{}

// Terms implements Holder.
func (f slotHolder) Terms() sharing.Terms { return sharing.Terms{Slots: f.max, Quotas: f.quotas} }

// Report implements Holder. Slots do not ramp, so there is no usage.
func (f slotHolder) Report(window time.Duration) (r sharing.Report) {
	if f.max == 0 {
		return r
	}
	f.gate.Lock()
	defer f.gate.Unlock()
	r.InUse = sharing.ShareOf(min(f.inUse, f.max), f.max)
	if f.inUse > 0 {
		r.Debt = never // nobody knows when calls end: a claim is kept for ever
	}
	if window > 0 {
		r.Demand = f.demand()
		if r.Waiting = f.queue.Len; r.Demand > 0 {
			r.Throttled = f.whyOneWaits()
			r.Hold.Callers = f.queue.Len
			if f.tags != nil {
				f.tags.explain(&r)
			}
		}
	}
	return r
}

// Lease implements Holder. Once it returns, no slot is granted by the old share.
func (f slotHolder) Lease(l limit.Lease) {
	f.gate.Lock()
	defer f.gate.Unlock()
	l.Share = min(max(l.Share, 0), wholeShare)
	f.lease = l
	f.noteHeld()
	f.serve()
}

// ReportTags implements Holder: slots are no tokens; see ReportSlots.
func (slotHolder) ReportTags(time.Duration) []sharing.TagReport { return nil }

// GrantTags implements Holder.
func (slotHolder) GrantTags([]sharing.TagGrant) {}

// SetPauses implements Holder. Calls under way go on.
func (f slotHolder) SetPauses(list []Paused) { f.gate.SetPauses(list) }

// demand returns the part of the slots that this processor would use if it could: the most in use and waiting since the report before the
// last. It is the whole if TryAcquire was refused since then. So it is never below the slots in use. The lock is held.
func (f *InFlight) demand() int64 {
	wanted := int64(min(max(f.peak, f.before), f.max))
	refused := f.gate.Refused.Load()
	if f.tags != nil {
		refused -= f.tags.turnedAway // no share would have helped
	}
	short := refused > f.refusalsBefore
	f.before, f.peak = f.peak, f.wanted()
	f.refusalsBefore, f.refusals = f.refusals, refused
	if short {
		return wholeShare
	}
	return (wanted*wholeShare + int64(f.max) - 1) / int64(f.max) // rounded up, to be enough
}

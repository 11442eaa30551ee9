package sim

import (
	"context"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A slotSharer is the throttle.Sharer of an InFlight.
type slotSharer struct {
	ration

	w *world
}

// Poke implements throttle.Sharer. The InFlight is locked.
func (s slotSharer) Poke() {
	s.p.poked = true
	s.w.wake(s.p, s.p.clock.read(s.w.now))
}

// equipSlots gives a process its InFlight.
func (w *world) equipSlots(p *process) {
	s := w.plan.slots
	clock := hook.WithClock(slotMachine{machine{w, p}}).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
	in, err := throttle.NewInFlight(s.slots, clock, throttle.WithSharer(slotSharer{ration{p}, w}), throttle.WithQuotas(s.quotas))
	if err != nil {
		panic(err) //nolint:forbidigo // the plan draws only quotas that are good
	}
	p.drawer = drawer{heldAt: never, drew: w.now}
	n := len(s.tags)
	p.flight = flight{
		in: in, wanted: make([]int, n), active: make([]int, n), waits: make([]int, n), waitsSince: slices.Repeat([]time.Duration{never}, n),
		idleSince: slices.Repeat([]time.Duration{never}, n),
	}
	p.demand = 0
	p.proc.Configure(p.holder.Terms())
}

// obeySlots puts a processor's orders in force, as consensus.Member does.
func (p *process) obeySlots(o *protocol.Orders) {
	h := p.holder.(sharing.SlotTagHolder) //nolint:errcheck,forcetypeassert // it is that of an InFlight
	if o.Quotas != nil {
		h.SetQuotas(*o.Quotas)
	}
	if o.SlotGrants != nil {
		h.GrantSlots(o.SlotGrants)
	}
	if o.Lease != p.drawer.lease {
		p.drawer.lease = o.Lease
		h.Lease(o.Lease)
	}
}

// observeSlots returns what an InFlight reports for the next request, as consensus.Member does.
func (w *world) observeSlots(p *process, local time.Duration) protocol.Observation {
	h := p.holder.(sharing.SlotTagHolder) //nolint:errcheck,forcetypeassert // it is that of an InFlight
	p.proc.ReportSlots(local, h.ReportSlots(p.proc.SlotPlace()))
	asked := h.Report(2 * p.proc.Interval())
	p.proc.Yield(local, driver.Share(asked.Demand), nil)
	w.touch(p, local)
	r := h.Report(0)
	return protocol.Observation{
		Demand: driver.Share(asked.Demand), Needs: [2]driver.Share{driver.Share(asked.Needs[0]), driver.Share(asked.Needs[1])},
		InUse: driver.Share(r.InUse), Waiting: asked.Waiting,
	}
}

// A quotaDesk is the store for an operator who changes quotas.
type quotaDesk struct{ console }

// Load implements driver.Store.
func (d quotaDesk) Load(context.Context, string) ([]driver.Document, []driver.RosterRow, error) {
	if d.away() {
		return nil, nil, errAway
	}
	return d.w.store.rec.Load()
}

// Save implements driver.Store. The version comes from the seed.
func (d quotaDesk) Save(_ context.Context, _ string, doc driver.DocumentReport) (driver.Version, error) {
	if d.away() {
		return 0, errAway
	}
	s := &d.w.store
	doc.Version = driver.NextVersion(doc.Base, uint16(d.w.rng.tags.Uint32()))
	v, changed, err := s.rec.Save(&doc, s.moment(d.w))
	if changed {
		s.written = s.wall(d.w)
	}
	return v, err
}

// changeQuota is an operator who changes the quota of a tag, or with nil restores the configured one.
func (w *world) changeQuota(t int, q *limit.Quota) {
	s := w.plan.slots
	err := protocol.SaveQuota(context.Background(), quotaDesk{console{w}}, "pool", s.tags[t].name, q, false)
	now := s.of(t)
	if q != nil {
		now = *q
	}
	w.tracef("operator: %q has a total of %d: %v", s.tags[t].name, now.Total, err)
	if err == nil {
		w.slots.setTotal(w.now, t, now.Total)
		w.counters.SlotChanges++
	}
}

package throttle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairslots"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

var _ sharing.SlotTagHolder = slotHolder{}

// checkQuotas checks the quotas and fills in their defaults.
func (f *InFlight) checkQuotas() error {
	if f.quotas == nil {
		return nil
	}
	if err := f.quotas.ValidateSlots(f.max); err != nil {
		return err
	}
	q := f.quotas.WithDefaults(time.Second)
	f.quotas = &q
	return nil
}

// SetQuotas implements SlotTagHolder.
func (f slotHolder) SetQuotas(q Quotas) {
	if f.tags == nil {
		return
	}
	f.gate.Lock()
	defer f.gate.Unlock()
	f.tags.setQuotas(q)
}

// ReportSlots implements SlotTagHolder.
func (f slotHolder) ReportSlots(turn int64, rank, live int) []sharing.TagSlotReport {
	if f.tags == nil {
		return nil
	}
	f.gate.Lock()
	defer f.gate.Unlock()
	s := f.tags
	var out []sharing.TagSlotReport
	s.giveUp()
	for _, g := range s.tags {
		r := sharing.TagSlotReport{Tag: g.name, Running: int64(g.running), Waiting: int64(g.waiting - g.barred), Under: g.isUnder()}
		r.Demand = int64(max(g.peak, g.before, g.wanted()))
		g.before, g.peak, g.asked = g.peak, g.wanted(), r.Demand
		s.ask(g, &r, turn, rank, live)
		if r.Demand > 0 { // or it has nothing in use either
			out = append(out, r)
		}
	}
	for _, g := range s.former {
		n := int64(g.running)
		out = append(out, sharing.TagSlotReport{Tag: g.name, Running: n, Demand: n, InUse: n, Wanted: n, Under: true})
	}
	slices.SortFunc(out, func(a, b sharing.TagSlotReport) int { return cmp.Compare(a.Tag, b.Tag) })
	s.refit()
	return out
}

// giveUp gives up slots that were granted and are not used, if more tags want some than a request names: so they take turns.
func (s *slotTags) giveUp() {
	n := 0
	for _, g := range s.tags {
		if g.bound() && max(g.peak, g.before, g.wanted()) > 0 {
			n++
		}
	}
	if n <= wire.MaxTagSlots {
		return
	}
	for _, g := range s.tags {
		g.granted = min(g.granted, int64(max(g.running, g.quota.Reserved)))
	}
}

// ask asks for slots of the tag's total, and lowers the grant to the number reported. A tag without a total needs no grant.
func (s *slotTags) ask(g *slotTag, r *sharing.TagSlotReport, turn int64, rank, live int) {
	if !g.bound() {
		if g.granted = 0; g.quota.Blocked && !g.quota.Shadow { // they count when it gets a total again
			r.InUse, r.Wanted = r.Running, r.Running
		}
		return
	}
	r.Total = int64(g.quota.Total)
	r.Wanted = fairslots.Asking{
		Here: r.Demand, Elsewhere: g.grant.Demand, Total: r.Total, Reserved: int64(g.grant.Reserved), ReservedElsewhere: int64(g.grant.ReservedElsewhere),
		Spare: g.free > 1, Turn: turn, Rank: rank, Processors: live,
	}.Ask()
	g.granted = min(g.granted, r.Wanted)
	r.InUse = max(r.Running, g.granted)
}

// GrantSlots implements SlotTagHolder.
func (f slotHolder) GrantSlots(grants []sharing.TagSlotGrant) {
	if f.tags == nil {
		return
	}
	f.gate.Lock()
	defer f.gate.Unlock()
	for i := range grants {
		g := f.tags.tags[grants[i].Tag]
		if g == nil {
			continue
		}
		if g.grant = grants[i]; g.grant.Bound {
			g.granted = g.grant.Granted
			if g.free++; g.granted+g.grant.Claimed >= int64(g.quota.Total) {
				g.free = 0
			}
		}
	}
	f.tags.refit()
}

// allowed returns how many slots callers wait for that their tags may have, if the pool grants them.
func (s *slotTags) allowed() (sum int) {
	for g := range s.waiting {
		n := g.waiting - g.barred
		if g.bound() {
			n = min(n, max(g.quota.Total-g.running, 0))
		}
		if g.quota.Blocked && !g.quota.Shadow || g.isUnder() {
			n = 0
		}
		sum += n
	}
	return sum
}

// holding returns the tag that holds most callers back, if all that wait lack slots of their tags; else nil.
func (s *slotTags) holding() (most *slotTag) {
	if s.f.queue.First != nil {
		return nil
	}
	for g := range s.waiting {
		if most == nil || g.waiting > most.waiting || g.waiting == most.waiting && g.name < most.name {
			most = g
		}
	}
	return most
}

// explain says in a report which tag holds most callers back, if tags do.
func (s *slotTags) explain(r *sharing.Report) {
	most := s.holding()
	if most == nil {
		return
	}
	r.Throttled, r.OfTag, r.Tag = ReasonQuota, true, most.name
	r.Hold.Tags = len(s.waiting)
	r.Hold.Blocked, r.Hold.Rate = most.quota.Blocked, float64(most.quota.Total)
}

// A SlotTagStatus is the state of one tag of an InFlight at one moment. Slots are those of this processor.
type SlotTagStatus struct {
	// Tag is empty for all tags without a quota of their own.
	Tag string
	// Quota is that in force.
	Quota Quota
	// InUse is how many slots its calls hold, Allowed how many they may here; below 0: there is no bound. Reserved is how many are reserved here.
	InUse, Allowed int
	Reserved       float64
	// Waiting is how many slots its callers wait for.
	Waiting int
	// Granted and Refused count slots since the tag came into use.
	Granted, Refused int64
	// Longest is how long the oldest of its calls has been in flight, of those for which it is the first tag; 0: there is none.
	Longest time.Duration
}

// status returns the state of the tags in use.
func (s *slotTags) status() (out []SlotTagStatus) {
	now := s.f.gate.Now()
	for _, name := range slices.Sorted(maps.Keys(s.tags)) {
		g := s.tags[name]
		st := SlotTagStatus{
			Tag: name, Quota: g.quota, InUse: g.running, Allowed: -1, Reserved: s.reserved(g), Waiting: g.waiting, Granted: g.calls, Refused: g.refused,
		}
		if room := s.room(g); room < unbound {
			st.Allowed = room + g.running
		}
		if g.first != nil {
			st.Longest = time.Duration(now - g.first.since)
		}
		out = append(out, st)
	}
	return out
}

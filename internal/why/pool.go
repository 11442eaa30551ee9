package why

import (
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// Pool returns the state of a pool as its record shows it to an observer.
func Pool(o *protocol.Overview, now time.Time) State {
	s := State{
		Pool: o.Pool, Now: now, Slots: o.Slots, Lowered: o.Lowered, Pauses: o.Pauses, Unreadable: o.Unreadable, Frozen: o.Frozen, FrozenBy: o.FrozenBy,
		Unknown: o.Max == 0 && o.Slots == 0, // the note of another release, or of a pod without a limit
	}
	if o.Max > 0 {
		s.Slots = 0
		if s.Limit = LimitText(o.Max, o.Per); o.Per > 0 {
			s.PerSecond = float64(o.Max) / o.Per.Seconds()
		}
		if part := grantedPart(o); part < 1 {
			s.Limit += " (hard: " + rate(o.Granted) + " in the long run)"
		}
	}
	if o.Ramp > 0 && o.RampPer > 0 {
		s.Ramp = o.Ramp / o.RampPer.Seconds()
	}
	s.Followed, s.Awaited = o.Announced.Followed, o.Announced.Awaited
	if a := o.Announced; a.Max > 0 && o.Max > 0 {
		if float64(a.Max)/a.Per.Seconds() < s.PerSecond*(1-1e-6) {
			s.Announced = LimitText(a.Max, a.Per)
		}
	}
	if o.Override.Max > 0 {
		s.Override = &Order{o.Override.By, o.Override.Until}
	}
	changes, _ := o.QuotaChanges() // else they are unreadable
	s.Quotas = orders(&changes)
	for i := range o.Settings {
		s.Disagree = s.Disagree || o.Settings[i].Max != o.Settings[0].Max || o.Settings[i].Per != o.Settings[0].Per
	}
	s.Files = filesOf(o)
	s.Disagree = s.Disagree && !s.Files.Limit
	s.Differing = s.Files.withoutFile(protocol.Differing(o.Settings))
	for i := range o.Processors {
		switch row := &o.Processors[i]; {
		case row.Gone():
			if s.Gone == 0 || row.Silent < s.Gone {
				s.Gone = row.Silent
			}
		case row.Overdue:
			s.Silent = append(s.Silent, SilentPod{row.ID, row.Claim.Fraction(), row.Silent, row.Left})
		default:
			s.Pods = append(s.Pods, pod(o, row))
		}
	}
	return s
}

// orders returns the orders of changed quotas.
func orders(c *protocol.QuotaChanges) map[string]Order {
	list := map[string]Order{}
	for tag := range c.Tags {
		list[tag] = Order{c.Orders[tag].By, c.Orders[tag].Until}
	}
	if c.Other != nil {
		list[protocol.TagOthers] = Order{c.Orders[""].By, c.Orders[""].Until}
	}
	return list
}

// grantedPart is the part of the limit in force that it can grant in the long run: 1, or less for a hard limit.
func grantedPart(o *protocol.Overview) float64 {
	if o.Granted <= 0 || o.Per <= 0 {
		return 1
	}
	return min(o.Granted*o.Per.Seconds()/float64(o.Max), 1)
}

func pod(o *protocol.Overview, row *protocol.OverviewRow) Pod {
	p := Pod{
		ID: row.ID, Share: row.Claim.Fraction(), Used: PartOf(o, row) / grantedPart(o), Waiting: row.Waiting,
		Reason: row.Throttled, Tag: row.Tag, Pattern: row.Pattern, Hold: row.Hold,
	}
	if p.Hold.Left > 0 {
		p.Hold.Left = max(p.Hold.Left-row.Silent, 0)
	}
	return p
}

// PartOf returns the fraction of the limit in force that a pod uses; 0 for a silent one. The pod reports its use of its configured limit.
func PartOf(o *protocol.Overview, row *protocol.OverviewRow) float64 {
	switch {
	case row.Overdue:
		return 0
	case row.Max > 0 && o.Max > 0 && o.Per > 0:
		return row.Used * float64(row.Max) / row.Per.Seconds() / (float64(o.Max) / o.Per.Seconds())
	case row.Slots > 0 && o.Slots > 0:
		return row.Used * float64(row.Slots) / float64(o.Slots)
	}
	return row.Used
}

// LimitText formats a limit: 400/s, or 600 per 1m. A period of 0 is unknown.
func LimitText(tokens int, per time.Duration) string {
	if per == 0 {
		return fmt.Sprintf("%d per configured period", tokens)
	}
	if per == time.Second {
		return fmt.Sprintf("%d/s", tokens)
	}
	return fmt.Sprintf("%d per %s", tokens, duration.Short(per))
}

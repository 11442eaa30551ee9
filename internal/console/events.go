package console

import (
	"cmp"
	"fmt"
	"time"
)

// An event is a change that an operator may want to see.
type event struct {
	At   int64  `json:"at"`
	Kind string `json:"kind"` // "join", "leave", "pause", "limit", "freeze", "quota", "settings" or "store"
	Text string `json:"text"`
}

// changes returns the events between two snapshots of a pool, was and is.
func changes(was, is *snapshot, now time.Time) (list []event) {
	add := func(kind, format string, args ...any) {
		list = append(list, event{now.UnixMilli(), kind, fmt.Sprintf(format, args...)})
	}
	before, after := byID(was), byID(is)
	for _, p := range is.Processors {
		switch old := before[p.ID]; {
		case old == nil:
			add("join", "%s joined", p.ID)
		case p.Overdue && !old.Overdue:
			add("leave", "%s is silent: it hangs, was killed, or cannot reach the store", p.ID)
		case old.Overdue && !p.Overdue:
			add("join", "%s is back", p.ID)
		}
	}
	for _, p := range was.Processors {
		switch {
		case after[p.ID] != nil:
		case p.Overdue:
			add("leave", "%s was removed: it was silent, and has not left", p.ID)
		default:
			add("leave", "%s left", p.ID)
		}
	}
	list = append(list, pauseChanges(was, is, now)...)
	list = append(list, quotaChanges(was.Quotas, is.Quotas, now)...)
	return append(list, limitChanges(was, is, now)...)
}

// pauseChanges returns the events of pauses.
func pauseChanges(was, is *snapshot, now time.Time) (list []event) {
	add := func(format string, args ...any) {
		list = append(list, event{now.UnixMilli(), "pause", fmt.Sprintf(format, args...)})
	}
	for _, p := range is.Pauses {
		if old, ok := pauseOf(was, p.Tag); !ok {
			add("paused: %s", p.text())
		} else if old != p {
			add("the pause was changed: %s", p.text())
		}
	}
	for _, p := range was.Pauses {
		if _, ok := pauseOf(is, p.Tag); !ok {
			add("no longer paused: %s", p.What)
		}
	}
	return list
}

// quotaChanges returns the events of quotas that changed at run time.
func quotaChanges(was, is *quotaTable, now time.Time) (list []event) {
	if was == nil || is == nil {
		return nil // no processor has quotas, or the changes are not known yet
	}
	add := func(format string, args ...any) {
		list = append(list, event{now.UnixMilli(), "quota", fmt.Sprintf(format, args...)})
	}
	before, after := was.changed(), is.changed()
	for i := range is.Tags {
		r := &is.Tags[i]
		if old := before[r.ID]; r.Changed && (old == nil || *old.Quota != *r.Quota || *old.Order != *r.Order) {
			add("the quota of %s was changed: %s", r.text(), r.Order.text())
		}
	}
	for i := range was.Tags {
		if r := &was.Tags[i]; r.Changed && after[r.ID] == nil {
			add("the quota of %s is as configured again", r.text())
		}
	}
	return list
}

// changed returns the changed rows by their IDs.
func (t *quotaTable) changed() map[string]*tagRow {
	rows := map[string]*tagRow{}
	for i := range t.Tags {
		if t.Tags[i].Changed {
			rows[t.Tags[i].ID] = &t.Tags[i]
		}
	}
	return rows
}

// text names the tag of a row with a quota.
func (r *tagRow) text() string {
	if r.ID == idOther {
		return "all other tags"
	}
	return "tag " + r.Name
}

// text describes a quota.
func (q *quotaInForce) text() string {
	text := fmt.Sprintf("%s reserved, rate cap %s, weight %d, %s",
		cmp.Or(q.ReservedText, "nothing"), cmp.Or(q.TotalText, "none"), q.Weight, q.Class)
	if q.Shadow {
		text += ", shadow"
	}
	return text
}

// limitChanges returns the events of the limit, of freezes and of settings.
func limitChanges(was, is *snapshot, now time.Time) (list []event) {
	add := func(kind, format string, args ...any) {
		list = append(list, event{now.UnixMilli(), kind, fmt.Sprintf(format, args...)})
	}
	switch {
	case is.Override != nil && (was.Override == nil || *was.Override != *is.Override):
		add("limit", "override: %s", is.Override.text())
	case is.Override == nil && was.Override != nil:
		add("limit", "the override is over; the limit is %s", is.Limit)
	case is.Limit != was.Limit:
		add("limit", "the limit is %s, it was %s", is.Limit, was.Limit)
	}
	switch {
	case is.Frozen > 0 && was.Frozen == 0:
		add("freeze", "frozen: no share grows: %s", is.FrozenBy)
	case is.Frozen == 0 && was.Frozen > 0:
		add("freeze", "no longer frozen")
	}
	switch {
	case is.Disagree != was.Disagree && is.Disagree != "":
		add("settings", "settings disagree: %s", is.Disagree)
	case is.Disagree != was.Disagree:
		add("settings", "all pods have the same settings again")
	}
	return list
}

func byID(s *snapshot) map[string]*processor {
	pods := map[string]*processor{}
	for i := range s.Processors {
		pods[s.Processors[i].ID] = &s.Processors[i]
	}
	return pods
}

func pauseOf(s *snapshot, tag string) (order, bool) {
	for _, p := range s.Pauses {
		if p.Tag == tag {
			return p, true
		}
	}
	return order{}, false
}

// text describes an order: its effect, its end, who gave it and why.
func (o *order) text() string {
	text := o.What
	if o.Until > 0 {
		text += " until " + time.UnixMilli(o.Until).UTC().Format("15:04:05 MST")
	}
	if o.By != "" {
		text += " by " + o.By
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// Package poolview holds the words in which the CLI and the console show a pool, and the trial of a store that they offer.
package poolview

import (
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Word returns a reason, or what limits a tag, as columns show it: the rate cap of a tag goes by one word.
func Word(by string) string {
	if by == fairtags.ByTotal || by == string(throttle.ReasonQuota) {
		return "rate_cap"
	}
	return by
}

// The names of an override and of the pauses among Overview.Unreadable.
const (
	LimitDocument = "limit"
	PauseDocument = "pause"
)

// PausesAt filters pauses: it keeps those in force at now.
func PausesAt(all []throttle.Paused, now time.Time) (list []throttle.Paused) {
	for _, p := range all {
		if p.Until.IsZero() || p.Until.After(now) {
			list = append(list, p)
		}
	}
	return list
}

// LimitText is the limit in force in words, such as "300 per 1m" or "30 calls in flight"; empty: no pod reports one.
func LimitText(o *protocol.Overview) string {
	switch set := (protocol.Setting{Max: o.Max, Per: o.Per}); {
	case o.Max > 0 && o.Per == 0: // no pod reports a period
		return fmt.Sprintf("%d per configured period", o.Max)
	case o.Max > 0:
		return set.String()
	case o.Slots > 0:
		return (&protocol.Setting{Slots: o.Slots}).String()
	}
	return ""
}

// Configured is the configured limit of a pod in words, such as "600 per 1m, hard"; "unknown" if this release cannot read it.
func Configured(row *protocol.OverviewRow) string {
	if row.Max == 0 && row.Slots == 0 {
		return "unknown"
	}
	return (&protocol.Setting{Max: row.Max, Per: row.Per, Hard: row.Hard, Slots: row.Slots}).String()
}

// Use returns the used part of the limit in force, 1 for all of it, and the number of waiting callers. Silent pods use nothing.
func Use(o *protocol.Overview) (part float64, waiting int) {
	for i := range o.Processors {
		if row := &o.Processors[i]; !row.Overdue {
			part, waiting = part+UseOf(o, row), waiting+row.Waiting
		}
	}
	return part, waiting
}

// UseOf returns the part of the limit in force that one pod uses; 0 for a silent one.
func UseOf(o *protocol.Overview, row *protocol.OverviewRow) float64 { return why.PartOf(o, row) }

package cli

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A status is the --json output for a pool. Shares and demand are fractions of the limit. Durations have the form 1m or 1.5s.
type status struct {
	Pool     string        `json:"pool"`
	Limit    *rate         `json:"limit"`    // in force; null: no pod reports one
	Override *overrideRate `json:"override"` // null: none
	// File is the changed settings file that counts for all pods, as NAME@HASH; left out: none has changed.
	File string `json:"file,omitempty"`
	// Announced is the limit that the called service announces, as the pods agree; left out: none.
	Announced *announced `json:"announced,omitempty"`
	Ramp      *standing  `json:"ramp"` // null: none
	// Use is the used fraction of the limit in force. Waiting counts the waiting callers. Both leave out silent pods.
	Use     float64 `json:"use"`
	Waiting int     `json:"waiting"`
	// Why says what limits callers, as the command why does, and Cause is that in a word.
	Why        string     `json:"why"`
	Cause      string     `json:"cause"`
	Level      string     `json:"level"`
	Paused     []pause    `json:"paused"`
	Frozen     *freeze    `json:"frozen"`              // null: not frozen
	Settings   []setting  `json:"settings"`            // more than one: they disagree
	Differing  []string   `json:"differing,omitempty"` // the names of settings that disagree and are not shown there
	Agreed     bool       `json:"agreed"`
	PoolSize   int        `json:"poolSize"`
	Pods       []pod      `json:"pods"`
	Documents  []document `json:"documents"`
	Unreadable []string   `json:"unreadable"` // documents of a later version, and damaged ones
}

// A rate is a limit: Max per Per, or Max calls in flight at once.
type rate struct {
	Max      int    `json:"max"`
	Per      string `json:"per,omitempty"`
	Hard     bool   `json:"hard,omitempty"`
	InFlight bool   `json:"inFlight,omitempty"`
}

// An announced is a limit that the called service announces. Followed says that it is the limit in force.
type announced struct {
	rate
	Followed bool `json:"followed,omitempty"`
}

type overrideRate struct {
	rate
	Until  string `json:"until,omitempty"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

type pause struct {
	Tag    string `json:"tag,omitempty"`
	Until  string `json:"until,omitempty"` // without: until it is cleared
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

type freeze struct {
	For string `json:"for"`
	By  string `json:"by"`
}

type setting struct {
	rate
	Counts bool     `json:"counts"`
	Quotas string   `json:"quotas,omitempty"` // a hash of them; without: none
	Pods   []string `json:"pods"`
}

// A standing is the position of a ramp.
type standing struct {
	Tokens float64 `json:"tokens"`
	Per    string  `json:"per"`
}

type pod struct {
	ID       string  `json:"id"`
	Share    float64 `json:"share"`
	Demand   float64 `json:"demand"`
	PoolSize int     `json:"poolSize"`
	// Use is the fraction of the limit in force that it uses, and Throttled the reason why its callers wait.
	Use       float64 `json:"use"`
	Waiting   int     `json:"waiting"`
	Throttled string  `json:"throttled,omitempty"`
	// Tag is the tag whose quota or pause that is; empty: the limit.
	Tag    string `json:"tag,omitempty"`
	Limit  *rate  `json:"limit"` // as configured; null: it reports none
	Note   string `json:"note"`
	Silent string `json:"silent"`
	// Overdue says that the pod should have synced by now, so its reports are outdated. Its share is nobody else's for UnusedFor more.
	Overdue   bool   `json:"overdue,omitempty"`
	UnusedFor string `json:"unusedFor,omitempty"`
}

type document struct {
	Name    string `json:"name"`
	Version uint64 `json:"version"`
}

func newStatus(o *protocol.Overview) status {
	a := explain(o, time.Now())
	s := status{
		Pool: o.Pool, Limit: limitRate(o), Override: overrideOf(&o.Override), Why: a.Sentence, Cause: a.Cause, Level: string(a.Level),
		Paused: pausesOf(poolview.PausesAt(o.Pauses, time.Now())), Settings: []setting{},
		Agreed: o.Agreed, PoolSize: o.PoolSize,
		Pods: []pod{}, Documents: []document{}, Unreadable: append([]string{}, o.Unreadable...),
	}
	if o.Ramp > 0 {
		s.Ramp = &standing{o.Ramp, duration.Short(o.RampPer)}
	}
	if a := &o.Announced; a.Max > 0 {
		s.Announced = &announced{*rateOf(a.Max, a.Per, false, 0), a.Followed}
	}
	if o.File.Hash != "" {
		s.File = o.File.String()
	}
	s.Use, s.Waiting = poolview.Use(o)
	if o.Frozen > 0 {
		s.Frozen = &freeze{duration.Short(o.Frozen), string(o.FrozenBy)}
	}
	for i := range o.Settings {
		set := &o.Settings[i]
		s.Settings = append(s.Settings, setting{*rateOf(set.Max, set.Per, set.Hard, set.Slots), set.Counts, set.Quotas, set.IDs})
	}
	s.Differing = slices.DeleteFunc(protocol.Differing(o.Settings), func(name string) bool { return name == "limit" || name == "hard" })
	for i := range o.Processors {
		p := &o.Processors[i]
		is := pod{
			ID: p.ID, Share: p.Claim.Fraction(), Demand: p.Demand.Fraction(), PoolSize: p.PoolSize,
			Use: poolview.UseOf(o, p), Waiting: p.Waiting, Throttled: string(p.Throttled), Tag: p.Tag,
			Limit: rateOf(p.Max, p.Per, p.Hard, p.Slots), Note: p.Note, Silent: duration.Short(p.Silent), Overdue: p.Overdue,
		}
		if p.Overdue {
			is.UnusedFor = duration.Short(p.Left)
		}
		s.Pods = append(s.Pods, is)
	}
	for _, d := range o.Documents {
		s.Documents = append(s.Documents, document{d.Name, uint64(d.Version)})
	}
	return s
}

// rateOf returns a limit, or nil if there is none.
func rateOf(tokens int, per time.Duration, hard bool, slots int) *rate {
	switch {
	case tokens > 0 && per > 0:
		return &rate{Max: tokens, Per: duration.Short(per), Hard: hard}
	case tokens > 0:
		return &rate{Max: tokens, Hard: hard}
	case slots > 0:
		return &rate{Max: slots, InFlight: true}
	}
	return nil
}

// limitRate returns the limit in force.
func limitRate(o *protocol.Overview) *rate { return rateOf(o.Max, o.Per, false, o.Slots) }

func overrideOf(o *protocol.Override) *overrideRate {
	r := rateOf(o.Max, o.Per, false, 0)
	if r == nil {
		return nil
	}
	return &overrideRate{*r, timeText(o.Until), o.By, o.Reason}
}

func pausesOf(list []throttle.Paused) []pause {
	out := []pause{}
	for _, p := range list {
		out = append(out, pause{p.Tag, timeText(p.Until), p.By, p.Reason})
	}
	return out
}

// timeText formats a time as in RFC 3339; empty for none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

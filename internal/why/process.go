package why

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Own is a process's view of its limiter at one moment.
type Own struct {
	// Max per Per is its configured limit, or Slots that of calls in flight; all 0: none.
	Max    int
	Per    time.Duration
	Slots  int
	Lease  limit.Lease
	Closed bool
	// Hold describes the hold-up of callers here, and Held reports whether there is one.
	Hold throttle.Throttling
	Held bool
	// Paused is the pause of everything in force here; nil: none.
	Paused *limit.Paused
}

// Ready reports whether the limiter can grant: a process that waits for its turn of a slot is ready.
func (o *Own) Ready() bool {
	return !o.Closed && (o.Lease.Share > 0 || o.Lease.Reason == limit.ReasonInFlight)
}

// Process returns the state of a limit as one of its processes sees it. It combines the pool as of the last sync, as observers see it, with
// the process's own current state. v is nil for a limit without a pool.
func Process(v *consensus.View, own Own, now time.Time) State {
	s, self := State{Now: now}, &Self{}
	if v == nil {
		s = own.alone(now)
	} else {
		o := (*protocol.View)(v).Overview()
		s = Pool(&o, now)
		self.ID = v.ID
		s.Failure, s.Remedy = FailureOf(v.LastError)
	}
	s.Self = self
	if s.Unknown { // before its first sync
		alone := own.alone(now)
		s.Limit, s.PerSecond, s.Slots, s.Unknown = alone.Limit, alone.PerSecond, alone.Slots, false
	}
	self.Degraded, self.Share = own.Lease.Degraded, float64(own.Lease.Share)/float64(limit.WholeShare)
	limited := own.Max > 0 || own.Slots > 0
	if limited && !own.Ready() {
		self.Reason = own.Lease.Reason
		if own.Held {
			self.Reason = own.Hold.Reason
		}
		if own.Closed {
			self.Reason = limit.ReasonClosed
		}
	}
	s.setOwn(self, &own)
	return s
}

// alone returns the state of a limit without a pool.
func (o *Own) alone(now time.Time) State {
	s := State{Now: now, Slots: o.Slots}
	if o.Max > 0 && o.Per > 0 {
		s.Limit, s.PerSecond = LimitText(o.Max, o.Per), float64(o.Max)/o.Per.Seconds()
		if o.Lease.Ceiling > 0 && o.Lease.Adapted {
			s.Lowered = o.Lease.Ceiling / float64(o.Max)
		} else if o.Lease.Ceiling > 0 {
			s.Ramp = o.Lease.Ceiling / o.Per.Seconds()
		}
	}
	if o.Paused != nil {
		s.Pauses = []limit.Paused{*o.Paused}
	}
	return s
}

// setOwn replaces the process's last report by its current state, where that says more.
func (s *State) setOwn(self *Self, own *Own) {
	at := -1
	for i := range s.Pods {
		if s.Pods[i].ID == self.ID {
			at = i
		}
		if self.Reason != "" {
			s.Pods[i].Reason = "" // the cause for others does not explain why this process grants nothing
		}
	}
	if at < 0 {
		at = len(s.Pods)
		s.Pods = append(s.Pods, Pod{ID: self.ID, Share: self.Share})
	}
	p := &s.Pods[at]
	switch {
	case self.Reason != "" && !own.Held:
		p.Reason, p.Tag = self.Reason, ""
	case own.Held && p.Reason == "":
		p.Reason, p.Waiting, p.Tag = own.Hold.Reason, max(p.Waiting, own.Hold.Waiting), own.tag()
		p.Hold = own.hold()
	}
	if p.ID == "" {
		p.ID = "this process"
	}
	if own.Hold.Frozen > 0 && s.Frozen == 0 {
		s.Frozen = own.Hold.Frozen
	}
}

// hold returns the hold-up of callers here, as a pod reports it.
func (o *Own) hold() sharing.Hold {
	h := sharing.Hold{Callers: o.Hold.Waiting, Rate: o.Hold.Rate, Blocked: o.Hold.Blocked, Owed: o.Hold.Owed, Tags: o.Hold.Tags}
	if o.Hold.OfTag { // for the limit itself, only the time of continuous waiting is known
		h.Longest = o.Hold.Longest
	}
	if o.Hold.Reason == limit.ReasonBudget {
		h.Left = o.Hold.RetryAfter
	}
	return h
}

// tag returns the tag whose quota or pause that is.
func (o *Own) tag() string {
	switch {
	case !o.Hold.OfTag:
		return ""
	case o.Hold.Tag == "":
		return protocol.TagOthers
	}
	return o.Hold.Tag
}

package telemetry

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// limitOf returns the health server's data about a limiter. store is its URL without secrets.
func limitOf(w otelthrottle.Watched, store string) (l health.Limit) {
	var own why.Own
	if w.InFlight != nil {
		l, own = slotsOf(w.InFlight)
		addHeld(&l, w.InFlight)
	} else {
		l, own = tokensOf(w.Throttle)
		addHeld(&l, w.Throttle)
	}
	l.Store = health.Store{URL: store}
	if pods, ok := wanted(w); ok {
		l.PodsWanted = &pods
	}
	var view *consensus.View
	if w.Member != nil {
		v := w.Member.View()
		view, l.Pool, l.File = &v, poolOf(&v), fileOf(&v)
		l.Store.Failures = v.Failures
		if v.LastError != nil {
			l.Store.LastError = v.LastError.Error()
		}
	}
	a := why.Explain(why.Process(view, own, time.Now()))
	l.Why, l.Cause, l.Level = a.Sentence, a.Cause, string(a.Level)
	return l
}

// wanted returns this pod's part of the pods that the limit needs.
func wanted(w otelthrottle.Watched) (pods float64, ok bool) {
	if w.InFlight != nil {
		return hook.PodsWanted(w.InFlight)
	}
	return hook.PodsWanted(w.Throttle)
}

// tokensOf returns the data specific to a limit on a rate.
func tokensOf(th *throttle.Throttle) (health.Limit, why.Own) {
	st := th.Status()
	own := why.Own{Max: st.Limit.Max, Per: st.Limit.Per, Lease: st.Lease, Closed: st.Closed, Paused: st.Paused}
	own.Hold, own.Held = th.HoldUp()
	l := health.Limit{
		Name: st.Name, Max: st.Limit.Max, Per: health.Duration(st.Limit.Per), Burst: st.Limit.Burst, Hard: st.Limit.Hard,
		Ceiling: st.Ceiling(), Rate: st.Rate, Tokens: st.Tokens,
		Waiting: st.Waiting, Granted: st.Granted, Returned: st.Returned, Refused: st.Refused,
	}
	addLease(&l, &own)
	addPause(&l, st.Paused)
	addTags(&l, st.Tags)
	if st.Limit.Adapts() {
		a := st.Backoff
		l.Service = &health.Service{
			Lowered: st.Lease.Adapted, Cuts: st.Lease.Cuts, Part: a.Part, Accepted: a.Accepted, Refused: a.Refused, Overloaded: a.Overloaded,
		}
	}
	return l, own
}

// slotsOf returns the data specific to a limit on calls in flight.
func slotsOf(f *throttle.InFlight) (health.Limit, why.Own) {
	st := f.Status()
	own := why.Own{Slots: st.Max, Lease: st.Lease, Closed: st.Closed, Paused: st.Paused}
	own.Hold, own.Held = f.HoldUp()
	l := health.Limit{
		Name: st.Name, InFlight: &health.InFlight{Max: st.Max, Slots: st.Slots, InUse: st.InUse},
		Waiting: st.Waiting, Granted: st.Granted, Refused: st.Refused,
	}
	addSlotTags(l.InFlight, st.Tags)
	addLease(&l, &own)
	addPause(&l, st.Paused)
	return l, own
}

// addSlotTags adds the busiest tags.
func addSlotTags(f *health.InFlight, tags []throttle.SlotTagStatus) {
	slices.SortStableFunc(tags, func(a, b throttle.SlotTagStatus) int { return cmp.Compare(b.Granted+b.Refused, a.Granted+a.Refused) })
	if more := len(tags) - health.MaxTags; more > 0 {
		f.MoreTags, tags = more, tags[:health.MaxTags]
	}
	for _, tag := range tags {
		of := health.SlotTag{
			Tag: tag.Tag, InUse: tag.InUse, Reserved: tag.Reserved, Waiting: tag.Waiting, Granted: tag.Granted, Refused: tag.Refused,
			Longest: health.Duration(tag.Longest),
		}
		if tag.Allowed >= 0 {
			of.Allowed = &tag.Allowed
		}
		f.Tags = append(f.Tags, of)
	}
}

func addLease(l *health.Limit, own *why.Own) {
	l.Share, l.Degraded, l.Ready = float64(own.Lease.Share)/float64(limit.WholeShare), own.Lease.Degraded, own.Ready()
}

func addPause(l *health.Limit, p *throttle.Paused) {
	if p == nil {
		return
	}
	l.Paused = &health.Paused{Tag: p.Tag, Reason: p.Reason, By: p.By}
	if !p.Until.IsZero() {
		l.Paused.For = health.Duration(time.Until(p.Until)).String()
	}
}

// addTags adds the busiest tags.
func addTags(l *health.Limit, tags []throttle.TagStatus) {
	tags = slices.Clone(tags)
	slices.SortStableFunc(tags, func(a, b throttle.TagStatus) int { return cmp.Compare(b.Used+b.Refused, a.Used+a.Refused) })
	if more := len(tags) - health.MaxTags; more > 0 {
		l.MoreTags, tags = more, tags[:health.MaxTags]
	}
	for _, tag := range tags {
		l.Tags = append(l.Tags, health.Tag{
			Tag: tag.Tag, Used: tag.Used, Refused: tag.Refused, Waiting: tag.Waiting, Rate: tag.Rate, Target: tag.Target, By: tag.By,
			Limiting: tag.Limiting, Cost: tag.Cost, Spent: tag.Spent, Budget: tag.Budget, Shadowed: tag.Shadowed,
		})
	}
}

// addHeld adds the reasons why callers are and were held back.
func addHeld(l *health.Limit, of interface {
	WaitStats() []throttle.WaitStats
	Throttled() (throttle.Throttling, bool)
},
) {
	l.HeldBack = []health.HeldBack{}
	for _, h := range of.WaitStats() {
		l.HeldBack = append(l.HeldBack, health.HeldBack{Reason: string(h.Reason), Waits: h.Waits, Refusals: h.Refusals, Time: health.Duration(h.Time)})
	}
	t, ok := of.Throttled()
	if !ok {
		return
	}
	l.Throttled = &health.Throttled{Reason: string(t.Reason)}
	if t.RetryAfter > 0 {
		l.Throttled.RetryAfter = health.Duration(t.RetryAfter).String()
	}
	if !l.Ready { // otherwise it is held back as limits do
		l.NotReady = string(t.Reason)
	}
}

// fileOf returns the settings file of this process, and that of the pool.
func fileOf(v *consensus.View) *health.File {
	f, name := health.File{Fault: v.Files.Own.Fault, RestartNeeded: v.Files.Own.Restart}, func(f *protocol.File) string {
		if f.Hash == "" {
			return ""
		}
		return f.String()
	}
	if f.InForce, f.Own = name(&v.Files.InForce), name(&v.Files.Own.File); f.InForce == "" && f.Own == "" {
		return nil
	}
	return &f
}

func poolOf(v *consensus.View) *health.Pool {
	p := &health.Pool{
		Name: v.Pool, ID: v.ID, State: v.State, Processors: v.Live, Silent: v.Silent, PoolSize: v.PoolSize, Agreed: v.Agreed,
		Wanted: v.Want.Fraction(), Demand: v.Demand.Fraction(), Lease: health.Duration(v.Lease),
		LeaseLeft: health.Duration(v.LeaseLeft), Interval: health.Duration(v.Interval),
		Frozen: health.Duration(v.Frozen), PauseMissing: v.PauseMissing, TookOver: v.TookOver, Roster: make([]health.Processor, 0, len(v.Roster)),
	}
	p.Disagree = protocol.Disagreement(protocol.Settings(v.Roster), v.Override.Max > 0 || v.Files.InForce.Max > 0)
	if v.Frozen > 0 {
		p.FrozenBy = fmt.Sprint(v.FrozenBy)
	}
	for _, row := range v.Roster {
		p.Roster = append(p.Roster, health.Processor{
			ID: row.ID, Claim: row.Claim.Fraction(), Demand: row.Demand.Fraction(), PoolSize: row.PoolSize,
			Silent: health.Duration(row.Silent.Round(time.Millisecond)),
		})
	}
	return p
}

package otelthrottle

import (
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The kinds of instruments.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// The keys of the attributes.
const (
	keyLimit   = "limit"   // the limiter's name
	keyReason  = "reason"  // a throttle.Reason; one of throttle.Reasons
	keyOutcome = "outcome" // how a wait or a sync ended
	keyStore   = "store"   // the kind of store
)

// An Instrument is one metric.
type Instrument struct {
	// Name is the metric's name, Unit its unit in UCUM, Doc one line on what it says.
	Name string
	// Kind is "counter", "gauge" or "histogram".
	Kind string
	Unit string
	Doc  string
	// Labels are the keys of its attributes.
	Labels []string

	read    func(s *snapshot, emit func(value float64, reason throttle.Reason)) // of counters and gauges
	perTag  func(s *tagSum) (value float64, ok bool)                            // of those by tag, in the place of read
	perHold func(s *throttle.WaitStats) float64                                 // of those by tag and reason, in the place of read
	buckets []float64                                                           // of histograms, in seconds
}

// Instruments returns every metric that there is, in the order of the documentation.
func Instruments() []Instrument {
	out := slices.Concat(observed, tagged)
	return append(out, waitDuration, syncDuration, buildInfo)
}

// A snapshot is what one collection reads.
type snapshot struct {
	throttle *throttle.Status         // nil for a limit on calls in flight
	inFlight *throttle.InFlightStatus // nil for a rate
	held     []throttle.WaitStats
	tagsHeld []throttle.TagWaitStats
	lease    limit.Lease
	waiting  int
	view     *consensus.View // nil without a pool
	pods     float64         // wanted, if measured
	measured bool
}

var (
	byLimit  = []string{keyLimit}
	byReason = []string{keyLimit, keyReason}
)

// observed is every counter and gauge. They are read when metrics are collected.
var observed = []Instrument{
	{
		Name: "numathrottle.tokens.granted", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc: "Tokens, or slots, that were granted",
		read: either(
			func(s *throttle.Status) float64 { return float64(s.Granted) },
			func(s *throttle.InFlightStatus) float64 { return float64(s.Granted) }),
	},
	{
		Name: "numathrottle.tokens.returned", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc:  "Tokens of them that were given back and could be granted again",
		read: either(func(s *throttle.Status) float64 { return float64(s.Returned) }, nil),
	},
	{
		Name: "numathrottle.debt.dropped", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc:  "Tokens that calls used above what they drew, and that nobody pays for: more would be owed than `maxDebt` allows",
		read: either(func(s *throttle.Status) float64 { return float64(s.DebtDropped) }, nil),
	},
	{
		Name: "numathrottle.debt.forgiven", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc:  "Tokens of debt that somebody has forgiven",
		read: either(func(s *throttle.Status) float64 { return float64(s.DebtForgiven) }, nil),
	},
	{
		Name: "numathrottle.tokens.refused", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc: "Tokens that were asked for and not granted in time",
		read: either(
			func(s *throttle.Status) float64 { return float64(s.Refused) },
			func(s *throttle.InFlightStatus) float64 { return float64(s.Refused) }),
	},
	{
		Name: "numathrottle.throttled.waits", Kind: counter, Unit: "{call}", Labels: byReason,
		Doc:  "Calls that had to wait, by the reason when they began to",
		read: byHeld(func(h throttle.WaitStats) float64 { return float64(h.Waits) }),
	},
	{
		Name: "numathrottle.throttled.refusals", Kind: counter, Unit: "{call}", Labels: byReason,
		Doc:  "Calls that were refused, at once or after a wait",
		read: byHeld(func(h throttle.WaitStats) float64 { return float64(h.Refusals) }),
	},
	{
		Name: "numathrottle.throttled.time", Kind: counter, Unit: "s", Labels: byReason,
		Doc:  "Time during which at least one call waited",
		read: byHeld(func(h throttle.WaitStats) float64 { return h.Time.Seconds() }),
	},
	{
		Name: "numathrottle.waiting", Kind: gauge, Unit: "{call}", Labels: byLimit,
		Doc:  "Calls that wait at this moment",
		read: func(s *snapshot, emit func(float64, throttle.Reason)) { emit(float64(s.waiting), "") },
	},
	{
		Name: "numathrottle.ceiling", Kind: gauge, Unit: "{token}/s", Labels: byLimit,
		Doc:  "What the whole pool is granted in the long run",
		read: either(func(s *throttle.Status) float64 { return s.Ceiling() }, nil),
	},
	{
		Name: "numathrottle.rate", Kind: gauge, Unit: "{token}/s", Labels: byLimit,
		Doc:  "This pod's part of it",
		read: either(func(s *throttle.Status) float64 { return s.Rate }, nil),
	},
	{
		Name: "numathrottle.ceiling.cuts", Kind: counter, Unit: "{cut}", Labels: byLimit,
		Doc:  "How often the called service's refusals have lowered the ceiling of the pool; of an adaptive limit",
		read: adaptive(func(s *throttle.Status) float64 { return float64(s.Lease.Cuts) }),
	},
	{
		Name: "numathrottle.adaptive.part", Kind: gauge, Unit: "1", Labels: byLimit,
		Doc:  "Part of its share that this pod uses, from 0 to 1: less than 1 after refusals that the pool does not hold against all",
		read: adaptive(func(s *throttle.Status) float64 { return s.Backoff.Part }),
	},
	{
		Name: "numathrottle.service.accepted", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc:  "Tokens of calls that the called service accepted, as reported to an adaptive limit",
		read: adaptive(func(s *throttle.Status) float64 { return float64(s.Backoff.Accepted) }),
	},
	{
		Name: "numathrottle.service.refused", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc:  "Tokens of calls that it refused because there were too many",
		read: adaptive(func(s *throttle.Status) float64 { return float64(s.Backoff.Refused) }),
	},
	{
		Name: "numathrottle.service.overloaded", Kind: counter, Unit: "{token}", Labels: byLimit,
		Doc:  "Tokens of calls that it refused because it was overloaded",
		read: adaptive(func(s *throttle.Status) float64 { return float64(s.Backoff.Overloaded) }),
	},
	{
		Name: "numathrottle.tokens.available", Kind: gauge, Unit: "{token}", Labels: byLimit,
		Doc:  "Tokens at hand; below 0 it is debt",
		read: either(func(s *throttle.Status) float64 { return s.Tokens }, nil),
	},
	{
		Name: "numathrottle.slots.allowed", Kind: gauge, Unit: "{call}", Labels: byLimit,
		Doc:  "Calls in flight that this pod's share allows",
		read: either(nil, func(s *throttle.InFlightStatus) float64 { return float64(s.Slots) }),
	},
	{
		Name: "numathrottle.slots.used", Kind: gauge, Unit: "{call}", Labels: byLimit,
		Doc:  "Calls in flight",
		read: either(nil, func(s *throttle.InFlightStatus) float64 { return float64(s.InUse) }),
	},
	{
		Name: "numathrottle.share", Kind: gauge, Unit: "1", Labels: byLimit,
		Doc:  "Part of the configured limit that this pod may use: 0 to 1, and more with an override above it",
		read: func(s *snapshot, emit func(float64, throttle.Reason)) { emit(fraction(s.lease.Share), "") },
	},
	{
		Name: "numathrottle.degraded", Kind: gauge, Unit: "{bool}", Labels: byLimit,
		Doc:  "1 while the share is used without the store's consent, else 0",
		read: func(s *snapshot, emit func(float64, throttle.Reason)) { emit(number(s.lease.Degraded), "") },
	},
	{
		Name: "numathrottle.paused", Kind: gauge, Unit: "{bool}", Labels: byLimit,
		Doc: "1 while a pause holds this pod, else 0",
		read: either(
			func(s *throttle.Status) float64 { return number(s.Paused != nil) },
			func(s *throttle.InFlightStatus) float64 { return number(s.Paused != nil) }),
	},
	{
		Name: "numathrottle.paused.tags", Kind: gauge, Unit: "{tag}", Labels: byLimit,
		Doc: "Tags of the pool that are paused, each by itself",
		read: pooled(func(v *consensus.View) (tags float64) {
			for i := range v.Paused {
				tags += number(v.Paused[i].Tag != "")
			}
			return tags
		}),
	},
	{
		Name: "numathrottle.pauses", Kind: counter, Unit: "{pause}", Labels: byLimit,
		Doc: "Pauses that have held this pod",
		read: either(
			func(s *throttle.Status) float64 { return float64(s.Pauses) },
			func(s *throttle.InFlightStatus) float64 { return float64(s.Pauses) }),
	},
	{
		Name: "numathrottle.overridden", Kind: gauge, Unit: "{bool}", Labels: byLimit,
		Doc:  "1 while an override is in force in place of the configured limit, else 0",
		read: pooled(func(v *consensus.View) float64 { return number(v.Override.Max > 0) }),
	},
	{
		Name: "numathrottle.quotas.changed", Kind: gauge, Unit: "{tag}", Labels: byLimit,
		Doc:  "Tags whose quota an operator has changed",
		read: pooled(func(v *consensus.View) float64 { return float64(v.Quotas.Len()) }),
	},
	{
		Name: "numathrottle.pool.settings", Kind: gauge, Unit: "{setting}", Labels: byLimit,
		Doc:  "Different settings that pods of the pool are configured with; more than 1: they disagree",
		read: pooled(func(v *consensus.View) float64 { return float64(len(protocol.Settings(v.Roster))) }),
	},
	{
		Name: "numathrottle.pool.unreadable", Kind: gauge, Unit: "{document}", Labels: byLimit,
		Doc:  "Documents of the pool that this pod cannot read",
		read: pooled(func(v *consensus.View) float64 { return float64(len(v.Unreadable)) }),
	},
	{
		Name: "numathrottle.pause.receipts.missing", Kind: gauge, Unit: "{pod}", Labels: byLimit,
		Doc:  "Live pods that have not said yet that they go by the newest change of what is paused",
		read: pooled(func(v *consensus.View) float64 { return float64(len(v.PauseMissing)) }),
	},
	{
		Name: "numathrottle.pods.wanted", Kind: gauge, Unit: "{pod}", Labels: byLimit,
		Doc: "This pod's part of the pods that the limit needs; the sum over all pods is their number. Absent without `podConcurrency`, and while unknown",
		read: func(s *snapshot, emit func(float64, throttle.Reason)) {
			if s.measured {
				emit(s.pods, "")
			}
		},
	},
	{
		Name: "numathrottle.wanted", Kind: gauge, Unit: "1", Labels: byLimit,
		Doc:  "Part of the limit that the policy asks for",
		read: pooled(func(v *consensus.View) float64 { return v.Want.Fraction() }),
	},
	{
		Name: "numathrottle.demand", Kind: gauge, Unit: "1", Labels: byLimit,
		Doc:  "Part of the limit that this pod would use if it could, as reported last",
		read: pooled(func(v *consensus.View) float64 { return v.Demand.Fraction() }),
	},
	{
		Name: "numathrottle.lease.left", Kind: gauge, Unit: "s", Labels: byLimit,
		Doc:  "How long the share is good for without another sync",
		read: pooled(func(v *consensus.View) float64 { return v.LeaseLeft.Seconds() }),
	},
	{
		Name: "numathrottle.frozen", Kind: gauge, Unit: "s", Labels: byLimit,
		Doc:  "How long no share can grow yet, because the store has forgotten something",
		read: pooled(func(v *consensus.View) float64 { return v.Frozen.Seconds() }),
	},
	{
		Name: "numathrottle.pool.pods", Kind: gauge, Unit: "{pod}", Labels: byLimit,
		Doc:  "Live pods of the pool, as this one sees it",
		read: pooled(func(v *consensus.View) float64 { return float64(v.Live) }),
	},
	{
		Name: "numathrottle.pool.silent", Kind: gauge, Unit: "{pod}", Labels: byLimit,
		Doc:  "Pods of these that hang, were killed, or cannot reach the store: nobody can use their shares until the store removes them",
		read: pooled(func(v *consensus.View) float64 { return float64(v.Silent) }),
	},
	{
		Name: "numathrottle.pool.size", Kind: gauge, Unit: "{pod}", Labels: byLimit,
		Doc:  "The largest pool size that a pod reported",
		read: pooled(func(v *consensus.View) float64 { return float64(v.PoolSize) }),
	},
	{
		Name: "numathrottle.pool.agreed", Kind: gauge, Unit: "{bool}", Labels: byLimit,
		Doc:  "1 while all pods report the same pool size and it is their number, else 0",
		read: pooled(func(v *consensus.View) float64 { return number(v.Agreed) }),
	},
	{
		Name: "numathrottle.sync.failures", Kind: gauge, Unit: "{sync}", Labels: byLimit,
		Doc:  "Syncs that have failed since the store answered last",
		read: pooled(func(v *consensus.View) float64 { return float64(v.Failures) }),
	},
	{
		Name: "numathrottle.sync.stretch", Kind: gauge, Unit: "1", Labels: byLimit,
		Doc:  "How many times as long as usual the interval between syncs is, because the store answers late; 1: as usual",
		read: pooled(func(v *consensus.View) float64 { return v.Stretch }),
	},
}

// waitDuration and syncDuration are recorded when a wait or a sync is over.
var (
	waitDuration = Instrument{
		Name: "numathrottle.wait.duration", Kind: histogram, Unit: "s", Labels: []string{keyLimit, keyReason, keyOutcome},
		Doc: "How long calls waited that had to; `outcome` is `granted`, `refused`, `cancelled` or `moved` (on to another limit of an All, " +
			"or from a refusal of the called service to its draw)",
		buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
	}
	syncDuration = Instrument{
		Name: "numathrottle.sync.duration", Kind: histogram, Unit: "s", Labels: []string{keyLimit, keyStore, keyOutcome},
		Doc:     "How long syncs with the store took; `outcome` is `ok`, `timeout`, `contention` (others wrote first each time) or `error`",
		buckets: []float64{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1},
	}
)

func either(rate func(*throttle.Status) float64, calls func(*throttle.InFlightStatus) float64) func(*snapshot, func(float64, throttle.Reason)) {
	return func(s *snapshot, emit func(float64, throttle.Reason)) {
		switch {
		case s.throttle != nil && rate != nil:
			emit(rate(s.throttle), "")
		case s.inFlight != nil && calls != nil:
			emit(calls(s.inFlight), "")
		}
	}
}

func adaptive(of func(*throttle.Status) float64) func(*snapshot, func(float64, throttle.Reason)) {
	return func(s *snapshot, emit func(float64, throttle.Reason)) {
		if s.throttle != nil && s.throttle.Limit.Adapts() {
			emit(of(s.throttle), "")
		}
	}
}

func byHeld(of func(throttle.WaitStats) float64) func(*snapshot, func(float64, throttle.Reason)) {
	return func(s *snapshot, emit func(float64, throttle.Reason)) {
		for _, held := range s.held { // without the reasons that never held anybody back
			emit(of(held), held.Reason)
		}
	}
}

func pooled(of func(*consensus.View) float64) func(*snapshot, func(float64, throttle.Reason)) {
	return func(s *snapshot, emit func(float64, throttle.Reason)) {
		if s.view != nil {
			emit(of(s.view), "")
		}
	}
}

func fraction(share int64) float64 { return float64(share) / float64(limit.WholeShare) }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

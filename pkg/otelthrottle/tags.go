package otelthrottle

import (
	"math"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// KeyTag is the key of the attribute that names a tag: one that has a quota by name in the configuration, or TagOther.
const keyTag = "tag"

// TagOther is the tag of all that are not told apart.
const tagOther = "other"

// MaxTags is how many tags are told apart, the first ones by name.
const MaxTags = 100

var (
	byTag       = []string{keyLimit, keyTag}
	byTagReason = []string{keyLimit, keyTag, keyReason}
)

// A tagSum is what a collection reads of one tag, or of all others together.
type tagSum struct {
	used, refused  int64
	demand, target float64
	// limiting is what the called service takes here of tags that are slow; 0: none is.
	limiting float64
	// budgeted is the largest part of a budget that is spent; budgets: there are any.
	budgeted float64
	budgets  bool
	pooled   bool
	// slots is the state of a limit on calls in flight; nil: it is one on a rate.
	slots *throttle.SlotTagStatus
	// held is what callers were held back for, without the reasons that never did so.
	held map[throttle.Reason]*throttle.WaitStats
}

// hold adds what callers were held back for.
func (s *tagSum) hold(stats []throttle.WaitStats) {
	for _, more := range stats {
		is := s.held[more.Reason]
		if is == nil {
			is = &throttle.WaitStats{Reason: more.Reason}
			s.held[more.Reason] = is
		}
		is.Waits, is.Refusals, is.Time = is.Waits+more.Waits, is.Refusals+more.Refusals, is.Time+more.Time
	}
}

// tagged is every counter and gauge of tags.
var tagged = []Instrument{
	{
		Name: "numathrottle.quota.used", Kind: counter, Unit: "{token}", Labels: byTag,
		Doc:    "Tokens that a tag has used",
		perTag: func(s *tagSum) (float64, bool) { return float64(s.used), true },
	},
	{
		Name: "numathrottle.quota.throttled", Kind: counter, Unit: "{token}", Labels: byTag,
		Doc:    "Tokens that were asked for a tag and not granted in time",
		perTag: func(s *tagSum) (float64, bool) { return float64(s.refused), true },
	},
	{
		Name: "numathrottle.quota.throttled.waits", Kind: counter, Unit: "{call}", Labels: byTagReason,
		Doc:     "Calls for a tag that had to wait, by the reason when they began to",
		perHold: func(s *throttle.WaitStats) float64 { return float64(s.Waits) },
	},
	{
		Name: "numathrottle.quota.throttled.refusals", Kind: counter, Unit: "{call}", Labels: byTagReason,
		Doc:     "Calls for a tag that were refused, at once or after a wait",
		perHold: func(s *throttle.WaitStats) float64 { return float64(s.Refusals) },
	},
	{
		Name: "numathrottle.quota.throttled.time", Kind: counter, Unit: "s", Labels: byTagReason,
		Doc:     "Time during which at least one call for a tag waited: for `quota`, or for the limit; of each moment for the reason of most of its calls",
		perHold: func(s *throttle.WaitStats) float64 { return s.Time.Seconds() },
	},
	{
		Name: "numathrottle.quota.demand", Kind: gauge, Unit: "{token}/s", Labels: byTag,
		Doc:    "What a tag asks for at this pod, as reported last",
		perTag: func(s *tagSum) (float64, bool) { return s.demand, s.pooled },
	},
	{
		Name: "numathrottle.quota.target", Kind: gauge, Unit: "{token}/s", Labels: byTag,
		Doc:    "What a tag may use over the whole pool at present",
		perTag: func(s *tagSum) (float64, bool) { return s.target, s.slots == nil },
	},
	{
		Name: "numathrottle.quota.limiting", Kind: gauge, Unit: "{token}/s", Labels: byTag,
		Doc:    "What a tag may use at this pod at most, because the called service refuses its calls; only while it does, and of an adaptive limit",
		perTag: func(s *tagSum) (float64, bool) { return s.limiting, s.limiting > 0 },
	},
	{
		Name: "numathrottle.quota.spent", Kind: gauge, Unit: "1", Labels: byTag,
		Doc:    "Part of a tag's budget that is spent, from 0 to 1: of the window that ends first",
		perTag: func(s *tagSum) (float64, bool) { return s.budgeted, s.budgets },
	},
	{
		Name: "numathrottle.quota.slots.used", Kind: gauge, Unit: "{call}", Labels: byTag,
		Doc:    "Calls of a tag in flight at this pod",
		perTag: ofSlots(func(s *throttle.SlotTagStatus) float64 { return float64(s.InUse) }),
	},
	{
		Name: "numathrottle.quota.slots.allowed", Kind: gauge, Unit: "{call}", Labels: byTag,
		Doc: "Calls of a tag that may be in flight at this pod by its total; absent without one",
		perTag: func(s *tagSum) (float64, bool) {
			value, ok := ofSlots(func(s *throttle.SlotTagStatus) float64 { return float64(s.Allowed) })(s)
			return value, ok && value >= 0
		},
	},
	{
		Name: "numathrottle.quota.slots.waiting", Kind: gauge, Unit: "{call}", Labels: byTag,
		Doc:    "Calls of a tag that wait at this pod",
		perTag: ofSlots(func(s *throttle.SlotTagStatus) float64 { return float64(s.Waiting) }),
	},
	{
		Name: "numathrottle.quota.slots.longest", Kind: gauge, Unit: "s", Labels: byTag,
		Doc:    "How long the oldest call of a tag has been in flight at this pod; 0: none is",
		perTag: ofSlots(func(s *throttle.SlotTagStatus) float64 { return s.Longest.Seconds() }),
	},
}

// ofSlots reads tags of a limit on calls in flight.
func ofSlots(read func(*throttle.SlotTagStatus) float64) func(*tagSum) (float64, bool) {
	return func(s *tagSum) (float64, bool) {
		if s.slots == nil {
			return 0, false
		}
		return read(s.slots), true
	}
}

// tagNames are those that are told apart, of the configured ones.
func (w Watched) tagNames() []string {
	names := slices.Sorted(slices.Values(w.Tags))
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || name == tagOther })
	return names[:min(len(names), MaxTags)]
}

// tagSums adds up what is known of each of the names, and of all other tags together.
func tagSums(s *snapshot, names []string) map[string]*tagSum {
	slots := s.inFlight != nil && s.inFlight.Tags != nil
	if !slots && (s.throttle == nil || s.throttle.Tags == nil) {
		return nil
	}
	sums := map[string]*tagSum{}
	at := func(tag string) *tagSum {
		if !slices.Contains(names, tag) {
			tag = tagOther
		}
		if sums[tag] == nil {
			sums[tag] = &tagSum{held: map[throttle.Reason]*throttle.WaitStats{}}
		}
		return sums[tag]
	}
	if slots {
		for i := range s.inFlight.Tags {
			at(s.inFlight.Tags[i].Tag).add(&s.inFlight.Tags[i])
		}
		return sums
	}
	for _, tag := range s.throttle.Tags {
		sum := at(tag.Tag)
		sum.used, sum.refused, sum.target = sum.used+tag.Used, sum.refused+tag.Refused, sum.target+tag.Target
		sum.limiting += tag.Limiting
		if tag.Budget > 0 {
			sum.budgeted, sum.budgets = max(sum.budgeted, spent(tag)), true
		}
	}
	for _, h := range s.tagsHeld {
		at(h.Tag).hold(h.Stats)
	}
	if other := sums[tagOther]; other != nil {
		other.target = min(other.target, s.throttle.Ceiling()) // each may have so much, and not all of them
	}
	if gone := s.throttle.TagsGone; gone.Used > 0 || gone.Refused > 0 {
		sum := at(tagOther)
		sum.used, sum.refused = sum.used+gone.Used, sum.refused+gone.Refused
	}
	if s.view != nil {
		for i := range s.view.Tags {
			sum := at(s.view.Tags[i].Tag)
			sum.demand, sum.pooled = sum.demand+s.view.Tags[i].Demand, true
		}
	}
	return sums
}

// add adds a tag of calls in flight. Where one of several tags has no total, there is no number of calls allowed to all of them.
func (s *tagSum) add(tag *throttle.SlotTagStatus) {
	s.used, s.refused = s.used+tag.Granted, s.refused+tag.Refused
	if s.slots == nil {
		s.slots = &throttle.SlotTagStatus{}
	}
	is := s.slots
	is.InUse, is.Waiting, is.Longest = is.InUse+tag.InUse, is.Waiting+tag.Waiting, max(is.Longest, tag.Longest)
	if is.Allowed += tag.Allowed; tag.Allowed < 0 || is.Allowed < 0 {
		is.Allowed = math.MinInt / 2
	}
}

func spent(tag throttle.TagStatus) float64 { return min(1, float64(tag.Spent)/float64(tag.Budget)) }

// A tagObserver reports the tags of one limiter. It is not safe for concurrent use.
type tagObserver struct {
	limit   attribute.KeyValue
	names   []string
	with    map[tagSeries]metric.MeasurementOption
	highest map[tagSeries][]float64 // of counters, in the order of tagged
}

// A tagSeries is a tag, and a reason for what has one.
type tagSeries struct {
	tag    string
	reason throttle.Reason
}

func (w Watched) tagObserver(limit attribute.KeyValue) *tagObserver {
	return &tagObserver{limit: limit, names: w.tagNames(), with: map[tagSeries]metric.MeasurementOption{}, highest: map[tagSeries][]float64{}}
}

// observe reports to at, which is in the order of tagged.
func (o *tagObserver) observe(s *snapshot, to metric.Observer, at []metric.Float64Observable) {
	for tag, sum := range tagSums(s, o.names) {
		for i, in := range tagged {
			if in.perHold != nil {
				for reason, held := range sum.held {
					o.report(to, at[i], i, tagSeries{tag, reason}, in.perHold(held))
				}
				continue
			}
			if value, ok := in.perTag(sum); ok {
				o.report(to, at[i], i, tagSeries{tag: tag}, value)
			}
		}
	}
}

// report reports the value of the instrument i. There are as many series as there are names that are told apart, times reasons.
func (o *tagObserver) report(to metric.Observer, at metric.Float64Observable, i int, of tagSeries, value float64) {
	if o.with[of] == nil {
		labels := []attribute.KeyValue{o.limit, attribute.String(keyTag, of.tag)}
		if of.reason != "" {
			labels = append(labels, attribute.String(keyReason, string(of.reason)))
		}
		o.with[of] = metric.WithAttributeSet(attribute.NewSet(labels...))
		o.highest[of] = make([]float64, len(tagged))
	}
	if tagged[i].Kind == counter { // what is given back must not look like a restart
		o.highest[of][i] = max(o.highest[of][i], value)
		value = o.highest[of][i]
	}
	to.ObserveFloat64(at, value, o.with[of])
}

package otelthrottle

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// KeyTag is the key of the attribute that names a tag: one that has a quota by name in the configuration, or TagOther.
const KeyTag = "tag"

// TagOther is the tag of all that are not told apart.
const TagOther = "other"

// MaxTags is how many tags are told apart, the first ones by name.
const MaxTags = 100

var byTag = []string{KeyLimit, KeyTag}

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
}

// tagged is every counter and gauge of tags.
var tagged = []Instrument{
	{
		Name: "numathrottle.quota.used", Kind: Counter, Unit: "{token}", Labels: byTag,
		Doc:    "Tokens that a tag has used",
		perTag: func(s *tagSum) (float64, bool) { return float64(s.used), true },
	},
	{
		Name: "numathrottle.quota.throttled", Kind: Counter, Unit: "{token}", Labels: byTag,
		Doc:    "Tokens that were asked for a tag and not granted in time",
		perTag: func(s *tagSum) (float64, bool) { return float64(s.refused), true },
	},
	{
		Name: "numathrottle.quota.demand", Kind: Gauge, Unit: "{token}/s", Labels: byTag,
		Doc:    "What a tag asks for at this processor, as reported last",
		perTag: func(s *tagSum) (float64, bool) { return s.demand, s.pooled },
	},
	{
		Name: "numathrottle.quota.target", Kind: Gauge, Unit: "{token}/s", Labels: byTag,
		Doc:    "What a tag may use over the whole pool at present",
		perTag: func(s *tagSum) (float64, bool) { return s.target, true },
	},
	{
		Name: "numathrottle.quota.limiting", Kind: Gauge, Unit: "{token}/s", Labels: byTag,
		Doc:    "What a tag may use at this processor at most, because the called service refuses its calls; only while it does, and of an adaptive limit",
		perTag: func(s *tagSum) (float64, bool) { return s.limiting, s.limiting > 0 },
	},
	{
		Name: "numathrottle.quota.spent", Kind: Gauge, Unit: "1", Labels: byTag,
		Doc:    "Part of a tag's budget that is spent, from 0 to 1: of the window that ends first",
		perTag: func(s *tagSum) (float64, bool) { return s.budgeted, s.budgets },
	},
}

// tagNames are those that are told apart, of the configured ones.
func (w Watched) tagNames() []string {
	names := slices.Sorted(slices.Values(w.Tags))
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || name == TagOther })
	return names[:min(len(names), MaxTags)]
}

// tagSums adds up what is known of each of the names, and of all other tags together.
func tagSums(s *snapshot, names []string) map[string]*tagSum {
	if s.throttle == nil || s.throttle.Tags == nil {
		return nil
	}
	sums := map[string]*tagSum{}
	at := func(tag string) *tagSum {
		if !slices.Contains(names, tag) {
			tag = TagOther
		}
		if sums[tag] == nil {
			sums[tag] = &tagSum{}
		}
		return sums[tag]
	}
	for _, tag := range s.throttle.Tags {
		sum := at(tag.Tag)
		sum.used, sum.refused, sum.target = sum.used+tag.Used, sum.refused+tag.Refused, sum.target+tag.Target
		sum.limiting += tag.Limiting
		if tag.Budget > 0 {
			sum.budgeted, sum.budgets = max(sum.budgeted, spent(tag)), true
		}
	}
	if gone := s.throttle.TagsGone; gone.Used > 0 || gone.Refused > 0 {
		sum := at(TagOther)
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

func spent(tag throttle.TagStatus) float64 { return min(1, float64(tag.Spent)/float64(tag.Budget)) }

// A tagObserver reports the tags of one limiter. It is not safe for concurrent use.
type tagObserver struct {
	names   []string
	with    map[string]metric.MeasurementOption
	highest map[string][]float64 // of counters, in the order of tagged
}

func (w Watched) tagObserver(limit attribute.KeyValue) *tagObserver {
	o := &tagObserver{names: w.tagNames(), with: map[string]metric.MeasurementOption{}, highest: map[string][]float64{}}
	for _, tag := range append(slices.Clone(o.names), TagOther) {
		o.with[tag] = metric.WithAttributeSet(attribute.NewSet(limit, attribute.String(KeyTag, tag)))
		o.highest[tag] = make([]float64, len(tagged))
	}
	return o
}

// observe reports to at, which is in the order of tagged.
func (o *tagObserver) observe(s *snapshot, to metric.Observer, at []metric.Float64Observable) {
	for tag, sum := range tagSums(s, o.names) {
		for i, in := range tagged {
			value, ok := in.perTag(sum)
			if !ok {
				continue
			}
			if in.Kind == Counter { // what is given back must not look like a restart
				o.highest[tag][i] = max(o.highest[tag][i], value)
				value = o.highest[tag][i]
			}
			to.ObserveFloat64(at[i], value, o.with[tag])
		}
	}
}

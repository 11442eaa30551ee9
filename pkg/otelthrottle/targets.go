package otelthrottle

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// targetEvent is the name of the event that tells what the target of a tag is worked out from.
const targetEvent = "numathrottle.target"

// targetEvery is how often it is told of one tag at most, and targetRetry how soon it is looked for again when there was nothing to tell:
// the pool knows a tag from the first sync after its first draw on.
const (
	targetEvery = 5 * time.Second
	targetRetry = time.Second
)

// A targetBook tells what the targets of a limiter's tags are worked out from. It may be used from any goroutine.
type targetBook struct {
	w     Watched
	names []string

	mu   sync.Mutex
	next map[string]time.Time // when a tag may be told again
}

// newTargetBook returns the book of what is watched; nil: it has no tags to tell of.
func newTargetBook(w Watched) *targetBook {
	names := w.tagNames()
	if w.Throttle == nil || len(names) == 0 {
		return nil
	}
	return &targetBook{w: w, names: names, next: map[string]time.Time{}}
}

// tell returns what the target of a tag is worked out from if it is to be told at now; nil: it is not. The nil targetBook tells
// nothing.
func (b *targetBook) tell(tag string, now time.Time) []attribute.KeyValue {
	if b == nil || !slices.Contains(b.names, tag) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.next[tag]) {
		return nil
	}
	out := b.attributes(tag)
	b.next[tag] = now.Add(targetEvery)
	if out == nil {
		b.next[tag] = now.Add(targetRetry)
	}
	return out
}

// attributes tell what the target of a tag is worked out from; nil: it is not known yet. Rates are in tokens per second.
func (b *targetBook) attributes(tag string) []attribute.KeyValue {
	st := b.w.Throttle.Status()
	i := slices.IndexFunc(st.Tags, func(s throttle.TagStatus) bool { return s.Tag == tag })
	if i < 0 {
		return nil
	}
	own := &st.Tags[i]
	view := consensus.TagView{ // without a pool
		Asked: own.Demand, Reserved: rateOf(own.Quota.Reserved, own.Quota.Per), Total: rateOf(own.Quota.Total, own.Quota.Per),
		Weight: own.Quota.Weight, Class: own.Quota.Class, Taken: own.Limiting,
	}
	if b.w.Member != nil {
		tags := b.w.Member.View().Tags
		k := slices.IndexFunc(tags, func(v consensus.TagView) bool { return v.Tag == tag })
		if k < 0 {
			return nil
		}
		view = tags[k]
	}
	out := []attribute.KeyValue{
		attribute.String("numathrottle.tag", tag),
		attribute.Float64("numathrottle.demand", view.Asked), attribute.Float64("numathrottle.demand.here", own.Demand),
		attribute.Float64("numathrottle.used.here", own.Use),
		attribute.Float64("numathrottle.reserved", view.Reserved), attribute.Float64("numathrottle.total", view.Total),
		attribute.Float64("numathrottle.limiting", view.Taken), attribute.Float64("numathrottle.limiting.here", own.Limiting),
		attribute.Int("numathrottle.weight", view.Weight), attribute.String("numathrottle.class", string(view.Class)),
		attribute.Float64("numathrottle.target", own.Target), attribute.String("numathrottle.by", own.By),
		attribute.Float64("numathrottle.rate.here", own.Rate), attribute.Int64("numathrottle.in_hand", own.InHand),
	}
	if own.Budget > 0 {
		out = append(out, attribute.Int64("numathrottle.spent", own.Spent), attribute.Int64("numathrottle.budget", own.Budget))
	}
	return out
}

func rateOf(tokens int, per time.Duration) float64 { return float64(tokens) / per.Seconds() }

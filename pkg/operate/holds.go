package operate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A stoppage is what stops tags of a pool altogether, whatever the plan of their targets says.
type stoppage struct {
	all    throttle.Reason            // it stops all tags; empty: nothing does
	frozen bool                       // the store gives no tokens of tags
	tags   map[string]throttle.Reason // by keyOf
	names  map[string]string          // the names of these, as far as known
	pods   map[string]int             // that report to refuse or hold back calls of the tag for it
}

// stoppageOf returns what stops the tags of a pool with quotas q at now. Silent pods have no say.
func stoppageOf(o *Overview, q *throttle.Quotas, spent []Spent, now time.Time) stoppage {
	s := stoppage{frozen: o.Frozen > 0, tags: map[string]throttle.Reason{}, names: map[string]string{}, pods: map[string]int{}}
	var claimed driver.Share
	lacking := throttle.Reason("")
	for i := range o.Processors {
		p := &o.Processors[i]
		if p.Overdue {
			continue
		}
		if claimed += p.Claim; p.Throttled == throttle.ReasonNoShare || p.Throttled == throttle.ReasonFrozen {
			lacking = throttle.ReasonNoShare
		}
		if p.Throttled == throttle.ReasonBudget && p.Tag != "" {
			s.pods[s.stop(p.Tag, "", p.Throttled)]++
		}
	}
	for i := range spent {
		t := &spent[i]
		if _, own := q.Find(t.Tag); t.Hash == "" && !own.Shadow && slices.ContainsFunc(own.Budgets, func(b throttle.Budget) bool { return t.stops(b, now) }) {
			s.stop(t.Tag, t.Hash, throttle.ReasonBudget)
		}
	}
	for _, p := range poolview.PausesAt(o.Pauses, now) {
		if p.Tag == "" {
			s.all = throttle.ReasonPause
		} else {
			s.stop(p.Tag, "", throttle.ReasonPause)
		}
	}
	switch {
	case s.all != "" || claimed > 0:
	case s.frozen:
		s.all = throttle.ReasonFrozen
	default:
		s.all = lacking // without shares the pool may issue tokens one by one
	}
	return s
}

// stop notes why a tag is stopped, and returns its key.
func (s *stoppage) stop(tag, hash string, by throttle.Reason) (key string) {
	key = keyOf(tag, hash)
	if s.tags[key] = by; key != "" && hash == "" && tag != "#"+key {
		s.names[key] = tag
	}
	return key
}

// stops reports whether a budget of the tag is spent in its present window, and that stops the tag.
func (s *Spent) stops(b throttle.Budget, now time.Time) bool {
	start, end := b.Window(now)
	return b.Then != limit.ThenLower && slices.ContainsFunc(s.Windows, func(w SpentWindow) bool {
		return w.Start.Equal(start) && w.End.Equal(end) && w.Tokens >= b.Amount
	})
}

// keyOf returns the key of a tag in a stoppage: its hash, as pods report it, for a name may be known here and not there. The name TagOthers,
// and neither name nor hash, are all tags without a quota of their own.
func keyOf(tag, hash string) string {
	switch {
	case hash != "":
		return hash[:min(len(hash), hashLength)]
	case tag == "" || tag == protocol.TagOthers:
		return ""
	case len(tag) == 1+hashLength && tag[0] == '#': // a pod knows no name of it
		return tag[1:]
	}
	return fmt.Sprintf("%016x", tagname.Key(tag))[:hashLength]
}

// hashLength is how many digits of a hash pods report.
const hashLength = 10

// hold sets why nothing, or no more, is granted to a tag, where that is not what the plan says.
func (s *stoppage) hold(t *Tag) {
	by := s.all
	if own := s.tags[keyOf(t.Tag, t.Hash)]; own != "" && !t.Pattern && !t.Unnamed {
		by = cmp.Or(by, own)
		if name := s.names[t.Hash]; name != "" {
			t.Tag, t.Hash = name, "" // its pause or a pod says how it is called
		}
	}
	if least := min(t.Demand, max(t.Target, 0)); by == "" && s.frozen && t.By != "" && t.Used < 0.9*least {
		by = throttle.ReasonFrozen
	}
	if by != "" {
		t.Target, t.By = 0, string(by)
	}
}

// rest returns a tag for each that is stopped and asks for nothing that is counted, by rising name.
func (s *stoppage) rest(tags []Tag) (more []Tag) {
	for key := range s.tags {
		if slices.ContainsFunc(tags, func(t Tag) bool { return !t.Pattern && !t.Unnamed && keyOf(t.Tag, t.Hash) == key }) {
			continue
		}
		t := Tag{Tag: s.names[key], Pods: s.pods[key]}
		if t.Tag == "" {
			t.Hash = key
		}
		s.hold(&t)
		more = append(more, t)
	}
	slices.SortFunc(more, func(a, b Tag) int {
		return cmp.Or(cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Hash, b.Hash))
	})
	return more
}

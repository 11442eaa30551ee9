package throttle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Package limit defines quotas, with the unit, range and default of each field; here are their names for most users.
type (
	// A Quota is what one tag may use of a limit.
	Quota = limit.Quota

	// Quotas are the quotas of a whole limit: by name, by pattern, and for all other tags.
	Quotas = limit.Quotas

	// A QuotaPattern gives a quota to each tag whose name matches.
	QuotaPattern = limit.QuotaPattern

	// A Budget is an amount of tokens for each calendar hour, day or month.
	Budget = limit.Budget
)

// The classes of a Quota.
const (
	ClassInteractive = limit.ClassInteractive
	ClassBatch       = limit.ClassBatch
)

// WithQuotas gives tags quotas inside the limit: see [Throttle.ForTag]. Without it tags are only names, and all share the limit as they come.
// New returns an error that names every field of q out of bounds. Max 0 is an error too: there is nothing to divide.
// So are budgets with Replicas above 1, whose processors do not know what the others have spent.
//
// Of an [InFlight], the amounts are calls at once: see [InFlight.ForTag]. Its quotas have no Per, Burst, Budgets and Hard.
//
// With quotas the draws of the limiter itself have no tag: they count for [Quotas.Other].
func WithQuotas(q Quotas) Option { return func(o *settings) { o.quotas = &q } }

// CheckQuotas returns an error that names every field of q that is out of bounds for the limit, or nil. All that is reserved together is at
// most Rate, which is less than Max per Per for a hard limit. It does not check the limit by itself.
func (l Limit) CheckQuotas(q Quotas) error {
	if l.Hard {
		return q.ValidateHard(l.Max, l.Per, l.Rate())
	}
	return q.Validate(l.Max, l.Per)
}

// checkQuotas checks the quotas and fills in their defaults.
func (t *Throttle) checkQuotas() error {
	if t.quotas == nil {
		return nil
	}
	if t.limit.Max == 0 {
		return fmt.Errorf("throttle: quotas are given with max 0, allowed: with a limit")
	}
	if err := t.limit.CheckQuotas(*t.quotas); err != nil {
		return err
	}
	if s, is := t.sharer.(*static); is && s.share < wholeShare {
		if err := refuseBudgets(t.quotas); err != nil {
			return err
		}
	}
	q := t.quotas.WithDefaults(t.limit.Per)
	t.quotas = &q
	return nil
}

// refuseBudgets returns an error that names every budget of q, for processors that don't know what the others have spent; nil: there is none.
func refuseBudgets(q *Quotas) error {
	var errs []error
	refuse := func(setting string, q Quota) {
		if n := len(q.Budgets); n > 0 {
			errs = append(errs, fmt.Errorf("throttle: quotas.%s.budgets has length %d, allowed: 0 with Replicas above 1, which share no budget", setting, n))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Tags)) {
		refuse("tags."+name, q.Tags[name])
	}
	for i := range q.Match {
		refuse(fmt.Sprintf("match[%d]", i), q.Match[i].Quota)
	}
	refuse("other", q.Other)
	return errors.Join(errs...)
}

// SetQuotas replaces the quotas in force, because a pool has changed them. The new ones are valid and have their defaults filled in. The
// next draws of all limiters from ForTag and ForTags use them. Tags that no longer have a quota of their own then count as others. Waiting
// callers go on waiting for the same tokens.
func (t rateHolder) SetQuotas(q Quotas) {
	s := t.tags
	if s == nil || t.gate.Closed.Load() {
		return
	}
	s.mu.Lock()
	s.quotas = &q
	s.era.Add(1)
	s.change.Add(1)
	clear(s.limiters)
	clear(s.joint)
	s.unknown = 0
	inForce, gone := map[*tag]Quota{}, map[*tag]bool{}
	find := func(g *tag) (has bool) {
		name, own := q.Find(g.name)
		if has = name == g.name; !has {
			own = Quota{}.WithDefaults(t.limit.Per) // callers that wait for its tokens go on
		}
		inForce[g], gone[g] = own, !has
		return has
	}
	for _, g := range s.tags {
		s.remove(g)
		if find(g) {
			s.add(g, inForce[g])
		}
	}
	for i, g := range s.shared {
		if g != nil && !find(g) {
			s.shared[i] = nil
		}
	}
	s.mu.Unlock()
	now := t.gate.Now()
	for g, own := range inForce {
		g.setQuota(now, own, gone[g])
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	t.dismiss(now)
}

// setting names the place of a tag's quota below quotas in the configuration.
func (s *tagSet) setting(name string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, own := s.quotas.Tags[name]; own && name != "" {
		return "tags." + name
	}
	for i := range s.quotas.Match {
		if n, _ := (&Quotas{Match: s.quotas.Match[i : i+1]}).Find(name); n == name && name != "" {
			return fmt.Sprintf("match[%d]", i)
		}
	}
	return "other"
}

// setQuota puts another quota of the tag in force. gone says that the tag is no longer known. Nobody looks after it from then on, so
// refusals by the service must not hold it.
func (g *tag) setQuota(now int64, q Quota, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inForce.Store(&q)
	g.tagBucket.SetQuota(q)
	if gone && g.slow != nil {
		g.slow.single, g.slow.gone = ceiling.Single{}, true
		g.tagBucket.SetBound(now, 0)
	}
	g.changed(now)
}

package throttle

import (
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

// SetQuotas puts other quotas in force than those that the Throttle was made with: a pool has changed them. They are
// valid and have their defaults filled in. The next draws of all limiters that ForTag and ForTags have returned go by them; tags that
// have no quota of their own any more count as others then. Who waits already goes on to wait for the tokens it waits for.
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
			own = Quota{}.WithDefaults(t.limit.Per) // whoever waits for tokens of it goes on
		}
		inForce[g], gone[g] = own, !has
		return has
	}
	for name, g := range s.tags {
		if !find(g) {
			delete(s.tags, name)
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
	t.sendElsewhere(now)
}

// setting is where the quota of a tag stands below quotas.
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

// setQuota puts another quota of the tag in force. gone says that it is known no more: nobody looks after it from then on, so
// that nothing must hold it for what the service refuses.
func (g *tag) setQuota(now int64, q Quota, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inForce.Store(&q)
	g.stock.SetQuota(q)
	if gone && g.slow != nil {
		g.slow.single, g.slow.gone = ceiling.Single{}, true
		g.stock.SetBound(now, 0)
	}
	g.changed(now)
}

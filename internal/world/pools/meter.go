package pools

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A meter judges a tag with a total: level is how much more it has drawn than the total earns, from whenever that was most.
type meter struct {
	rate, burst float64

	mu           sync.Mutex
	level, worst float64
	at           time.Time
	largest      int
}

// meter returns the meter of a tag, or of all tags without a quota of their own; nil without a total.
func (p *pool) meter(tag string) *meter {
	if p.quotas == nil {
		return nil
	}
	tag, q := p.quotas.Find(tag)
	if m := p.meters[tag]; m != nil || q.Total <= 0 {
		return m
	}
	m := &meter{rate: float64(q.Total) / max(q.Per, time.Second).Seconds(), burst: float64(q.Burst), at: time.Now()}
	if q.Burst == 0 {
		m.burst = max(1, m.rate/10)
	}
	p.meters[tag] = m
	return m
}

func (m *meter) add(n int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.level = max(0, m.level-m.rate*now.Sub(m.at).Seconds()) + float64(n)
	m.worst, m.at, m.largest = max(m.worst, m.level), now, max(m.largest, n)
}

// A mint has the slots that the store has issued one by one to pods of one limit.
type mint struct {
	spacing time.Duration // 0: none, or there were different ones
	spoilt  bool          // nothing is judged

	mu    sync.Mutex
	slots []int64 // on the store's clock, in nanoseconds
}

// watch notes what the store issues to a pod.
func (m *mint) watch(l *throttle.Limit, link *world.Link) {
	spacing := time.Duration(float64(time.Second) / l.Rate())
	m.spoilt = m.spoilt || m.spacing > 0 && m.spacing != spacing
	m.spacing = spacing
	link.OnReserve(func(res *driver.Reserved, _ error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i := range res.Count {
			m.slots = append(m.slots, res.Time*1000+int64(res.Wait)+int64(i)*int64(res.Spacing))
		}
	})
}

// judge requires that no two slots are closer than the spacing.
func (m *mint) judge(t *testing.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spoilt {
		return
	}
	slices.Sort(m.slots)
	for i := 1; i < len(m.slots); i++ {
		require.GreaterOrEqual(t, time.Duration(m.slots[i]-m.slots[i-1]), m.spacing, "slot %d", i)
	}
}

// judge requires that no tag has drawn more in any time than its total allows: Q1.
func (p *pool) judge() {
	p.mint.judge(p.t)
	interval := wire.Interval(driver.DefaultLease, len(p.pods)).Seconds()
	for tag, m := range p.meters {
		m.mu.Lock()
		require.LessOrEqual(p.t, m.worst, m.rate*3.2*interval+m.burst+float64(m.largest), "%s drew more than its total", tag)
		m.mu.Unlock()
	}
}

package pools

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
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

// judge requires that no tag has drawn more in any time than its total allows: Q1.
func (p *pool) judge() {
	interval := wire.Interval(driver.DefaultLease, len(p.pods)).Seconds()
	for tag, m := range p.meters {
		require.LessOrEqual(p.t, m.worst, m.rate*3.2*interval+m.burst+float64(m.largest), "%s drew more than its total", tag)
	}
}

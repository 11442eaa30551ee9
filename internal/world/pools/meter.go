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

// A meter judges a tag with a total: level is how much more it has drawn than the total earns, from whenever that was most. Of slots it is how
// many are in use, and the total is those that may be.
type meter struct {
	rate, burst float64
	slots       int // 0: none

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
	if p.whole != nil {
		m.slots = q.Total
	}
	p.meters[tag] = m
	return m
}

// begin notes a call.
func (m *meter) begin(n int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.slots == 0 {
		m.level = max(0, m.level-m.rate*now.Sub(m.at).Seconds())
	}
	m.level += float64(n)
	m.worst, m.at, m.largest = max(m.worst, m.level), now, max(m.largest, n)
}

// end notes that it has ended.
func (m *meter) end(n int) {
	if m == nil || m.slots == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.level -= float64(n)
}

// allowed is the highest level; a call for slots waits for a total no longer than the calls before it take.
func (m *meter) allowed(interval time.Duration) float64 {
	if m.slots > 0 {
		return float64(m.slots)
	}
	return m.rate*3.2*interval.Seconds() + m.burst + float64(m.largest)
}

// A window judges a hard limit: the most that was granted in any of its periods.
type window struct {
	limit throttle.Limit

	mu          sync.Mutex
	grants      []grant
	level, most int
}

type grant struct {
	at time.Time
	n  int
}

func (w *window) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.limit.Hard {
		return
	}
	now := time.Now()
	w.grants = append(w.grants, grant{now, n})
	for w.level += n; !w.grants[0].at.After(now.Add(-max(w.limit.Per, time.Second))); w.grants = w.grants[1:] {
		w.level -= w.grants[0].n
	}
	w.most = max(w.most, w.level)
}

// A mint has the slots that the store has issued one by one to pods of one limit.
type mint struct {
	spacing time.Duration // 0: none

	mu    sync.Mutex
	slots []int64 // on the store's clock, in nanoseconds
}

// judgeBy judges grants and slots by the limit of a pod, unless there are different ones.
func (p *pool) judgeBy(l *throttle.Limit, link *world.Link) {
	m, spacing := &p.mint, time.Duration(float64(time.Second)/l.Rate())
	p.changed = p.changed || m.spacing > 0 && (m.spacing != spacing || p.window.limit.Hard != l.Hard)
	m.spacing = spacing
	p.window.mu.Lock()
	p.window.limit = *l
	p.window.mu.Unlock()
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
	slices.Sort(m.slots)
	for i := 1; i < len(m.slots); i++ {
		require.GreaterOrEqual(t, time.Duration(m.slots[i]-m.slots[i-1]), m.spacing, "slot %d", i)
	}
}

// judge requires that no tag has drawn more in any time than its total allows, Q1, nor had more slots; and that no more was granted under a
// hard limit than it says.
func (p *pool) judge() {
	if !p.changed {
		p.mint.judge(p.t)
		require.LessOrEqual(p.t, p.window.most, p.window.limit.Max, "granted in a period of a hard limit")
	}
	interval := wire.Interval(driver.DefaultLease, len(p.pods))
	if p.whole != nil {
		require.LessOrEqual(p.t, p.whole.worst, p.whole.allowed(interval), "calls in flight")
	}
	for tag, m := range p.meters {
		m.mu.Lock()
		require.LessOrEqual(p.t, m.worst, m.allowed(interval), "%s drew more than its total", tag)
		m.mu.Unlock()
	}
}

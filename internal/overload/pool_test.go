//go:build numathrottle_faults

package overload

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A holder uses every share that it is leased, to the end of its lease.
type holder struct {
	mu     sync.Mutex
	lease  limit.Lease
	lapses int // how often a lease ended without another
}

func (h *holder) Terms() sharing.Terms { return sharing.Terms{} }

func (h *holder) Report(time.Duration) sharing.Report {
	return sharing.Report{Demand: int64(driver.Whole), InUse: int64(h.share(time.Now()))}
}

func (h *holder) Lease(l limit.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lease.Share > 0 && l.Share == 0 {
		h.lapses++
	}
	h.lease = l
}

func (h *holder) ReportTags(time.Duration) []sharing.TagReport { return nil }
func (h *holder) GrantTags([]sharing.TagGrant)                 {}
func (h *holder) SetPauses([]limit.Paused)                     {}

func (h *holder) share(now time.Time) driver.Share {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.After(h.lease.Until) {
		return 0
	}
	return driver.Share(h.lease.Share)
}

// A pool is members of one pool, each with a holder, and what they ask of their store.
type pool struct {
	members []*consensus.Member
	holders []*holder
	asked   atomic.Int64 // syncs sent
	failed  atomic.Int64 // of these without an answer
}

// join adds members to the pool, spread over a time. stores are used in turn.
func (p *pool) join(t *testing.T, stores []driver.Store, n int, over time.Duration) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	for i := range n {
		h := &holder{}
		m, err := consensus.Join(t.Context(), p.link(stores[i%len(stores)]), "overload",
			consensus.WithID(fmt.Sprintf("my-pipeline-my-vertex-%04d-abcde", len(p.members))),
			consensus.WithOnStoreLoss(consensus.Stop), consensus.WithLogger(quiet))
		require.NoError(t, err)
		m.Attach(h)
		p.members, p.holders = append(p.members, m), append(p.holders, h)
		time.Sleep(over / time.Duration(n))
	}
}

// link returns a way to a store that counts.
func (p *pool) link(s driver.Store) *world.Link {
	l := world.NewLink(s)
	l.OnSync(func(_ *driver.Answer, err error) {
		p.asked.Add(1)
		if err != nil {
			p.failed.Add(1)
		}
	})
	return l
}

// leave ends the members, all at once.
func (p *pool) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var left sync.WaitGroup
	for _, m := range p.members {
		left.Go(func() { _ = m.Leave(ctx) })
	}
	left.Wait()
}

// use is the part of the limit in use, from 0 to 1, and holding the number of members with a share.
func (p *pool) use() (use float64, holding int) {
	now := time.Now()
	for _, h := range p.holders {
		if s := h.share(now); s > 0 {
			use += s.Fraction()
			holding++
		}
	}
	return use, holding
}

// steady is how many syncs per second the pool needs.
func (p *pool) steady() float64 {
	return float64(len(p.members)) / wire.Interval(driver.DefaultLease, len(p.members)).Seconds()
}

// lapses counts the leases that have ended, over the first n members.
func (p *pool) lapses(n int) (sum int) {
	for _, h := range p.holders[:n] {
		h.mu.Lock()
		sum += h.lapses
		h.mu.Unlock()
	}
	return sum
}

// A span is what was seen of a pool over a time.
type span struct {
	use           float64       // on average
	least         float64       // the worst tenth of a second
	asked, failed float64       // syncs per second
	holding       int           // members with a share, at the end
	full          time.Duration // until the use was full for good; negative: it was not at the end
}

func (s span) String() string {
	return fmt.Sprintf("use %.3f (least %.3f), %.0f asked and %.0f failed per second, %d hold a share, full after %v",
		s.use, s.least, s.asked, s.failed, s.holding, s.full.Round(100*time.Millisecond))
}

// full is the use that counts as all of it.
const full = 0.97

// watch looks at the pool for a time.
func (p *pool) watch(d time.Duration) span {
	const every = 100 * time.Millisecond
	s := span{least: 2}
	asked, failed, looks, begun := p.asked.Load(), p.failed.Load(), 0, time.Now()
	var use float64
	for tick := time.NewTicker(every); time.Since(begun) < d; <-tick.C {
		use, s.holding = p.use()
		s.use, s.least = s.use+use, min(s.least, use)
		if use < full {
			s.full = time.Since(begun) + every
		}
		looks++
	}
	if use < full {
		s.full = -1
	}
	took := time.Since(begun).Seconds()
	s.use /= float64(looks)
	s.asked, s.failed = float64(p.asked.Load()-asked)/took, float64(p.failed.Load()-failed)/took
	return s
}

// settle waits until the pool's limit is in use and every member has a share.
func (p *pool) settle(t *testing.T, within time.Duration) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		use, holding := p.use()
		if use >= full && holding == len(p.members) {
			t.Logf("settled after %v", time.Since(begun).Round(100*time.Millisecond))
			return
		}
		if time.Since(begun) > within {
			t.Logf("not settled after %v: use %.3f, %d of %d hold a share, %d asked, %d failed",
				within, use, holding, len(p.members), p.asked.Load(), p.failed.Load())
			return
		}
	}
}

package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Clocks may run so much fast or slow.
const drift = 0.0833

// clockedStep is how often the pods look at their clocks.
const clockedStep = 50 * time.Millisecond

// A clockedPod is a processor with a clock of its own, and one call of tag a.
type clockedPod struct {
	*Processor

	rate    float64 // of its clock
	waits   int64   // tokens that its call waits for
	late    bool    // the call uses its tokens at the last moment
	batches []sharing.Batch
}

// clockedPods are processors on one record. The store's clock is true, and messages take no time.
type clockedPods struct {
	t      *testing.T
	record driver.Record
	pods   []*clockedPod
	now    time.Duration
	nonce  uint64
	used   []int64 // in each step
}

// newClockedPods returns two groups of pods: the clocks of the first are slow, and their calls late. Those of the second are fast.
func newClockedPods(t *testing.T, q limit.Quota, lease time.Duration, each int) *clockedPods {
	t.Helper()
	testkit.SkipRace(t, "all pods run in one goroutine")
	c := &clockedPods{t: t}
	l := throttle.Limit{Max: 1000, Per: time.Second}
	quotas := limit.Quotas{Tags: map[string]limit.Quota{"a": q}}
	require.NoError(t, quotas.Validate(l.Max, l.Per))
	quotas = quotas.WithDefaults(l.Per)
	for i := range 2 * each {
		p := &clockedPod{rate: 1 - drift, late: true}
		if i >= each {
			p.rate, p.late = 1+drift, false
		}
		p.Processor = NewProcessor(ProcessorConfig{Pool: "pool", ID: fmt.Sprint(i), Lease: lease, OnStoreLoss: Stop}, "1")
		p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, l)), Quotas: &quotas})
		c.pods = append(c.pods, p)
	}
	return c
}

func (c *clockedPods) run(d time.Duration) {
	c.t.Helper()
	for end := c.now + d; c.now < end; c.now += clockedStep {
		used := int64(0)
		for _, p := range c.pods {
			local := time.Duration(float64(c.now) * p.rate)
			if p.Next(local, 0.5) <= local {
				c.sync(p, local)
			}
			p.receive(local)
			used += p.use(local)
		}
		c.used = append(c.used, used)
	}
}

func (c *clockedPods) sync(p *clockedPod, local time.Duration) {
	c.t.Helper()
	c.nonce++
	report := sharing.TagReport{Tag: "a", Waiting: p.waits, Head: p.waits, Line: p.waits}
	for _, l := range p.batches {
		report.InHand += l.Tokens
	}
	p.Yield(local, driver.Whole, []sharing.TagReport{report})
	req := p.Request(local, c.nonce, Observation{Demand: driver.Whole})
	require.NoError(c.t, req.Validate())
	ans, _ := c.record.Sync(&req, driver.At{Now: tagBase.UnixMicro() + c.now.Microseconds()})
	require.NoError(c.t, p.Take(local, ans, fmt.Sprint("again", c.nonce)))
}

func (p *clockedPod) receive(local time.Duration) {
	for _, g := range p.Orders(local, 0, tagBase).Grants {
		if g.Tag == "a" && g.Batch.Tokens > 0 {
			p.batches = append(p.batches, g.Batch)
		}
	}
}

// use lets the call use its tokens: at once, or at the last moment.
func (p *clockedPod) use(local time.Duration) (tokens int64) {
	at := tagBase.Add(local)
	for i := range p.batches {
		l := &p.batches[i]
		if at.Before(l.From) || !at.Before(l.Until) || p.late && at.Before(l.Until.Add(-2*clockedStep)) {
			continue
		}
		tokens += l.Tokens
		l.Tokens = 0
	}
	p.waits = max(p.waits-tokens, 0)
	return tokens
}

// worst is the most that was used in a window.
func (c *clockedPods) worst(window time.Duration) (most int64) {
	sum, n := int64(0), int(window/clockedStep)
	for i, u := range c.used {
		if sum += u; i >= n {
			sum -= c.used[i-n]
		}
		most = max(most, sum)
	}
	return most
}

// queued lets the calls of all pods wait in turn, those of the slow clocks first, and returns how many tokens are lost. Each call waits
// until its tokens are earned: half of the pods for so long that their clocks are apart by more than tokens are good for.
func (c *clockedPods) queued(cost int64, wait time.Duration) (lost int64) {
	c.t.Helper()
	c.run(18 * time.Second) // until the freeze of the new record is over
	each := len(c.pods) / 2
	for _, group := range [][]*clockedPod{c.pods[:each], c.pods[each:]} {
		for _, p := range group {
			p.waits = cost
		}
		c.run(3 * time.Second)
	}
	c.run(wait)
	for _, p := range c.pods {
		lost += p.waits
	}
	return lost
}

// overTotal returns how much more than its total a tag used whose calls wait for long by clocks that run apart; empty for none.
func overTotal(t *testing.T, windows ...time.Duration) string {
	t.Helper()
	const cost = 29
	q := limit.Quota{Total: 20, Per: sec, Burst: 2}
	c := newClockedPods(t, q, 3*sec, 20)
	require.Zero(t, c.queued(cost, 80*time.Second), "each call gets its tokens")
	h := wire.Interval(3*sec, len(c.pods))
	for _, w := range windows {
		allowed := 20*(w.Seconds()+2*h.Seconds()/(1-drift)+h.Seconds()) + 2 + cost
		if used := c.worst(w); float64(used) > allowed {
			return fmt.Sprintf("%d tokens are used within %v, allowed are %.1f", used, w, allowed)
		}
	}
	return ""
}

// Q1: what is set aside for long is used by the store's clock.
func TestCallsThatWaitForLongKeepATotal(t *testing.T) {
	require.Empty(t, overTotal(t, sec, 3*sec, 6*sec, 10*sec, 30*sec))
}

// A hard total is kept in any window of its period, too.
func TestCallsThatWaitForLongKeepAHardTotal(t *testing.T) {
	c := newClockedPods(t, limit.Quota{Total: 300, Per: 20 * sec, Burst: 30, Hard: true}, 10*sec, 36)
	require.Zero(t, c.queued(30, 5*time.Minute), "each call gets its tokens")
	require.LessOrEqual(t, c.worst(20*sec), int64(300))
}

// What is set aside comes when the newest answer says, whatever the local clock showed before, and is good for two intervals from then.
func TestWhatIsSetAsideFollowsTheStoresClock(t *testing.T) {
	for name, c := range map[string]struct{ local, store time.Duration }{
		"fast": {30 * sec, 28 * sec}, "slow": {26 * sec, 28 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			k := keep(t, one(10))
			k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 200, Head: 200})
			k.gives(10*sec, 10*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 200, From: 20 * sec}) // at 30 s, on the store's clock
			copied := k.tagBook
			k.take(c.local, c.local-sec/10, sec, &driver.Answer{Time: c.store.Microseconds(), Wall: wallZero})
			g := k.grants(tagBase, c.local)[0]
			require.Equal(t, tagBase.Add(c.local+2*sec), g.Again)
			require.Zero(t, k.batches(c.local+2*sec-1))
			k.take(c.local+sec, c.local+sec, sec, &driver.Answer{Time: (c.store + sec).Microseconds(), Wall: wallZero})
			g = k.grants(tagBase, c.local+2*sec)[0]
			require.Equal(t, sharing.Batch{Tokens: 200, From: tagBase.Add(c.local + 2*sec), Until: tagBase.Add(c.local + 3*sec)}, g.Batch, "a fresh answer too")
			require.Equal(t, 30*sec, copied.accounts[0].reserved[0].from, "a copy keeps its state")
		})
	}
}

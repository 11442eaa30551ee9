package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A nameTrial is a pool in which many names of a pattern ask for a quarter of their totals each, beside two tags by name that ask for
// more than theirs: one has a total, and the other one a budget as well.
type nameTrial struct {
	names, pods int
	limit       int
	replaced    bool // pods are replaced one after the other
}

const (
	nameTotal  = 30 // per minute
	acmeTotal  = 100
	paidBudget = 1000
	namesFrom  = 14 * time.Second // when all names have come
	namesUntil = 30 * time.Second // two turns of all names later
)

func (c nameTrial) String() string {
	return fmt.Sprintf("%d names on %d pods, a limit of %d", c.names, c.pods, c.limit)
}

// TestNamesAndTagsByName: however many names there are, tags by name have what is theirs, the limit is used, and names are served alike.
func TestNamesAndTagsByName(t *testing.T) {
	for _, c := range []nameTrial{{0, 2, 1600, true}, {2000, 3, 1600, true}, {10_000, 1, 1600, false}} {
		t.Run(c.String(), func(t *testing.T) {
			if c.names > 2000 {
				testkit.SkipShort(t, "ten thousand names")
				testkit.SkipRace(t, "two thousand names run with it")
			}
			synctest.Test(t, c.run)
		})
	}
}

func (c nameTrial) run(t *testing.T) {
	store, q := memstore.New(), throttle.Quotas{
		Tags: map[string]throttle.Quota{
			"acme": {Total: acmeTotal},
			"paid": {Total: acmeTotal, Budgets: []throttle.Budget{{Amount: paidBudget, Per: "day"}}},
		},
		Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: nameTotal, Per: time.Minute}}},
	}
	p := &tagPool{began: time.Now()}
	start := func(id string) (*throttle.Throttle, *consensus.Member) {
		m, err := consensus.Join(t.Context(), store, "pool", consensus.WithID(id))
		require.NoError(t, err)
		th, err := throttle.New(throttle.Limit{Max: c.limit}, throttle.WithSharer(m), throttle.WithQuotas(q))
		require.NoError(t, err)
		return th, m
	}
	var members []*consensus.Member
	for i := range c.pods {
		th, m := start(fmt.Sprint("pod-", i))
		p.pods, members = append(p.pods, th), append(members, m)
	}
	reasons := map[throttle.Reason]int{}
	ask := func(tag string, pod int) {
		l := p.pods[pod].ForTag(tag)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			_, err := l.Acquire(ctx, 1)
			p.mu.Lock()
			defer p.mu.Unlock()
			if e := (*throttle.Error)(nil); errors.As(err, &e) {
				reasons[e.Reason]++
			} else if err == nil {
				p.grants = append(p.grants, grantOf{time.Since(p.began), tag, 1})
			}
		}()
	}
	// In eight seconds each name asks once, which is a quarter of what it may: each time at another pod.
	perTick, name, calls, replacements := float64(c.names)/800, 0, 0.0, 0
	for tick := 0; time.Since(p.began) < namesUntil; tick++ {
		for calls += perTick; calls >= 1; calls-- {
			ask(fmt.Sprint("free/", name%c.names), (name+name/c.names)%c.pods)
			name++
		}
		if tick > 900 { // the table of names is full when these come
			ask("acme", 0)
			ask("acme", c.pods-1)
			ask("paid", tick%c.pods)
		}
		if c.replaced && tick > 1200 && tick%400 == 0 && replacements < 3 {
			i := replacements % c.pods
			require.NoError(t, p.pods[i].Close())
			require.NoError(t, members[i].Leave(t.Context()))
			replacements++
			p.pods[i], members[i] = start(fmt.Sprint("new-", replacements))
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(5 * time.Second)
	span := namesUntil - namesFrom
	demand := min(c.limit, int(perTick*100)+acmeTotal)
	t.Logf("used %d of %d, acme %d, paid %d, reasons %v", p.between("", namesFrom, namesUntil), demand*int(span.Seconds()),
		p.between("acme", namesFrom, namesUntil), p.between("paid", 0, time.Hour), reasons)
	assert.GreaterOrEqual(t, p.between("", namesFrom, namesUntil), demand*int(span.Seconds())*9/10, "the limit is used")
	if c.names > 0 {
		c.requireFair(t, p)
	}
	if c.limit > demand {
		c.requireTagsByName(t, p)
	}
	for i := range p.pods {
		require.NoError(t, p.pods[i].Close())
		require.NoError(t, members[i].Leave(t.Context()))
	}
}

// requireTagsByName fails unless those have what their quotas say, and no more.
func (c nameTrial) requireTagsByName(t *testing.T, p *tagPool) {
	t.Helper()
	if !c.replaced {
		assert.GreaterOrEqual(t, p.between("acme", namesFrom, namesUntil), acmeTotal*int((namesUntil-namesFrom).Seconds())*95/100)
	}
	least := acmeTotal * 10 * 9 / 10
	if c.replaced { // two pods in these seconds: each takes with it what it had drawn, and what was set aside for its callers
		least -= 2 * acmeTotal
	}
	assert.GreaterOrEqual(t, p.between("acme", namesUntil-10*time.Second, namesUntil), least)
	assert.LessOrEqual(t, p.worst("acme", 5*time.Second), totalBound(acmeTotal, 5*time.Second, 10, 1))
	assert.LessOrEqual(t, p.between("paid", 0, time.Hour), paidBudget)
	assert.GreaterOrEqual(t, p.between("paid", 0, time.Hour), paidBudget*7/10)
}

// requireFair fails unless names get about as much as each other, and none more than its total.
func (c nameTrial) requireFair(t *testing.T, p *tagPool) {
	t.Helper()
	got := make(map[string]int, c.names)
	for _, g := range p.grants {
		if g.tag != "acme" && g.tag != "paid" && g.at >= namesFrom {
			got[g.tag]++
		}
	}
	sum, squares := 0.0, 0.0
	for _, n := range got {
		sum, squares = sum+float64(n), squares+float64(n*n)
		assert.LessOrEqual(t, n, totalBound(nameTotal/60.0, 50*time.Second, 1, 1))
	}
	assert.Greater(t, len(got)*100, c.names*99, "nearly all names are served")
	assert.Greater(t, sum*sum/squares/float64(c.names), 0.9, "Jain's index")
}

// A grantOf is tokens that were granted to a tag.
type grantOf struct {
	at  time.Duration
	tag string
	n   int
}

// A tagPool is a pool of pods with quotas.
type tagPool struct {
	began  time.Time
	pods   []*throttle.Throttle
	mu     sync.Mutex
	grants []grantOf
}

// between counts the tokens granted to a tag in a span; all tags when it is empty.
func (p *tagPool) between(tag string, from, until time.Duration) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.grants {
		if g.at >= from && g.at < until && (tag == "" || g.tag == tag) {
			n += g.n
		}
	}
	return n
}

// worst is the most that a tag was granted in any window of length w.
func (p *tagPool) worst(tag string, w time.Duration) (most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.grants, func(a, b grantOf) int { return int(a.at - b.at) })
	sum, first := 0, 0
	for _, g := range p.grants {
		if g.tag == tag {
			sum += g.n
		}
		for p.grants[first].at <= g.at-w {
			if p.grants[first].tag == tag {
				sum -= p.grants[first].n
			}
			first++
		}
		most = max(most, sum)
	}
	return most
}

// The interval of a pool with the default lease and few pods, and what a draw is good for.
const (
	tagInterval = 1100 * time.Millisecond
	tagValid    = 2 * tagInterval
)

// totalBound is Q1: the most that a window may see of a total.
func totalBound(total float64, w time.Duration, burst, largest int) int {
	return int(total*(w.Seconds()+tagValid.Seconds()*1.0833+tagInterval.Seconds())) + burst + largest
}

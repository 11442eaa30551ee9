package shell

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A hardRun is a pool of Members under a hard limit, and what its callers were
// granted.
type hardRun struct {
	began  time.Time
	mu     sync.Mutex
	grants []hardGrant
	waited []time.Duration // of those that call now and then
}

type hardGrant struct {
	at     time.Duration
	tokens int
}

// call draws without end, with a pause after each call.
func (r *hardRun) call(t *testing.T, th *throttle.Throttle, cost int, pause time.Duration) {
	for {
		asked := time.Now()
		p, err := th.Acquire(t.Context(), cost)
		if err != nil {
			return // the test has ended
		}
		r.mu.Lock()
		r.grants = append(r.grants, hardGrant{time.Since(r.began), p.N()})
		if pause > 0 {
			r.waited = append(r.waited, time.Since(asked))
		}
		r.mu.Unlock()
		time.Sleep(pause)
	}
}

// used is what was granted from a moment to another, and most the largest sum in
// any window of length per.
func (r *hardRun) used(from, to, per time.Duration) (used, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.grants, func(a, b hardGrant) int { return cmp.Compare(a.at, b.at) })
	sum, first := 0, 0
	for _, g := range r.grants {
		sum += g.tokens
		for ; r.grants[first].at <= g.at-per; first++ {
			sum -= r.grants[first].tokens
		}
		most = max(most, sum)
		if g.at > from && g.at <= to {
			used += g.tokens
		}
	}
	return used, most
}

// Pools of Members use what the formula says under a hard limit when all are busy,
// and never more than Max in a period. Whoever calls now and then gets a share that
// is worth a call within a second or two, and leaves most of it unused.
func TestHardLimit(t *testing.T) {
	for _, tc := range []struct {
		limit        throttle.Limit
		greedy       int // processors that take all they can
		sparse, cost int // those that call twice in ten seconds, and the cost of every call
		atLeast      float64
	}{
		{throttle.Limit{Max: 100}, 4, 0, 1, 0.97},
		{throttle.Limit{Max: 600, Per: time.Minute}, 4, 0, 1, 0.97},
		{throttle.Limit{Max: 60, Per: time.Minute}, 8, 0, 1, 0.95},
		{throttle.Limit{Max: 100}, 1, 0, 1, 0.97},
		{throttle.Limit{Max: 100}, 1, 4, 1, 0.75}, // each of the four holds a tenth while it draws
		{throttle.Limit{Max: 100}, 0, 10, 1, 0},
		{throttle.Limit{Max: 6000, Per: time.Minute, Burst: 600}, 4, 0, 100, 0.9},
		{throttle.Limit{Max: 6000, Per: time.Minute, Burst: 600}, 1, 3, 100, 0.75}, // a sixth
	} {
		l := tc.limit
		l.Hard = true
		t.Run(fmt.Sprintf("%+v %d greedy %d sparse cost %d", tc.limit, tc.greedy, tc.sparse, tc.cost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, r := memstore.New(), &hardRun{began: time.Now()}
				var calls sync.WaitGroup
				var ths []*throttle.Throttle
				for i := range tc.greedy + tc.sparse {
					m, err := consensus.Join(t.Context(), store, "pool",
						consensus.WithID(fmt.Sprint("p", i)), consensus.WithOnStoreLoss(consensus.Stop))
					require.NoError(t, err)
					th, err := throttle.New(l, throttle.WithSharer(m), throttle.OnClose(m.Leave))
					require.NoError(t, err)
					ths = append(ths, th)
					pause := time.Duration(0)
					if i >= tc.greedy {
						pause = 5*time.Second + time.Duration(i)*77*time.Millisecond
					}
					calls.Go(func() { r.call(t, th, tc.cost, pause) })
				}
				const warm, length = 30 * time.Second, 2 * time.Minute
				time.Sleep(warm + length)
				used, most := r.used(warm, warm+length, ths[0].Limit().Per)
				for _, th := range ths {
					require.NoError(t, th.Close())
				}
				calls.Wait()

				part := float64(used) / (l.Rate() * length.Seconds())
				slices.Sort(r.waited)
				longest := time.Duration(0)
				if len(r.waited) > 0 {
					longest = r.waited[len(r.waited)-1]
				}
				t.Logf("%.3f of the lowered rate, %.3f of max; most in a period %d of %d; %d calls now and then waited for %v at most",
					part, part*l.Rate()*ths[0].Limit().Per.Seconds()/float64(l.Max), most, l.Max, len(r.waited), longest)
				require.LessOrEqual(t, most, l.Max)
				require.GreaterOrEqual(t, part, tc.atLeast)
				if tc.sparse > 0 {
					require.GreaterOrEqual(t, len(r.waited), tc.sparse*12, "who calls now and then starves")
				}
			})
		})
	}
}

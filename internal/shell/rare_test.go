package shell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	rareInterval = driver.DefaultLease / 10
	rareRemoval  = driver.DefaultLease * 3 / 2
	rareDeadline = 4 * time.Second // of calls that have to be granted
	rareSpan     = 3 * time.Minute
)

// rareQuotas are quotas of each kind alone, for the tag acme/1 of a limit of top per second. The tag hog has none that could hold it.
func rareQuotas(top int) map[string]throttle.Quotas {
	one := func(q throttle.Quota) throttle.Quotas {
		return throttle.Quotas{Tags: map[string]throttle.Quota{"acme/1": q}}
	}
	hog := map[string]throttle.Quota{"hog": {}}
	return map[string]throttle.Quotas{
		"empty":    one(throttle.Quota{}),
		"weight":   one(throttle.Quota{Weight: 3}),
		"reserved": one(throttle.Quota{Reserved: top / 2}),
		"total":    one(throttle.Quota{Total: top / 2}),
		"budget":   one(throttle.Quota{Budgets: []throttle.Budget{{Amount: 1_000_000, Per: limit.PeriodDay}}}),
		"pattern":  {Match: []limit.QuotaPattern{{Tag: "acme/*", Quota: throttle.Quota{Total: top / 2}}}, Tags: hog},
		"other":    {Other: throttle.Quota{Total: top / 2}, Tags: hog},
	}
}

// A rareWorld is a pool with quotas whose busy pods draw for the tag hog all the time. Its rare pods are idle, then make one call for acme/1.
type rareWorld struct {
	t      *testing.T
	plan   plan
	kind   string
	quotas throttle.Quotas
	server *server
	start  time.Time
	r      *rand.Rand      // of the main goroutine
	ctx    context.Context //nolint:containedctx // it ends with the run
	live   []*rarePod
	pods   int
	users  sync.WaitGroup

	mu        sync.Mutex
	unsteady  time.Time // the last moment of a fault that takes from the pool; calls are judged a removal time later
	wrong     []string
	judged    map[string]int // calls that had to be granted, by what their pod was before
	refusals  int            // whose RetryAfter was judged
	unsteadyN int            // calls that were not judged
}

// A rarePod is a pod of a rareWorld.
type rarePod struct {
	id   string
	busy bool
	link *link
	th   *throttle.Throttle
	stop context.CancelFunc
}

func newRareWorld(t *testing.T, seed uint64) *rareWorld {
	r := rand.New(rand.NewPCG(seed, 4))
	top := []int{50, 100}[r.IntN(2)]
	w := &rareWorld{t: t, r: r, start: time.Now(), judged: map[string]int{}}
	w.plan = plan{seed: seed, limit: throttle.Limit{Max: top}, longest: driver.DefaultLease, storeRate: 1, knownNew: true}
	w.plan.store = []storeKind{storeTimed, storeDeferred}[r.IntN(2)]
	w.plan.up = network{least: time.Millisecond, mean: time.Duration(r.IntN(20)) * time.Millisecond, again: 0.05}
	w.plan.down = w.plan.up
	kinds := rareQuotas(top)
	w.kind = slices.Sorted(maps.Keys(kinds))[seed%uint64(len(kinds))] // seven seeds in a row have all
	w.quotas = kinds[w.kind]
	w.server = newServer(&w.plan)
	return w
}

// join starts a pod. A rare one calls at once, and again each time that it has been idle. steady tells whether the pool is, but for what made
// the pod start.
func (w *rareWorld) join(id, state string, busy, steady bool) {
	w.pods++
	r := rand.New(rand.NewPCG(w.plan.seed, uint64(1000+w.pods)))
	p := &rarePod{id: id, busy: busy, link: newLink(w.server, &w.plan, rand.New(rand.NewPCG(w.plan.seed, uint64(2000+w.pods))))}
	m, err := consensus.Join(w.ctx, p.link, "pool", consensus.WithID(id), consensus.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(w.t, err)
	p.th, err = throttle.New(w.plan.limit, throttle.WithSharer(m), throttle.OnClose(m.Leave), throttle.WithQuotas(w.quotas))
	require.NoError(w.t, err)
	var ctx context.Context
	ctx, p.stop = context.WithCancel(w.ctx)
	w.live = append(w.live, p)
	if busy {
		for range 4 {
			w.users.Go(func() {
				for ctx.Err() == nil {
					_, _ = p.th.ForTag("hog").Acquire(ctx, 1)
				}
			})
		}
		return
	}
	w.users.Go(func() {
		for ctx.Err() == nil {
			w.callAt(ctx, p, state, steady, r)
			idle := []time.Duration{time.Second, 10 * time.Second, driver.DefaultLease + time.Second}[r.IntN(3)]
			state = "idle"
			select {
			case <-ctx.Done():
			case <-time.After(idle):
			}
			steady = w.steady()
		}
	})
}

// callAt makes a call that has time, or one that has little, and judges it.
func (w *rareWorld) callAt(pod context.Context, p *rarePod, state string, steady bool, r *rand.Rand) {
	n := []int{1, 5, w.plan.limit.Max / 10}[r.IntN(3)]
	deadline := []time.Duration{rareDeadline, rareDeadline, rareInterval / 2, time.Millisecond}[r.IntN(4)]
	ctx, cancel := context.WithTimeout(pod, deadline)
	defer cancel()
	began := time.Now()
	_, err := p.th.ForTag("acme/1").Acquire(ctx, n)
	waited := time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	if pod.Err() != nil {
		return
	}
	if !steady || w.unsteady.After(began) {
		w.unsteadyN++
		return
	}
	wrong := func(what string) {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: a call of %d tokens with a deadline of %s at %s (%s) %s after %s: %v",
			began.Sub(w.start), n, deadline, p.id, state, what, waited, err))
	}
	if deadline == rareDeadline {
		if w.judged[state]++; err != nil && state != "killed" { // what a killed pod held may keep its successor waiting
			wrong("is refused")
		}
	}
	// Besides its own tokens a call waits at most for those of the pod's last call.
	most := 2*time.Duration(w.plan.limit.Max/10)*time.Second/time.Duration(w.plan.limit.Max/2) + 2*rareInterval
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		if w.refusals++; e.RetryAfter > most {
			wrong(fmt.Sprintf("is to come again in %s, more than %s,", e.RetryAfter, most))
		}
	} else if err != nil {
		wrong("fails")
	}
}

// steady reports whether the last fault was a removal time ago.
func (w *rareWorld) steady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.unsteady) >= rareRemoval
}

// shake notes a fault.
func (w *rareWorld) shake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsteady = time.Now()
}

// kill has a pod end without a word.
func (w *rareWorld) kill(p *rarePod) {
	w.shake()
	close(p.link.dead)
	p.stop()
	w.live = slices.DeleteFunc(w.live, func(o *rarePod) bool { return o == p })
	w.users.Go(func() { _ = p.th.Close() })
}

// happen lets something happen, and takes as long as that does.
func (w *rareWorld) happen() {
	p, steady := w.live[w.r.IntN(len(w.live))], w.steady()
	switch k := w.r.IntN(8); {
	case k < 4: // what it held is lost for a removal time
		w.kill(p)
		time.Sleep(time.Duration(w.r.Int64N(int64(2 * time.Second))))
		w.join(p.id, "killed", p.busy, steady && !p.busy)
	case k < 6:
		if p.busy {
			return
		}
		p.stop()
		w.live = slices.DeleteFunc(w.live, func(o *rarePod) bool { return o == p })
		_ = p.th.Close()
		w.join(fmt.Sprintf("q%02d", w.pods), "new", false, steady)
	case k < 7:
		p.link.setCut(true, w.r.IntN(2) == 0)
		for range 1 + w.r.IntN(15) {
			w.shake()
			time.Sleep(time.Second)
		}
		p.link.setCut(false, false)
		w.shake()
	default:
		w.server.set(func() { w.server.silent = true })
		for range 1 + w.r.IntN(15) {
			w.shake()
			time.Sleep(time.Second)
		}
		w.server.set(func() { w.server.silent = false })
		w.shake()
	}
}

// run makes the run.
func (w *rareWorld) run() {
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(context.Background())
	w.shake()
	for i := range 2 + w.r.IntN(5) {
		w.join(fmt.Sprintf("p%02d", i), "new", i < 1 || i > 1 && w.r.IntN(2) == 0, false)
	}
	for time.Since(w.start) < rareSpan {
		time.Sleep(time.Second + exponential(w.r, 15*time.Second))
		w.happen()
	}
	cancel()
	for _, p := range w.live {
		_ = p.th.Close()
	}
	w.users.Wait()
}

// TestRareCalls: with quotas of each kind, a call with a deadline at a pod that was idle or has just started gets its tokens if the pool is
// steady, whatever happened to it before. No call, also at a pod that was killed and started again, is told to come again later than the limit,
// or the tag's total, takes to serve the queue, and two intervals.
func TestRareCalls(t *testing.T) {
	first, runs, one := wanted(t)
	if !one {
		runs = max(7, runs/10)
	}
	judged := map[string]int{}
	var refusals, unsteady int
	var wrong []string
	for seed := first; seed < first+runs; seed++ {
		synctest.Test(t, func(t *testing.T) {
			w := newRareWorld(t, seed)
			w.run()
			for _, what := range w.wrong {
				wrong = append(wrong, fmt.Sprintf("seed %d, %s, %d per second, %d pods: %s", seed, w.kind, w.plan.limit.Max, len(w.live), what))
			}
			for state, n := range w.judged {
				judged[state] += n
			}
			refusals, unsteady = refusals+w.refusals, unsteady+w.unsteadyN
		})
	}
	t.Logf("%d runs: %v calls had to be granted, %d refusals, %d calls while the pool was not steady", runs, judged, refusals, unsteady)
	require.Empty(t, wrong)
	if runs >= 7 {
		require.NotZero(t, refusals)
		require.NotZero(t, judged["idle"])
	}
	if runs >= 20 { // few runs may have none
		require.NotZero(t, judged["new"])
		require.NotZero(t, judged["killed"])
	}
}

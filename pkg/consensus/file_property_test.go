package consensus_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An edited is a file of several processes, which get each edit late, as a kubelet brings it: every minute or so, what there was some time ago.
type edited struct {
	rng    *rand.Rand
	began  time.Time
	limits []int // by edit; all differ from their neighbours, and some are there twice
	at     []time.Duration
	ends   time.Duration
}

// sight is the longest time until a kubelet has brought an edit.
const sight = 85 * time.Second

// content is what the file was at a time.
func (e *edited) content(at time.Duration) (limit int) {
	limit = e.limits[0]
	for i := range e.at {
		if e.at[i] <= at {
			limit = e.limits[i]
		}
	}
	return limit
}

// follow brings a process its file until ctx ends.
func (e *edited) follow(ctx context.Context, m *world.File, from int, phase time.Duration, lag func() time.Duration) {
	for has := from; world.Sleep(ctx, max(phase, 1)) == nil; phase = time.Minute {
		now := time.Since(e.began)
		if is := e.content(now - lag()); is != has {
			has = is
			m.Change(is)
		}
	}
}

// most returns the limit that may be in force at a time: that of the newest edit, or of one that some process may still have.
func (e *edited) most(at time.Duration) (limit int) {
	for t := at; t >= at-sight-12*time.Second; t -= time.Second {
		limit = max(limit, e.content(t))
	}
	return limit
}

// Whatever is edited, however late processes see it and whichever of them restart, the pool grants no more than the file has allowed of late,
// and ends at the last edit.
func TestEditsHoldTheBound(t *testing.T) {
	for seed := range testkit.Fewer(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testEdits(t, uint64(seed)) })
		})
	}
}

func testEdits(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 50))
	s := world.NewServer()
	e := &edited{rng: rng, began: time.Now(), limits: []int{100}, at: []time.Duration{0}}
	values := []int{20, 50, 100, 150}
	for at := time.Duration(0); len(e.limits) < 7; {
		at += time.Duration(30+rng.IntN(240)) * time.Second
		if next := values[rng.IntN(len(values))]; next != e.limits[len(e.limits)-1] {
			e.limits, e.at = append(e.limits, next), append(e.at, at)
		}
	}
	e.ends = e.at[len(e.at)-1] + 4*time.Minute
	const pods = 3
	nodes, mounts := make([]*node, pods), make([]*world.File, pods)
	lagOf := func() func() time.Duration {
		own := rand.New(rand.NewPCG(seed, rng.Uint64()))
		return func() time.Duration { return time.Duration(own.IntN(20)) * time.Second }
	}
	start := func(i int) {
		now := e.content(time.Since(e.began)) // a new pod's mount is as new as its start
		mounts[i] = world.NewFile(now)
		nodes[i] = filed(t, s, fmt.Sprint("p", i), mounts[i])
		go e.follow(t.Context(), mounts[i], now, time.Duration(rng.IntN(60))*time.Second, lagOf())
	}
	for i := range pods {
		start(i)
	}
	restart := time.Duration(60+rng.IntN(120)) * time.Second
	var total, gone int64
	var samples []int64
	const step = 500 * time.Millisecond
	for time.Since(e.began) < e.ends {
		time.Sleep(step)
		if time.Since(e.began) > restart && restart < e.ends-3*time.Minute {
			restart += time.Duration(60+rng.IntN(200)) * time.Second
			i := rng.IntN(pods)
			require.NoError(t, nodes[i].th.Close())
			gone += nodes[i].used.Load()
			start(i)
		}
		total = gone
		for _, n := range nodes {
			total += n.used.Load()
		}
		samples = append(samples, total)
	}
	requireLimit(t, float64(e.limits[len(e.limits)-1]), nodes...)

	allowed := make([]float64, len(samples)+1) // until each sample
	for i := range samples {
		at := time.Duration(i+1) * step
		allowed[i+1] = allowed[i] + float64(max(e.most(at), e.most(at-step)))*step.Seconds()
	}
	const burst = 150/10 + pods
	for i := range samples {
		for _, span := range []int{1, 2, 7, 40, 200} {
			if k := i + span; k < len(samples) {
				require.LessOrEqual(t, float64(samples[k]-samples[i]), allowed[k+1]-allowed[i+1]+burst,
					"from %v to %v", time.Duration(i+1)*step, time.Duration(k+1)*step)
			}
		}
	}
	o, err := protocol.LoadOverview(t.Context(), s, "pool")
	require.NoError(t, err)
	require.Equal(t, e.limits[len(e.limits)-1], o.Max)
}

// filed starts a process that was opened with the limit of its file.
func filed(t *testing.T, s driver.Store, id string, m *world.File) *node {
	t.Helper()
	return limited(t, s, id, throttle.Limit{Max: m.File().Max}, 4, protocol.WithFiles(m))
}

// settled gives a pool the time to act on a change.
func settled() { time.Sleep(5 * time.Second) }

// requireLimit fails unless all have that limit, and after a while still have.
func requireLimit(t *testing.T, want float64, nodes ...*node) {
	t.Helper()
	settled()
	for range 2 {
		for _, n := range nodes {
			require.InDelta(t, want, n.perSecond(), 1e-6)
		}
		time.Sleep(20 * time.Second)
	}
}

// perSecond is the limit that a process has in force, in tokens per second.
func (n *node) perSecond() float64 {
	o := (*protocol.View)(viewOf(n)).Overview()
	return float64(o.Max) / o.Per.Seconds()
}

func viewOf(n *node) *consensus.View { v := n.m.View(); return &v }

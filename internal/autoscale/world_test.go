package autoscale

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A vertex is a throttled map with a buffer before it, which a scaler scales.
type vertex struct {
	t           *testing.T
	limit       throttle.Limit
	concurrency int           // calls at once in one pod
	takes       time.Duration // one call
	lookback    time.Duration
	scaler      scaler

	reads int // messages per second that Numaflow lets a pod read; 0: any number

	store   *memstore.Store
	buffer  chan struct{}
	done    atomic.Int64
	pods    []*pod
	started int
	counts  []int64 // done, every five seconds
	scaled  time.Time
	ending  sync.WaitGroup
}

// countInterval is how often the daemon reads the counters of the pods.
const countInterval = 5 * time.Second

// A pod is a process of the vertex. It has as many messages in flight as the vertex' limits.concurrency.
type pod struct {
	th   *throttle.Throttle
	stop context.CancelFunc
	work sync.WaitGroup
}

func (v *vertex) start() *pod {
	name := fmt.Sprintf("map-%d", v.started)
	v.started++
	log := slog.New(slog.DiscardHandler)
	member, err := consensus.Join(v.t.Context(), v.store, "pool", consensus.WithID(name), consensus.WithLogger(log))
	require.NoError(v.t, err)
	metered := hook.WithMeter(v.concurrency).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
	th, err := throttle.New(v.limit, throttle.WithSharer(member), throttle.OnClose(member.Leave), metered)
	require.NoError(v.t, err)
	ctx, stop := context.WithCancel(v.t.Context())
	p := &pod{th: th, stop: stop}
	handler := mapper.Wrap(mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages {
		time.Sleep(v.takes)
		return mapsdk.MessagesBuilder()
	}), th)
	reads := rate.NewLimiter(rate.Inf, 0)
	if v.reads > 0 {
		reads = rate.NewLimiter(rate.Limit(v.reads), v.reads)
	}
	for range v.concurrency {
		p.work.Go(func() {
			for reads.Wait(ctx) == nil {
				select {
				case <-ctx.Done():
					return
				case <-v.buffer:
					handler.Map(v.t.Context(), nil, nil)
					v.done.Add(1)
				}
			}
		})
	}
	return p
}

// end drains a pod: what it has begun it ends.
func (p *pod) end(t *testing.T) {
	p.stop()
	p.work.Wait()
	assert.NoError(t, p.th.Close())
}

// scale starts and ends pods. Like Numaflow it ends those that came last.
func (v *vertex) scale(to int) {
	if to == len(v.pods) {
		return
	}
	v.scaled = time.Now()
	for len(v.pods) < to {
		v.pods = append(v.pods, v.start())
	}
	for len(v.pods) > to {
		last := v.pods[len(v.pods)-1]
		v.pods = v.pods[:len(v.pods)-1]
		v.ending.Go(func() { last.end(v.t) })
	}
}

// rate is what the daemon says: messages per second over the lookback, by counters that are up to two intervals old.
func (v *vertex) rate() float64 {
	last := len(v.counts) - 2
	first := max(last-int(v.lookback/countInterval), 0)
	if last <= first {
		return -1
	}
	return float64(v.counts[last]-v.counts[first]) / (float64(last-first) * countInterval.Seconds())
}

// A phase is how many messages arrive per second, for how long. Negative: the buffer is kept full.
type phase struct {
	lasts  time.Duration
	arrive float64
}

// A record is the state of the vertex at one moment.
type record struct {
	at   time.Duration
	pods int
	done int64
}

// run plays the phases, and returns a record for every second.
func (v *vertex) run(phases ...phase) (records []record) {
	v.store, v.buffer, v.scaled = memstore.New(), make(chan struct{}, bufferLength), time.Now().Add(-time.Hour)
	began := time.Now()
	due := 0.0
	v.scale(1)
	for _, ph := range phases {
		for range int(ph.lasts / time.Second) {
			due += max(ph.arrive, 0)
			for ; due >= 1; due-- {
				v.buffer <- struct{}{}
			}
			for ph.arrive < 0 && len(v.buffer) < bufferUsage {
				v.buffer <- struct{}{}
			}
			time.Sleep(time.Second)
			at := time.Since(began)
			if at%countInterval == 0 {
				v.counts = append(v.counts, v.done.Load())
			}
			if at%v.scaler.every() == 0 {
				v.scale(v.scaler.next(v.view()))
			}
			records = append(records, record{at, len(v.pods), v.done.Load()})
		}
	}
	v.scale(0)
	v.ending.Wait()
	return records
}

func (v *vertex) view() view {
	see := view{rate: v.rate(), pending: len(v.buffer), replicas: len(v.pods), since: time.Since(v.scaled)}
	for _, p := range v.pods {
		if pods, ok := hook.PodsWanted(p.th); ok {
			see.wanted = append(see.wanted, pods)
		}
	}
	return see
}

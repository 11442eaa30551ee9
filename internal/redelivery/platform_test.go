package redelivery

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A vertex is what is measured, and its settings.
type vertex struct {
	kind        string
	mono        bool // a MonoVertex with a user-defined source; else a vertex of a pipeline
	readAhead   bool
	batch       int // readBatchSize
	concurrency int // limits.concurrency, or what the buffer has unacknowledged
	readTimeout time.Duration

	limit   throttle.Limit
	beside  bool // the limit is one of three, in an All
	maxWait time.Duration
	pods    int           // of one pool
	killed  time.Duration // when the first one dies; 0: none does
	paused  time.Duration // when the limit is paused for ten seconds; 0: it is not
	emptied time.Duration // when the store forgets everything, so that the pool is frozen; 0: it does not
	// offered are the messages that are there at first; perSecond come later, until all have.
	messages, offered int
	perSecond         float64
}

// A tally is what came of the messages.
type tally struct {
	use        float64 // of the limit, from the first delivery to the last one's handling
	deliveries float64 // of a message on average
	most       int     // of one message
	// away is how long a message stayed away at most, as a part of what all messages took that were not handled when it was nacked.
	away float64
}

// A run is a vertex at work.
type run struct {
	vertex

	buffer buffer
	mu     sync.Mutex
	sent   []int // deliveries of each message
	left   int   // not handled yet
	away   float64
	began  time.Time
	ended  time.Duration
	all    chan struct{} // closed when all are handled
}

// A pod handles messages, and tells of each the delay of its nack; negative: it was handled.
type pod func(ids []int) []time.Duration

// measure runs the vertex until all messages are handled.
func measure(t *testing.T, v vertex) (out tally) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &run{vertex: v, sent: make([]int, v.messages), left: v.messages, all: make(chan struct{})}
		var pods []pod
		for _, l := range v.pool(t) {
			defer func() { require.NoError(t, l.Close()) }()
			pods = append(pods, newPod(t, v.kind, v.among(t, l), v.maxWait))
		}
		r.buffer.mixed = v.mono
		r.began = time.Now()
		var workers sync.WaitGroup
		workers.Go(r.offer)
		for i, p := range pods {
			if v.killed > 0 && i == 0 {
				p = r.mortal(p)
			}
			workers.Go(func() { r.work(p) })
		}
		<-r.all
		workers.Wait()
		out = r.tally()
	})
	return out
}

func (r *run) tally() tally {
	out, sum := tally{away: r.away}, 0
	for _, n := range r.sent {
		sum += n
		out.most = max(out.most, n)
	}
	out.deliveries = float64(sum) / float64(r.messages)
	out.use = float64(r.messages) / (r.limit.Rate() * r.ended.Seconds()) // the bucket is empty at first
	return out
}

// pool returns the limiters of the pods: one pool on a store, which has begun.
func (v *vertex) pool(t *testing.T) []*throttle.Throttle {
	t.Helper()
	store, other := memstore.New(), driver.Store(memstore.New())
	all := make([]*throttle.Throttle, v.pods)
	for i := range all {
		kept := world.NewLink(store)
		if i == 0 && v.killed > 0 {
			time.AfterFunc(begins+v.killed, func() { kept.Dead.Store(true) })
		}
		opts := []consensus.Option{consensus.WithID(fmt.Sprintf("pod-%d", i))}
		if v.emptied > 0 {
			time.AfterFunc(begins+v.emptied, func() { kept.Instead.Store(&other) })
			opts = append(opts, consensus.WithOnStoreLoss(consensus.Stop))
		}
		m, err := consensus.Join(t.Context(), kept, "nacks", opts...)
		require.NoError(t, err)
		all[i], err = throttle.New(v.limit, throttle.WithSharer(m), throttle.OnClose(m.Leave))
		require.NoError(t, err)
	}
	if v.paused > 0 {
		time.AfterFunc(begins+v.paused, func() {
			_, err := all[0].Pause(t.Context(), time.Now().Add(10*time.Second), "a test")
			require.NoError(t, err)
		})
	}
	time.Sleep(begins)
	return all
}

// begins is how long a pool's beginning takes.
const begins = 20 * time.Second

// among puts the limit beside wider ones: on requests, and on calls in flight where the wrapper knows when one has ended.
func (v *vertex) among(t *testing.T, l throttle.Limiter) throttle.Limiter {
	t.Helper()
	if !v.beside {
		return l
	}
	calls, err := throttle.New(throttle.Limit{Max: 3 * v.limit.Max})
	require.NoError(t, err)
	if v.kind == batchMap || v.kind == sink {
		return throttle.All(throttle.PerCall(calls), l)
	}
	slots, err := throttle.NewInFlight(10_000)
	require.NoError(t, err)
	return throttle.All(throttle.PerCall(slots), throttle.PerCall(calls), l)
}

func (r *run) offer() {
	for id := range r.messages {
		if id >= r.offered {
			time.Sleep(time.Duration(float64(time.Second) / r.perSecond))
		}
		r.buffer.put(id, false)
	}
}

func (r *run) over() bool {
	select {
	case <-r.all:
		return true
	default:
		return false
	}
}

// handle has a pod handle messages, and books what became of them.
func (r *run) handle(p pod, ids []int) {
	r.mu.Lock()
	for _, id := range ids {
		r.sent[id]++
	}
	r.mu.Unlock()
	for i, delay := range p(ids) {
		if delay >= 0 {
			r.mu.Lock()
			if r.left == 0 { // it is a dead pod's
				r.mu.Unlock()
				continue
			}
			r.away = max(r.away, (delay-2*r.maxWait).Seconds()/(float64(r.left)/r.limit.Rate()))
			r.mu.Unlock()
			time.AfterFunc(delay, func() { r.buffer.put(ids[i], true) })
			continue
		}
		r.mu.Lock()
		r.left--
		if r.left == 0 {
			r.ended = time.Since(r.began)
			close(r.all)
		}
		r.mu.Unlock()
	}
}

// mortal is a pod that dies: what it has then comes again when the platform misses it.
func (r *run) mortal(p pod) pod {
	return func(ids []int) []time.Duration {
		if time.Since(r.began) < r.killed {
			return p(ids)
		}
		for _, id := range ids {
			time.AfterFunc(r.maxWait, func() { r.buffer.put(id, true) })
		}
		<-r.all
		return slices.Repeat([]time.Duration{time.Hour}, len(ids))
	}
}

// work is the life of a pod.
func (r *run) work(p pod) {
	switch {
	case r.mono:
		r.monoVertex(p)
	case r.kind == batchMap, r.kind == sink:
		r.chunks(p)
	default:
		r.singles(p)
	}
}

// singles is a map vertex of a pipeline: a place for each message, as many as a batch are free before it reads.
func (r *run) singles(p pod) {
	places := make(chan struct{}, r.concurrency)
	var calls sync.WaitGroup
	defer calls.Wait()
	for !r.over() {
		for range r.batch {
			places <- struct{}{}
		}
		ids := r.buffer.read(r.batch, r.readTimeout, true)
		for range r.batch - len(ids) {
			<-places
		}
		for _, id := range ids {
			calls.Go(func() {
				r.handle(p, []int{id})
				<-places
			})
		}
	}
}

// chunks is a batch map or a sink of a pipeline: one chunk at a time, while the next ones are read.
func (r *run) chunks(p pod) {
	read := make(chan int, r.batch)
	places := make(chan struct{}, r.concurrency)
	go func() {
		defer close(read)
		for !r.over() {
			for range r.batch {
				places <- struct{}{}
			}
			ids := r.buffer.read(r.batch, r.readTimeout, true)
			for range r.batch - len(ids) {
				<-places
			}
			for _, id := range ids {
				read <- id
			}
		}
	}()
	for {
		chunk := collect(read, r.batch, r.readTimeout)
		if len(chunk) == 0 {
			return
		}
		r.handle(p, chunk)
		for range chunk {
			<-places
		}
	}
}

// collect waits for a chunk: n messages, or what comes within timeout of the first.
func collect(read <-chan int, n int, timeout time.Duration) (chunk []int) {
	first, ok := <-read
	if !ok {
		return nil
	}
	chunk = append(chunk, first)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for len(chunk) < n {
		select {
		case id, ok := <-read:
			if !ok {
				return chunk
			}
			chunk = append(chunk, id)
		case <-timer.C:
			return chunk
		}
	}
	return chunk
}

// monoVertex reads a batch, has it mapped and written, and reads the next one then; with read-ahead at once, while there
// are places.
func (r *run) monoVertex(p pod) {
	places := make(chan struct{}, r.concurrency)
	var cycles sync.WaitGroup
	defer cycles.Wait()
	for !r.over() {
		ids := r.buffer.read(r.batch, r.readTimeout, false)
		for range ids {
			places <- struct{}{}
		}
		cycle := func() {
			r.cycle(p, ids)
			for range ids {
				<-places
			}
		}
		if r.readAhead {
			cycles.Go(cycle)
			continue
		}
		cycle()
	}
}

// cycle is a batch on its way. All of it is acknowledged or nacked at its end.
func (r *run) cycle(p pod, ids []int) {
	if len(ids) == 0 {
		return
	}
	flush := time.Duration(0)
	if len(ids) < r.batch && !r.readAhead {
		flush = r.readTimeout // the sink waits for a whole chunk
	}
	if r.kind == batchMap || r.kind == sink {
		r.handle(p, ids)
		time.Sleep(flush)
		return
	}
	var calls sync.WaitGroup
	for _, id := range ids {
		calls.Go(func() { r.handle(p, []int{id}) })
	}
	calls.Wait()
	time.Sleep(flush)
}

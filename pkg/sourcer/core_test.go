package sourcer_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
)

// A core plays the platform's core around a source, with a sink that takes a moment for a
// chunk: it reads a batch when it has a permit for it, the messages are put together
// again to chunks that are full or readTimeout old, and a batch is over, and its permit
// free, when all of it was written.
type core struct {
	batch   int
	permits int           // batches in flight: 1 without read-ahead
	timeout time.Duration // readTimeout
	write   time.Duration // for a chunk
	slow    bool          // the source may take longer than it is given
}

// fast is a core that hands on a batch of any size at once.
func (c core) fast() core {
	c.timeout = 0
	return c
}

// readTimeout is what the source is told.
func (c core) readTimeout() time.Duration {
	if c.timeout == 0 {
		return time.Second
	}
	return c.timeout
}

// arrivals are the messages of some cores, with their times.
type arrivals struct {
	mu    sync.Mutex
	at    []time.Duration // of each Read that brought some
	n     []int           // messages of it
	reads int
	empty int

	longest time.Duration // Read
}

// run reads the source for d of virtual time.
func (c core) run(t *testing.T, s sourcesdk.Sourcer, d time.Duration, began time.Time, a *arrivals) {
	t.Helper()
	end := time.Now().Add(d)
	if c.timeout == 0 {
		for time.Now().Before(end) {
			if c.read(t, s, began, a) > 0 {
				time.Sleep(c.write) // virtual
			}
		}
		return
	}
	permits := make(chan struct{}, c.permits)
	messages := make(chan *sync.WaitGroup, 2*c.batch)
	var sink, acks sync.WaitGroup
	sink.Go(func() { c.sink(messages) })
	for time.Now().Before(end) {
		permits <- struct{}{}
		n := c.read(t, s, began, a)
		batch := &sync.WaitGroup{}
		batch.Add(n)
		for range n {
			messages <- batch
		}
		acks.Go(func() {
			batch.Wait()
			<-permits
		})
		if c.permits == 1 {
			acks.Wait()
		}
	}
	close(messages)
	sink.Wait()
	acks.Wait()
}

func (c core) read(t *testing.T, s sourcesdk.Sourcer, began time.Time, a *arrivals) int {
	t.Helper()
	o := <-read(context.Background(), s, uint64(c.batch), c.readTimeout())
	require.True(t, o.returned)
	if !c.slow {
		require.LessOrEqual(t, o.took, c.readTimeout(), "longer than a Read may take")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	a.longest = max(a.longest, o.took)
	if len(o.values) == 0 {
		a.empty++
		return 0
	}
	a.at, a.n = append(a.at, time.Since(began)), append(a.n, len(o.values))
	return len(o.values)
}

// sink writes chunks.
func (c core) sink(messages <-chan *sync.WaitGroup) {
	for open := true; open; {
		var chunk []*sync.WaitGroup
		var late <-chan time.Time
		for full := false; !full; {
			select {
			case m, ok := <-messages:
				if !ok {
					full, open = true, false
					break
				}
				if len(chunk) == 0 {
					late = time.After(c.timeout)
				}
				chunk = append(chunk, m)
				full = len(chunk) == c.batch
			case <-late:
				full = true
			}
		}
		time.Sleep(c.write) // virtual
		for _, m := range chunk {
			m.Done()
		}
	}
}

// between counts the messages from one time to another.
func (a *arrivals) between(from, to time.Duration) int {
	sum := 0
	for i, at := range a.at {
		if at >= from && at < to {
			sum += a.n[i]
		}
	}
	return sum
}

// worst is the most messages in any window of a length.
func (a *arrivals) worst(length time.Duration) int {
	order := make([]int, len(a.at))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return int(a.at[i] - a.at[j]) })
	worst, sum, first := 0, 0, 0
	for _, i := range order {
		sum += a.n[i]
		for a.at[order[first]] <= a.at[i]-length {
			sum -= a.n[order[first]]
			first++
		}
		worst = max(worst, sum)
	}
	return worst
}

package redelivery

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A desk models a limiter that was not built: it reserves a token for each message that it nacks, and hands it over when a message with the
// same ID comes again. A token that nobody fetches is lost.
type desk struct {
	each, burst, maxWait time.Duration

	mu    sync.Mutex
	last  time.Time // when the last reserved token is due
	due   map[int]time.Time
	calls []time.Time
}

func (d *desk) pod(ids []int) []time.Duration {
	until, out := time.Now().Add(d.maxWait), make([]time.Duration, len(ids))
	for i, id := range ids {
		due := d.reserve(id)
		if due.After(until) {
			out[i] = time.Until(due) - d.maxWait/2 // the lead of the wrappers
			continue
		}
		time.Sleep(time.Until(due))
		d.mu.Lock()
		d.calls = append(d.calls, time.Now())
		d.mu.Unlock()
		out[i] = handled
	}
	return out
}

// reserve returns when the message's token is due.
func (d *desk) reserve(id int) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	due, again := d.due[id]
	if again {
		return due
	}
	due = d.last.Add(d.each)
	if first := time.Now().Add(-d.burst); due.Before(first) {
		due = first
	}
	d.last, d.due[id] = due, due
	return due
}

// excess is by how many calls a window of d has more than the rate at most. The limit allows the burst.
func (d *desk) excess() (most float64) {
	for i, from := range d.calls {
		for j, to := range d.calls[i:min(i+200, len(d.calls))] {
			most = max(most, float64(j+1)-float64(to.Sub(from))/float64(d.each))
		}
	}
	return most
}

// reserved measures a vertex with reservations: of the whole pool, where a hand-over between pods takes no time, or of each pod.
func reserved(t *testing.T, v vertex, whole bool) (out tally, excess float64) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		r := &run{vertex: v, sent: make([]int, v.messages), left: v.messages, all: make(chan struct{}), began: time.Now()}
		r.buffer.mixed = v.mono
		each := time.Second / rate
		if !whole {
			each *= time.Duration(v.pods)
		}
		var d *desk
		var workers sync.WaitGroup
		workers.Go(r.offer)
		for range v.pods {
			if d == nil || !whole {
				d = &desk{each: each, burst: max(each, 100*time.Millisecond), maxWait: v.maxWait, last: r.began, due: map[int]time.Time{}}
			}
			p := d.pod
			workers.Go(func() { r.work(p) })
		}
		<-r.all
		workers.Wait()
		out, excess = r.tally(), d.excess()
	})
	return out, excess
}

// A nacked message could have a reservation: a token drawn ahead for its next delivery, and handed over by its ID. In a model where the
// hand-over between pods costs nothing the limit is used up. The calls exceed the rate by the tokens of the time for which messages come
// late, as with a burst of readTimeout. Where each pod knows only its own reservations, most messages come to another pod. And wrappers
// that wait use the limit without any of it.
func TestNackWithAReservation(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for _, c := range []struct {
		kind       string
		where, how setting
	}{
		{unaryMap, pipeline, asItIs},
		{unaryMap, pipeline, shortRead},
		{sink, pipeline, shortRead},
		{sink, pipeline, asItIs},
		{batchMap, pipeline, asItIs},
		{unaryMap, monoVertex, asItIs},
		{sink, monoVertex, asItIs},
	} {
		for _, pods := range []int{1, 4, 8} {
			v, name := newVertex(c.kind, 40, c.where, c.how)
			v.pods, v.messages, v.offered = pods, 3200, 3200
			whole, excess := reserved(t, v, true)
			own, _ := reserved(t, v, false)
			name = fmt.Sprintf("%s, %d pods", name, pods)
			v.maxWait = 0
			waits := measure(t, v)
			t.Logf("%-50s handed over: use %.2f, %.0f calls above the rate; in its pod: use %.2f, deliveries %.2f; waiting: use %.2f",
				name, whole.use, excess, own.use, own.deliveries, waits.use)
			require.GreaterOrEqual(t, whole.use, 0.98, name)
		}
	}
}

package dataplane

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
)

// A Queue is a source of messages from 0 to n-1. Each message is its number, and comes until it is acknowledged. Fields may be set before
// the first call, and the counts read after the last.
type Queue struct {
	// Before is called by each Read; nil: nothing is.
	Before func()
	// Again is after how long a message comes again that was not settled; 0: never.
	Again time.Duration
	// OnAck is called with a message that is acknowledged for the first time; nil: nothing is.
	OnAck func(id string)
	// Headers are those of all messages.
	Headers map[string]string

	// Asked is the count of each Read, Acked how often each message was acknowledged. Refused are the nacks.
	Asked   []uint64
	Acked   map[string]int
	Refused []sourcesdk.NackOffset

	mu    sync.Mutex
	ready []string
	given []delivery // and not settled, by time
}

type delivery struct {
	id string
	at time.Time
}

// NewQueue returns a source of n messages but for those that were acknowledged before.
func NewQueue(n int, acked ...string) *Queue {
	q := &Queue{Acked: map[string]int{}}
	for _, id := range acked {
		q.Acked[id]++
	}
	for i := range n {
		if id := strconv.Itoa(i); q.Acked[id] == 0 {
			q.ready = append(q.ready, id)
		}
	}
	return q
}

// Read waits for its time when there is no message.
func (q *Queue) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	if q.Before != nil {
		q.Before()
	}
	q.mu.Lock()
	q.Asked = append(q.Asked, r.Count())
	q.mu.Unlock()
	timeout := time.NewTimer(r.TimeOut())
	defer timeout.Stop()
	for range r.Count() {
		id, ok := q.next()
		if !ok {
			select {
			case <-timeout.C:
			case <-ctx.Done():
			}
			return
		}
		m := sourcesdk.NewMessage([]byte(id), sourcesdk.NewOffset([]byte(id), 3), time.Unix(1000, 0)).
			WithKeys([]string{"k"}).WithHeaders(q.Headers)
		select {
		case out <- m:
		case <-ctx.Done():
			return
		}
	}
}

func (q *Queue) next() (id string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.Again > 0 && len(q.given) > 0 && time.Since(q.given[0].at) > q.Again {
		q.ready = append(q.ready, q.given[0].id)
		q.given = q.given[1:]
	}
	for len(q.ready) > 0 && q.Acked[q.ready[0]] > 0 {
		q.ready = q.ready[1:]
	}
	if len(q.ready) == 0 {
		return "", false
	}
	id, q.ready = q.ready[0], q.ready[1:]
	q.given = append(q.given, delivery{id, time.Now()})
	return id, true
}

// Ack implements sourcer.Sourcer.
func (q *Queue) Ack(_ context.Context, r sourcesdk.AckRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range r.Offsets() {
		id := string(o.Value())
		if q.Acked[id]++; q.Acked[id] == 1 && q.OnAck != nil {
			q.OnAck(id)
		}
		q.settled(id)
	}
}

// Nack lets the messages come again.
func (q *Queue) Nack(_ context.Context, r sourcesdk.NackRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range r.Offsets() {
		id := string(o.Offset.Value())
		q.Refused = append(q.Refused, o)
		q.ready = append(q.ready, id)
		q.settled(id)
	}
}

func (q *Queue) settled(id string) {
	q.given = slices.DeleteFunc(q.given, func(d delivery) bool { return d.id == id })
}

// Pending implements sourcer.Sourcer.
func (q *Queue) Pending(context.Context) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.ready))
}

// ActivePartitions and TotalPartitions are made up.
func (*Queue) ActivePartitions(context.Context) []int32 { return []int32{3, 4} }

// TotalPartitions is seven.
func (*Queue) TotalPartitions(context.Context) *int32 { return new(int32(7)) }

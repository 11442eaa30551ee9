package natsstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const (
	// pace is how often a processor syncs, and misses how often in a row it may
	// be too late: its lease bears more.
	pace   = time.Second
	misses = 2
)

// testHundred lets a hundred processors sync as the members of a pool do, each in
// the time that a member has for it. On a machine where servers and processors
// get too little of the processor between them, it lets fewer.
func testHundred(t *testing.T, on target) {
	conns := make([]*nats.Conn, 10) // shared, to spare the machine
	for i := range conns {
		conns[i] = connect(t, on.urls)
	}
	processors := max(5, min(100, int(pace/(10*timeOfLoneSync(t, on)))))
	var missed atomic.Int64
	var wg sync.WaitGroup
	for i := range processors {
		s, err := New(conns[i%len(conns)], WithBucket(on.bucket), WithLogger(silent))
		require.NoError(t, err)
		wg.Go(func() { syncAtPace(t, s, nameOf(i), &missed) })
	}
	wg.Wait()
	t.Logf("%d processors: %d deadlines missed", processors, missed.Load())
}

// timeOfLoneSync lets a hundred processors join one after the other, and returns
// the time that most of the last syncs stay below.
func timeOfLoneSync(t *testing.T, on target) time.Duration {
	s := open(t, on)
	var took []time.Duration
	for i := range 100 {
		begun := time.Now()
		mustSync(t, s, slow(request("p", nameOf(i), 1)))
		took = append(took, time.Since(begun))
	}
	took = took[50:]
	slices.Sort(took)
	return took[len(took)*3/4]
}

func nameOf(i int) string { return fmt.Sprintf("my-pipeline-my-vertex-%03d-abcde", i) }

// syncAtPace syncs three times, out of step with the others.
func syncAtPace(t *testing.T, s *Store, id string, late *atomic.Int64) {
	joined, req := request("p", id, 1), slow(request("p", id, 2))
	req.Unanswered = []driver.Ticket{{Seq: joined.Seq, Nonce: joined.Nonce}}
	next := time.Now().Add(time.Duration(rand.Int64N(int64(pace))))
	for range 3 {
		<-time.After(time.Until(next))
		next = next.Add(pace*9/10 + time.Duration(rand.Int64N(int64(pace/5))))
		for missed := 0; ; missed++ {
			ans, err := trySync(s, req)
			if err == nil {
				if !assert.Equal(t, driver.Granted, ans.Status) {
					return
				}
				req = follow(req, ans)
				req.InUse = 0
				break
			}
			late.Add(1)
			if !assert.Less(t, missed, misses, "%s: %v", id, err) {
				return
			}
			req.Unanswered = append(slices.Clone(req.Unanswered), driver.Ticket{Seq: req.Seq, Nonce: req.Nonce})
			req.Seq++
			req.Nonce++
		}
	}
}

package natsstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const (
	// pace is how often a processor syncs, and misses how often in a row it may
	// be too late: its lease bears more.
	pace   = time.Second
	misses = 2
)

// testHundred lets a hundred processors sync as the members of a pool do, each in the time that a member has for it. On a machine where
// servers and processors get too little of the processor between them, it lets fewer. The machine may have got more to do since that was
// measured, and then it tries again.
func testHundred(t *testing.T, on target) {
	conns := make([]*nats.Conn, 10) // shared, to spare the machine
	for i := range conns {
		conns[i] = connect(t, on.urls)
	}
	var err error
	for _, pool := range []string{"p", "q", "r"} {
		errs := make([]error, max(5, min(100, int(pace/(10*timeOfLoneSync(t, on, pool))))))
		var wg sync.WaitGroup
		for i := range errs {
			s, err := New(conns[i%len(conns)], WithBucket(on.bucket), WithLogger(silent))
			require.NoError(t, err)
			wg.Go(func() { errs[i] = syncAtPace(s, pool, nameOf(i)) })
		}
		wg.Wait()
		err = errors.Join(errs...)
		t.Logf("%d processors: %v", len(errs), err)
		if err == nil {
			return
		}
	}
	require.NoError(t, err)
}

// timeOfLoneSync lets a hundred processors join one after the other, and returns
// the time that most of the last syncs stay below.
func timeOfLoneSync(t *testing.T, on target, pool string) time.Duration {
	s := open(t, on)
	var took []time.Duration
	for i := range 100 {
		begun := time.Now()
		mustSync(t, s, slow(request(pool, nameOf(i), 1)))
		took = append(took, time.Since(begun))
	}
	took = took[50:]
	slices.Sort(took)
	return took[len(took)*3/4]
}

func nameOf(i int) string { return fmt.Sprintf("my-pipeline-my-vertex-%03d-abcde", i) }

// syncAtPace syncs three times, out of step with the others.
func syncAtPace(s *Store, pool, id string) error {
	joined, req := request(pool, id, 1), slow(request(pool, id, 2))
	req.Unanswered = []driver.Ticket{{Seq: joined.Seq, Nonce: joined.Nonce}}
	next := time.Now().Add(time.Duration(rand.Int64N(int64(pace))))
	for range 3 {
		<-time.After(time.Until(next))
		next = next.Add(pace*9/10 + time.Duration(rand.Int64N(int64(pace/5))))
		ans, err := trySync(s, req)
		for missed := 0; err != nil; missed++ {
			if missed == misses {
				return fmt.Errorf("%s: %w", id, err)
			}
			req.Unanswered = append(slices.Clone(req.Unanswered), driver.Ticket{Seq: req.Seq, Nonce: req.Nonce})
			req.Seq++
			req.Nonce++
			ans, err = trySync(s, req)
		}
		if ans.Status != driver.Granted {
			return fmt.Errorf("%s: %s", id, ans.Status)
		}
		req = follow(req, ans)
		req.InUse = 0
	}
	return nil
}

//go:build numathrottle_faults

package chaos

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
)

const (
	// probeSubject is a key of its own beside the pool's, in the same stream.
	probeSubject = "$KV." + natsstore.DefaultBucket + ".probe"
	readSubject  = "$JS.API.STREAM.MSG.GET.KV_" + natsstore.DefaultBucket
	probeEvery   = 100 * time.Millisecond
	probeTimeout = 300 * time.Millisecond
	// relapse is for how long a cluster that had served again must serve nobody to count as away
	// once more: no request of a pool is waited for as long.
	relapse = time.Second
)

// A probe writes to the stream and reads from it all the time, through every server but one, and
// notes what is acknowledged and answered. Who leads is not enough to know whether a cluster
// serves: one that is cut off believes that it leads, and nobody's word counts
// without a majority. Nor are writes enough: the stream's leader takes them, but no server answers a read while
// the cluster as a whole has no leader, which is another election ("JetStream system temporarily unavailable").
type probe struct {
	mu    sync.Mutex
	spare *servers.NATSNode
	wrote []time.Duration // when the acknowledged writes were sent
	acked []time.Duration // those of them after which a read was answered
}

// startProbe starts a probe that ends with the test.
func startProbe(t testing.TB, cluster *servers.NATSProcessCluster) *probe {
	t.Helper()
	p := &probe{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for _, node := range cluster.Nodes() {
		nc, err := nats.Connect(node.URL(), append(natsstore.ConnectOptions(),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		all.Go(func() { p.run(ctx, node, nc) })
	}
	t.Cleanup(all.Wait)
	t.Cleanup(cancel)
	return p
}

// avoid makes the probe write through all servers but this one. A leader that has
// taken many writes while it was cut off may not find back into the cluster
// (nats-server 2.15.2: "Expected first catchup entry to be a snapshot").
func (p *probe) avoid(node *servers.NATSNode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare = node
}

func (p *probe) avoids(node *servers.NATSNode) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spare == node
}

func (p *probe) run(ctx context.Context, node *servers.NATSNode, nc *nats.Conn) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		sent := clock()
		if !p.avoids(node) && write(ctx, nc) {
			answered := read(ctx, nc)
			p.mu.Lock()
			p.wrote = append(p.wrote, sent)
			if answered {
				p.acked = append(p.acked, sent)
			}
			p.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// write tells whether a majority has stored a value.
func write(ctx context.Context, nc *nats.Conn) bool {
	var ack struct {
		Error *json.RawMessage `json:"error"`
		Seq   uint64           `json:"seq"`
	}
	return request(ctx, nc, probeSubject, "", &ack) && ack.Error == nil && ack.Seq > 0
}

// read tells whether the newest value is to be had.
func read(ctx context.Context, nc *nats.Conn) bool {
	var got struct {
		Error   *json.RawMessage `json:"error"`
		Message *json.RawMessage `json:"message"`
	}
	return request(ctx, nc, readSubject, `{"last_by_subj":"`+probeSubject+`"}`, &got) && got.Error == nil && got.Message != nil
}

func request(ctx context.Context, nc *nats.Conn, subject, body string, reply any) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, subject, []byte(body))
	return err == nil && json.Unmarshal(msg.Data, reply) == nil
}

// outage waits until a write and a read succeed that were sent after the end of a fault, and
// returns when the write was sent and how much earlier the last ones were that had
// succeeded before the fault. What came before is forgotten.
func (p *probe) outage(t testing.TB, began, injected time.Duration) (served, lasted time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		slices.Sort(p.acked)
		before, _ := slices.BinarySearch(p.acked, began)
		after, _ := slices.BinarySearch(p.acked, injected)
		if before == 0 || after == len(p.acked) {
			return false
		}
		served, lasted = p.acked[after], p.acked[after]-p.acked[before-1]
		p.acked = slices.Clone(p.acked[after:])
		slices.Sort(p.wrote)
		first, _ := slices.BinarySearch(p.wrote, injected)
		if late := served - p.wrote[first]; late >= 5*probeEvery {
			t.Logf("the cluster took writes %.1fs before it answered reads", late.Seconds())
		}
		p.wrote = nil
		return true
	}, clusterPatience, recoveryStep, "the cluster takes no writes, or answers no reads")
	return served, lasted
}

// relapsed returns when the cluster served again the last time before the given moment, if it had stopped once
// more since it served first after a fault. The stream has a leader of its own, and may have a new one
// while the other servers still believe in the cluster's old one: they serve, until they notice that it is gone.
func (p *probe) relapsed(served, until time.Duration) (again time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return lastReturn(slices.Sorted(slices.Values(p.acked)), served, until)
}

// lastReturn returns the last of the sorted moments up to until that comes later than relapse after the one before it,
// the first of which is served.
func lastReturn(acked []time.Duration, served, until time.Duration) (again time.Duration, ok bool) {
	before := served
	for _, at := range acked {
		if at > until {
			break
		}
		if at-before > relapse {
			again, ok = at, true
		}
		before = max(before, at)
	}
	return again, ok
}

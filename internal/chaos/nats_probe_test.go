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
	probeEvery   = 100 * time.Millisecond
	probeTimeout = 300 * time.Millisecond
)

// A probe writes to the stream all the time, through every server but one, and
// notes what is acknowledged. Who leads is not enough to know whether a cluster
// serves: one that is cut off believes that it leads, and nobody's word counts
// without a majority.
type probe struct {
	mu    sync.Mutex
	spare *servers.NATSNode
	acked []time.Duration // when the acknowledged writes were sent
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
			p.mu.Lock()
			p.acked = append(p.acked, sent)
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
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, probeSubject, nil)
	if err != nil {
		return false
	}
	var ack struct {
		Error *json.RawMessage `json:"error"`
		Seq   uint64           `json:"seq"`
	}
	return json.Unmarshal(msg.Data, &ack) == nil && ack.Error == nil && ack.Seq > 0
}

// outage waits until a write succeeds that was sent after the end of a fault, and
// returns when that was sent and how much earlier the last one was that had
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
		return true
	}, clusterPatience, recoveryStep, "the cluster takes no writes")
	return served, lasted
}

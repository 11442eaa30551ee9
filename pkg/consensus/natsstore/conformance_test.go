package natsstore

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

// With the race detector the suite has a single server to talk to, of each version. On clusters TestOnEachServer runs with it.
func TestConformance(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind.name, func(t *testing.T) { storetest.Run(t, suite(&harness{target: kind.start(t)})) })
	}
}

const onSingleServers = "the suite runs with it on single servers"

func TestConformanceOfThreeOld(t *testing.T) {
	testkit.SkipRace(t, onSingleServers)
	storetest.Run(t, suite(&harness{target: debianCluster(t)}))
}

func TestConformanceOfThree(t *testing.T) {
	testkit.SkipRace(t, onSingleServers)
	s := suite(&harness{target: cluster(t)})
	s.Permits = clusterPermits(t)
	s.Issued = func(t testing.TB, permits, faults int) {
		t.Helper()
		proof.Record(t, "permits-nats", proof.Permits{Store: "JetStream on three servers, the leader moved", Permits: permits, Faults: faults})
	}
	storetest.Run(t, s)
}

func suite(h *harness) storetest.Harness {
	s := storetest.Harness{Longest: longest, Deferred: true, KnowsNew: true, New: h.open, Wipe: h.wipe, Snapshot: h.snapshot}
	if h.moves != nil {
		s.Restart = h.restart
	}
	return s
}

// clusterPermits is how many permits a cluster issues: NUMATHROTTLE_CLUSTER_PERMITS, or as
// many as any other store.
func clusterPermits(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("NUMATHROTTLE_CLUSTER_PERMITS"), "0"))
	require.NoError(t, err, "NUMATHROTTLE_CLUSTER_PERMITS")
	return n
}

// longest makes freezes last three quarters of a second.
const longest = 500 * time.Millisecond

// harness is one server under the suite, and its connections.
type harness struct {
	target

	mu    sync.Mutex
	conns []*nats.Conn
}

func (h *harness) open(t testing.TB) driver.Store {
	t.Helper()
	s := open(t, h.target, WithLongestLease(longest))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, s.nc)
	return s
}

func (h *harness) wipe(t testing.TB) {
	t.Helper()
	deleteBucket(t, open(t, h.target))
}

// restart returns when all connections are there again.
func (h *harness) restart(t testing.TB) {
	t.Helper()
	h.moves(t, h.bucket)
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(h.conns, func(nc *nats.Conn) bool { return !nc.IsConnected() && !nc.IsClosed() })
	}, patience, 5*time.Millisecond)
}

// snapshot copies a pool's value, to be put back as it was.
func (h *harness) snapshot(t testing.TB, pool string) (restore func()) {
	t.Helper()
	s := open(t, h.target)
	subject := s.prefix + keyOf(pool)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	e, err := line{s, s.nc}.get(ctx, subject)
	require.NoError(t, err)
	return func() {
		_, err := s.nc.RequestMsg(&nats.Msg{Subject: subject, Data: e.value}, patience)
		require.NoError(t, err)
	}
}

//go:build numathrottle_faults

package overload

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
)

func TestMain(m *testing.M) {
	servers.BeNATSNode()
	os.Exit(m.Run())
}

// The leader of a NATS cluster of three is killed under a pool that uses its whole limit. The election takes seconds, and
// then the pool is frozen; members keep their shares through both.
func TestLeaderChange(t *testing.T) {
	const members = 100
	cluster := testenv.NATSProcessCluster(t, 3)
	p := &pool{}
	t.Cleanup(p.leave)
	p.join(t, natsStores(t, strings.Join(cluster.URLs(), ","), members), members, time.Second)
	p.settle(t, time.Minute)
	leader, err := cluster.WaitStreamLeader(t.Context(), "KV_"+natsstore.DefaultBucket)
	require.NoError(t, err)
	steady := p.watch(5 * time.Second)
	require.NoError(t, leader.Kill())
	after := p.watch(20 * time.Second)
	later := p.watch(5 * time.Second)
	t.Logf("steady: %v", steady)
	t.Logf("leader killed: %v", after)
	t.Logf("later: %v", later)
	assert.LessOrEqual(t, after.asked, 1.2*p.steady(), "syncs per second")
	assert.GreaterOrEqual(t, later.least, full)
}

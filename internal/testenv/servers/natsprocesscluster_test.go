package servers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	BeNATSNode()
	flag.Parse()
	if testing.Short() {
		fmt.Println("-short: the tests here start processes")
		return
	}
	os.Exit(m.Run())
}

// clusterPatience bounds every wait for a cluster: an election alone takes up to nine seconds.
const clusterPatience = 60 * time.Second

// A clusterTest is a cluster with a bucket on every server, and a client.
type clusterTest struct {
	*NATSProcessCluster
	ctx context.Context //nolint:containedctx // the test's own
	kv  jetstream.KeyValue
}

const testStream = "KV_test"

func startClusterTest(t *testing.T) *clusterTest {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*clusterPatience)
	t.Cleanup(cancel)
	c, err := StartNATSProcessCluster(ctx, t.TempDir(), 3)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.LogTail())
		}
		require.NoError(t, c.Close())
	})
	nc, err := nats.Connect(strings.Join(c.URLs(), ","), nats.MaxReconnects(-1), nats.ReconnectWait(pollInterval))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	var kv jetstream.KeyValue
	// Every server answers; they may not know of each other as peers yet.
	require.NoError(t, poll(ctx, "make the bucket", until(func(ctx context.Context) (err error) {
		kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "test", Replicas: 3})
		return err
	})))
	return &clusterTest{NATSProcessCluster: c, ctx: ctx, kv: kv}
}

// put writes until the cluster acknowledges it.
func (c *clusterTest) put(t *testing.T, value string) {
	t.Helper()
	require.NoError(t, poll(c.ctx, "put "+value, until(func(ctx context.Context) error {
		_, err := c.kv.PutString(ctx, "key", value)
		return err
	})))
}

// requireValue waits for all servers, and reads from whichever answers.
func (c *clusterTest) requireValue(t *testing.T, value string) {
	t.Helper()
	c.whole(t)
	require.NoError(t, poll(c.ctx, "get "+value, until(func(ctx context.Context) error {
		entry, err := c.kv.Get(ctx, "key")
		if err == nil && string(entry.Value()) != value {
			err = fmt.Errorf("the value is %q", entry.Value())
		}
		return err
	})))
}

func (c *clusterTest) whole(t *testing.T) *NATSNode {
	t.Helper()
	leader, err := c.WaitStreamWhole(c.ctx, testStream)
	require.NoError(t, err)
	return leader
}

// replaced waits until another server leads than one that is away.
func (c *clusterTest) replaced(t *testing.T, old *NATSNode) {
	t.Helper()
	began := time.Now()
	leader, err := c.WaitStreamLeader(c.ctx, testStream, old)
	require.NoError(t, err)
	require.NotEqual(t, old.Name(), leader.Name())
	t.Logf("%s leads after %s", leader.Name(), time.Since(began))
}

func TestNATSProcessCluster(t *testing.T) {
	c := startClusterTest(t)

	t.Run("the leader killed and started again", func(t *testing.T) {
		leader := c.whole(t)
		require.NoError(t, leader.Kill())
		c.replaced(t, leader)
		c.put(t, "without one")
		require.NoError(t, leader.Restart(c.ctx))
		c.requireValue(t, "without one")
	})

	// What it is told while it is cut off it does not know; nobody finds a way around the proxies.
	t.Run("the leader cut off from the others", func(t *testing.T) {
		leader := c.whole(t)
		leader.Clients().Cut() // the client has to find another server
		for _, p := range c.Routes(leader) {
			p.Cut()
		}
		c.replaced(t, leader)
		c.put(t, "behind its back")
		believed, _, err := c.stream(c.ctx, testStream, leader)
		require.True(t, err != nil || believed == leader, "a server that is cut off knows that %v leads", believed)
		for _, p := range c.Routes(leader) {
			require.Zero(t, p.Connections())
			require.NoError(t, p.Heal())
		}
		require.NoError(t, leader.Clients().Heal())
		c.requireValue(t, "behind its back")
	})

	t.Run("all started again", func(t *testing.T) {
		c.put(t, "on disk")
		require.NoError(t, c.RestartAll(c.ctx))
		c.requireValue(t, "on disk")
	})
}

func TestNATSProcessClusterOfTwo(t *testing.T) {
	_, err := StartNATSProcessCluster(t.Context(), t.TempDir(), 2)
	require.ErrorContains(t, err, "at least 3")
}

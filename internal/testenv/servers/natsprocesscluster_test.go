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

// A leader that is cut off from the others does not learn what they decide: nobody finds a way around the proxies. Later it follows.
func TestNATSProcessClusterWithoutItsLeader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // an election alone takes up to nine seconds
	defer cancel()
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
	eventually := func(what string, do func(ctx context.Context) error) { require.NoError(t, poll(ctx, what, until(do))) }
	// Every server answers; they may not know of each other as peers yet.
	eventually("make the bucket", func(ctx context.Context) (err error) {
		kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "test", Replicas: 3})
		return err
	})
	const stream = "KV_test"
	leader, err := c.WaitStreamWhole(ctx, stream)
	require.NoError(t, err)
	cut := append(c.Routes(leader), leader.Clients()) // the client has to find another server
	for _, p := range cut {
		p.Cut()
	}
	next, err := c.WaitStreamLeader(ctx, stream, leader)
	require.NoError(t, err)
	require.NotEqual(t, leader.Name(), next.Name())
	eventually("put", func(ctx context.Context) error {
		_, err := kv.PutString(ctx, "key", "behind its back")
		return err
	})
	believed, _, err := c.stream(ctx, stream, leader)
	require.True(t, err != nil || believed == leader, "a server that is cut off knows that %v leads", believed)
	for _, p := range cut {
		require.Zero(t, p.Connections())
		require.NoError(t, p.Heal())
	}
	_, err = c.WaitStreamWhole(ctx, stream)
	require.NoError(t, err)
	eventually("get", func(ctx context.Context) error {
		entry, err := kv.Get(ctx, "key")
		if err == nil && string(entry.Value()) != "behind its back" {
			err = fmt.Errorf("the value is %q", entry.Value())
		}
		return err
	})
}

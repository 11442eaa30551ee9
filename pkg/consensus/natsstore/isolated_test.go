package natsstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

func TestALeaderWithoutAMajorityIsIsolated(t *testing.T) {
	const now, long = unheard - 1, unheard
	for name, c := range map[string]struct {
		followers []time.Duration
		isolated  bool
	}{
		"one replica":            {nil, false},
		"two, heard":             {[]time.Duration{now}, false},
		"two, unheard":           {[]time.Duration{long}, true},
		"three, all heard":       {[]time.Duration{now, now}, false},
		"three, one heard":       {[]time.Duration{long, now}, false},
		"three, none heard":      {[]time.Duration{long, long}, true},
		"five, two heard":        {[]time.Duration{long, now, long, now}, false},
		"five, one heard":        {[]time.Duration{long, now, long, long}, true},
		"never heard: it is new": {[]time.Duration{0, 0}, false},
	} {
		var info streamInfo
		require.False(t, info.isolated(), "a server without a cluster")
		info.Cluster = &clusterInfo{Leader: "a"}
		for _, active := range c.followers {
			info.Cluster.Replicas = append(info.Cluster.Replicas, replica{active})
		}
		require.Equal(t, c.isolated, info.isolated(), name)
	}
}

// A leader that is cut off from the other servers still answers reads, but its clients sync with the next leader.
func TestAnIsolatedLeaderIsLeft(t *testing.T) {
	c := testenv.NATSProcessCluster(t, 3)
	urls := strings.Join(c.URLs(), ",")
	first := request("p", "a", 1)
	ans := mustSync(t, open(t, target{urls: urls, bucket: DefaultBucket}), first)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	leader, err := c.WaitStreamWhole(ctx, "KV_"+DefaultBucket)
	require.NoError(t, err)
	s, err := New(connect(t, leader.URL()+","+urls, nats.DontRandomize()), WithLogger(silent))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	next := follow(first, ans)
	next = follow(next, mustSync(t, s, next))

	for _, route := range c.Routes(leader) {
		route.Swallow(true, true)
	}
	alone := line{s, connect(t, leader.URL())}
	require.Eventually(t, func() bool {
		_, err := alone.info(t.Context())
		return errors.Is(err, errIsolated)
	}, patience, 10*time.Millisecond)
	_, err = alone.get(t.Context(), s.prefix+"p")
	require.NoError(t, err, "it answers reads")
	require.Eventually(t, func() bool {
		_, err := trySync(s, next)
		next.Seq, next.Nonce = next.Seq+1, next.Nonce+1
		return err == nil
	}, patience, 10*time.Millisecond)
}

func TestASpareConnectionTriesTheSameServerLast(t *testing.T) {
	on := current(t)
	first := connect(t, on.urls+",nats://127.0.0.1:1,nats://127.0.0.1:2")
	o := spareOptions(first, first.Opts)
	require.Len(t, o.Servers, 3)
	require.Equal(t, first.ConnectedUrl(), o.Servers[2])
	require.True(t, o.NoRandomize)
}

func TestACancelledCallSaysNothingOfTheServer(t *testing.T) {
	s := open(t, current(t))
	l := line{s, s.nc}
	s.lines.outcome(l, context.Canceled)
	require.True(t, s.lines.failing.IsZero())
	s.lines.outcome(l, context.DeadlineExceeded)
	require.False(t, s.lines.failing.IsZero())
}

// A server may have several URLs, such as its own and that of a service.
func TestASpareConnectionLeavesTheServerOfTheFirst(t *testing.T) {
	on := current(t)
	first, same, another := connect(t, on.urls), connect(t, strings.Replace(on.urls, "127.0.0.1", "localhost", 1)), connect(t, current(t).urls)
	require.NotEqual(t, first.ConnectedUrl(), same.ConnectedUrl())
	var c lines
	c.maintain(&Store{nc: first}, same)
	require.Eventually(t, func() bool { return same.Stats().Reconnects == 1 }, patience, time.Millisecond)
	c.maintain(&Store{nc: first}, another)
	require.True(t, another.IsConnected())
	require.Zero(t, another.Stats().Reconnects)
}

// A step that began on the spare connection may end when the first one serves again.
func TestAServingConnectionIsNotMoved(t *testing.T) {
	on := current(t)
	s := open(t, on)
	spare := line{s, connect(t, on.urls)}
	s.lines.outcome(spare, nil)
	require.Zero(t, s.lines.forced)
	s.lines.outcome(spare, context.DeadlineExceeded)
	require.Zero(t, s.lines.failing)
	s.lines.outcome(line{s, s.nc}, context.DeadlineExceeded)
	s.lines.outcome(spare, nil)
	require.NotZero(t, s.lines.forced)
}

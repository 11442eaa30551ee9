package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

// globalAccount is the account of clients that do not authenticate.
const globalAccount = "$G"

// NATSCluster is a cluster of embedded NATS servers with JetStream. Streams may have up to as many replicas as the
// cluster has servers.
type NATSCluster struct {
	nodes  []*NATS
	routes []*port
}

// StartNATSCluster starts the given number of servers (an odd number, at least 3: a majority decides) with their files below dir. It
// returns when they have a leader and all are in step with it. The options apply to every server.
func StartNATSCluster(ctx context.Context, dir string, size int, opts ...NATSOption) (*NATSCluster, error) {
	if size < 3 || size%2 == 0 {
		return nil, fmt.Errorf("size of the NATS cluster is %d, must be an odd number, at least 3", size)
	}
	for attempt := 1; ; attempt++ {
		c := &NATSCluster{}
		err := c.start(ctx, filepath.Join(dir, "attempt-"+strconv.Itoa(attempt)), size, opts)
		if err == nil {
			return c, nil
		}
		err = errors.Join(err, c.Close())
		if attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
}

func (c *NATSCluster) start(ctx context.Context, dir string, size int, opts []NATSOption) error {
	var routes []*url.URL
	for range size {
		route, err := reservePort(ctx)
		if err != nil {
			return err
		}
		c.routes = append(c.routes, route)
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: route.addr()})
	}
	for i, route := range c.routes {
		name := "node-" + strconv.Itoa(i)
		clustered := func(o *server.Options) {
			o.Cluster = server.ClusterOpts{Name: "numathrottle", Host: loopback, Port: route.number}
			o.Routes = routes
		}
		node, err := newNATS(ctx, name, filepath.Join(dir, name), append([]NATSOption{clustered}, opts...))
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, node)
		if err := node.Restart(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.WaitReady(ctx)
}

// WaitReady returns when the running servers have a leader that counts all of them as its peers, and are in step with it. Use it, for
// example, after one was shut down or restarted.
func (c *NATSCluster) WaitReady(ctx context.Context) error {
	return poll(ctx, "waiting for the NATS cluster", until(func(context.Context) error {
		leader := c.Leader()
		if leader == nil {
			return errors.New("no leader")
		}
		s, up := leader.server(), 0
		for _, node := range c.nodes {
			member := node.server()
			if member == nil {
				continue
			}
			up++
			if !member.JetStreamIsCurrent() {
				return fmt.Errorf("%s is not in step", node.name)
			}
		}
		if s == nil || len(s.JetStreamClusterPeers()) < up {
			return fmt.Errorf("the leader does not see all %d servers", up)
		}
		return nil
	}))
}

// Leader returns the server that leads the cluster's metadata, or nil while there is none.
func (c *NATSCluster) Leader() *NATS {
	return c.find(func(s *server.Server) bool { return s.JetStreamIsLeader() })
}

// StreamLeader returns the server that leads a stream of clients that do not authenticate, or nil while there is
// none. The stream of a key-value bucket is named "KV_" and the bucket's name.
func (c *NATSCluster) StreamLeader(stream string) *NATS {
	return c.find(func(s *server.Server) bool { return s.JetStreamIsStreamLeader(globalAccount, stream) })
}

func (c *NATSCluster) find(matches func(*server.Server) bool) *NATS {
	for _, node := range c.nodes {
		if s := node.server(); s != nil && matches(s) {
			return node
		}
	}
	return nil
}

// Nodes returns the servers.
func (c *NATSCluster) Nodes() []*NATS { return append([]*NATS(nil), c.nodes...) }

// URLs returns nats://host:port of every server.
func (c *NATSCluster) URLs() []string {
	urls := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		urls[i] = node.URL()
	}
	return urls
}

// Close shuts all servers down. The files stay.
func (c *NATSCluster) Close() error {
	var failed []error
	for _, node := range c.nodes {
		failed = append(failed, node.Close())
	}
	for _, route := range c.routes {
		route.release()
	}
	return errors.Join(failed...)
}

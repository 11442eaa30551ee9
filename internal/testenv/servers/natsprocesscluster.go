package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
)

// NATSProcessCluster is a cluster of NATS servers with JetStream, of the version in go.mod, each in its own process. All their traffic,
// among each other and with clients, goes through proxies.
type NATSProcessCluster struct {
	nodes []*NATSNode
}

// StartNATSProcessCluster starts the given number of servers (an odd number, at least 3: a majority decides) with
// their files below dir, and returns when every one of them can hold a replica. The program must call BeNATSNode when it starts.
func StartNATSProcessCluster(ctx context.Context, dir string, size int) (*NATSProcessCluster, error) {
	if size < 3 || size%2 == 0 {
		return nil, fmt.Errorf("size of the NATS cluster is %d, must be an odd number, at least 3", size)
	}
	return retry(func() (*NATSProcessCluster, error) {
		c := &NATSProcessCluster{}
		attempt, err := os.MkdirTemp(dir, "attempt-")
		if err == nil {
			err = c.start(ctx, attempt, size)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	})
}

func (c *NATSProcessCluster) start(ctx context.Context, dir string, size int) error {
	for i := range size {
		name := "node-" + strconv.Itoa(i)
		node, err := newNATSNode(ctx, name, filepath.Join(dir, name))
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, node)
	}
	for _, node := range c.nodes {
		if err := node.configure(ctx, c.nodes); err != nil {
			return err
		}
	}
	if err := c.RestartAll(ctx); err != nil {
		return err
	}
	return poll(ctx, "waiting until each server can hold a replica", until(c.placeReplicas))
}

// placeReplicas makes a stream with a replica on each server, and deletes it. A leader is elected before it knows all servers, and refuses
// such a stream until then.
func (c *NATSProcessCluster) placeReplicas(ctx context.Context) error {
	js, err := jetstream.New(c.nodes[0].admin)
	if err != nil {
		return err
	}
	const name = "PLACED"
	config := jetstream.StreamConfig{Name: name, Subjects: []string{name}, Replicas: len(c.nodes), Storage: jetstream.MemoryStorage}
	if _, err := js.CreateOrUpdateStream(ctx, config); err != nil {
		return err
	}
	for _, node := range c.nodes { // each has a way to the stream's leader
		if _, _, err := c.stream(ctx, name, node); err != nil {
			return err
		}
	}
	return js.DeleteStream(ctx, name)
}

// Nodes returns the servers.
func (c *NATSProcessCluster) Nodes() []*NATSNode { return slices.Clone(c.nodes) }

// URLs returns nats://host:port of every server's proxy.
func (c *NATSProcessCluster) URLs() []string {
	urls := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		urls[i] = node.URL()
	}
	return urls
}

// Routes returns the proxies between a node and all others. To cut it off from them, cut each.
func (c *NATSProcessCluster) Routes(node *NATSNode) []*proxy.Proxy {
	return slices.Collect(maps.Values(node.routes))
}

// RestartAll kills all running servers at once, starts them again with their files, and returns when all answer: none does before a
// majority is there.
func (c *NATSProcessCluster) RestartAll(ctx context.Context) error {
	if err := c.onEach((*NATSNode).Kill); err != nil {
		return err
	}
	return c.onEach(func(node *NATSNode) error { return node.Restart(ctx) })
}

func (c *NATSProcessCluster) onEach(do func(node *NATSNode) error) error {
	failed := make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i, node := range c.nodes {
		all.Go(func() {
			if err := do(node); err != nil {
				failed[i] = fmt.Errorf("%s: %w", node.name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// A streamState is what the leader of a stream tells of it.
type streamState struct {
	Cluster struct {
		Leader   string
		Replicas []struct {
			Current bool
			Offline bool
		}
	}
}

// StreamLeader returns the server that leads a stream, according to the first server that answers; nil while there is no leader. Those in
// out are neither asked nor taken for the leader: an isolated one believes for ten more seconds that it leads. The stream of a key-value
// bucket is named "KV_" and the bucket's name.
func (c *NATSProcessCluster) StreamLeader(ctx context.Context, stream string, out ...*NATSNode) *NATSNode {
	for _, node := range c.nodes {
		if slices.Contains(out, node) {
			continue
		}
		leader, _, err := c.stream(ctx, stream, node)
		if err == nil && !slices.Contains(out, leader) {
			return leader
		}
	}
	return nil
}

// WaitStreamLeader returns the leader of a stream as soon as there is one.
func (c *NATSProcessCluster) WaitStreamLeader(ctx context.Context, stream string, out ...*NATSNode) (*NATSNode, error) {
	var leader *NATSNode
	err := poll(ctx, "waiting for a leader of "+stream, func(ctx context.Context) (bool, error) {
		leader = c.StreamLeader(ctx, stream, out...)
		return leader != nil, nil
	})
	return leader, err
}

// WaitStreamWhole returns the leader of a stream when all servers agree on it and are in step with it.
func (c *NATSProcessCluster) WaitStreamWhole(ctx context.Context, stream string) (*NATSNode, error) {
	var leader *NATSNode
	err := poll(ctx, "waiting for all replicas of "+stream, until(func(ctx context.Context) error {
		leader = nil
		for _, node := range c.nodes {
			seen, state, err := c.stream(ctx, stream, node)
			if err != nil {
				return fmt.Errorf("%s: %w", node.name, err)
			}
			if leader != nil && seen != leader {
				return fmt.Errorf("%s follows %s, not %s", node.name, seen.name, leader.name)
			}
			leader = seen
			inStep := 1
			for _, r := range state.Cluster.Replicas {
				if r.Current && !r.Offline {
					inStep++
				}
			}
			if inStep < len(c.nodes) {
				return fmt.Errorf("%d of %d are in step with %s", inStep, len(c.nodes), leader.name)
			}
		}
		return nil
	}))
	return leader, err
}

// stream asks one server, through which the leader answers.
func (c *NATSProcessCluster) stream(ctx context.Context, stream string, node *NATSNode) (*NATSNode, *streamState, error) {
	var state streamState
	if err := ask(ctx, node.admin, "$JS.API.STREAM.INFO."+stream, &state); err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(c.nodes, func(n *NATSNode) bool { return n.name == state.Cluster.Leader })
	if i < 0 {
		return nil, nil, fmt.Errorf("%s has no leader", stream)
	}
	return c.nodes[i], &state, nil
}

// LogTail returns the last lines of every server's log.
func (c *NATSProcessCluster) LogTail() string {
	var all strings.Builder
	for _, node := range c.nodes {
		fmt.Fprintf(&all, "%s:\n%s", node.name, node.LogTail())
	}
	return all.String()
}

// Close kills all servers. The files stay.
func (c *NATSProcessCluster) Close() error { return c.onEach((*NATSNode).Close) }

package servers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// RedisCluster is a Redis Cluster of three masters without replicas.
type RedisCluster struct {
	nodes []*Redis
	buses []*port
}

// StartRedisCluster starts three masters with their files below dir, shares the slots out evenly, and returns when
// every node says that the cluster is in order. A node counts as failed after two seconds of silence. The options
// apply to every node.
func StartRedisCluster(ctx context.Context, dir string, opts ...RedisOption) (*RedisCluster, error) {
	cluster := &RedisCluster{}
	err := cluster.start(ctx, dir, opts)
	if err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	return cluster, nil
}

func (c *RedisCluster) start(ctx context.Context, dir string, opts []RedisOption) error {
	for i := range clusterMasters {
		bus, err := reservePort(ctx)
		if err != nil {
			return err
		}
		c.buses = append(c.buses, bus)
		nodeOpts := append([]RedisOption{WithRedisConfig(
			"cluster-enabled yes",
			"cluster-config-file nodes.conf",
			"cluster-node-timeout 2000",
			"cluster-port "+strconv.Itoa(bus.number),
		)}, opts...)
		node, err := StartRedis(ctx, filepath.Join(dir, "node-"+strconv.Itoa(i)), nodeOpts...)
		if err != nil {
			return fmt.Errorf("cluster node %d: %w", i, err)
		}
		c.nodes = append(c.nodes, node)
	}
	for i, node := range c.nodes {
		if err := c.join(ctx, i, node); err != nil {
			return fmt.Errorf("cluster node %d: %w", i, err)
		}
	}
	return c.WaitReady(ctx)
}

// join gives a node its slots and an epoch of its own (so that the nodes need not settle one), and introduces it to
// the first node.
func (c *RedisCluster) join(ctx context.Context, i int, node *Redis) error {
	first, last := slotRange(i)
	commands := [][]any{
		{"CLUSTER", "ADDSLOTSRANGE", first, last},
		{"CLUSTER", "SET-CONFIG-EPOCH", i + 1},
	}
	if i > 0 {
		commands = append(commands, []any{"CLUSTER", "MEET", loopback, c.nodes[0].port.number, c.buses[0].number})
	}
	for _, command := range commands {
		if err := node.admin.Do(ctx, command...).Err(); err != nil {
			return fmt.Errorf("%v: %w", command, err)
		}
	}
	return nil
}

// slotRange returns the first and last slot of a node.
func slotRange(node int) (first, last int) {
	return node * clusterSlots / clusterMasters, (node+1)*clusterSlots/clusterMasters - 1
}

// WaitReady returns when every node says that the cluster is in order with all its nodes and slots, for example after
// a node was started again.
func (c *RedisCluster) WaitReady(ctx context.Context) error {
	want := map[string]string{
		"cluster_state":       "ok",
		"cluster_slots_ok":    strconv.Itoa(clusterSlots),
		"cluster_known_nodes": strconv.Itoa(clusterMasters),
		"cluster_size":        strconv.Itoa(clusterMasters),
	}
	return poll(ctx, "waiting for the Redis Cluster", until(func(ctx context.Context) error {
		for i, node := range c.nodes {
			text, err := node.admin.Do(ctx, "CLUSTER", "INFO").Text()
			if err != nil {
				return fmt.Errorf("node %d: CLUSTER INFO: %w", i, err)
			}
			info := parseInfo(text)
			for field, value := range want {
				if info[field] != value {
					return fmt.Errorf("node %d: %s is %q, want %q", i, field, info[field], value)
				}
			}
		}
		return nil
	}))
}

// Nodes returns the masters.
func (c *RedisCluster) Nodes() []*Redis { return append([]*Redis(nil), c.nodes...) }

// Addrs returns host:port of every node.
func (c *RedisCluster) Addrs() []string { return addrs(c.nodes) }

// Close kills all nodes. The files stay.
func (c *RedisCluster) Close() error {
	err := closeAll(c.nodes)
	for _, bus := range c.buses {
		bus.release()
	}
	return err
}

func addrs(servers []*Redis) []string {
	all := make([]string, len(servers))
	for i, server := range servers {
		all[i] = server.Addr()
	}
	return all
}

func closeAll(servers []*Redis) error {
	var failed []error
	for _, server := range servers {
		failed = append(failed, server.Close())
	}
	return errors.Join(failed...)
}

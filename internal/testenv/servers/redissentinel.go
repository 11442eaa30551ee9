package servers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// masterName is the name under which the sentinels know the master.
const masterName = "numathrottle"

// RedisSentinel is a Redis master with one replica, watched by sentinels that promote the replica when the master is
// silent for two seconds. A master that was replaced and comes back is made a replica ten seconds later.
type RedisSentinel struct {
	data      []*Redis // the first master, then its replica
	sentinels []*Redis
}

// StartRedisSentinel starts a master, a replica and the given number of sentinels (an odd number: a majority decides) with their files
// below dir. It returns when the replica is in step and every sentinel knows it and the other sentinels. The options apply to master and
// replica.
func StartRedisSentinel(ctx context.Context, dir string, sentinels int, opts ...RedisOption) (*RedisSentinel, error) {
	if sentinels < 1 || sentinels%2 == 0 {
		return nil, fmt.Errorf("sentinels is %d, must be an odd number, at least 1", sentinels)
	}
	s := &RedisSentinel{}
	if err := s.start(ctx, dir, sentinels, opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *RedisSentinel) start(ctx context.Context, dir string, sentinels int, opts []RedisOption) error {
	master, err := StartRedis(ctx, filepath.Join(dir, "data-0"), opts...)
	if err != nil {
		return fmt.Errorf("master: %w", err)
	}
	s.data = append(s.data, master)
	host, port := loopback, strconv.Itoa(master.port.number)

	replicaOpts := append([]RedisOption{WithRedisConfig("replicaof " + host + " " + port)}, opts...)
	replica, err := StartRedis(ctx, filepath.Join(dir, "data-1"), replicaOpts...)
	if err != nil {
		return fmt.Errorf("replica: %w", err)
	}
	s.data = append(s.data, replica)
	if err := s.waitReplica(ctx, replica); err != nil {
		return err
	}

	quorum := strconv.Itoa(sentinels/2 + 1)
	config := []string{
		"sentinel monitor " + masterName + " " + host + " " + port + " " + quorum,
		"sentinel down-after-milliseconds " + masterName + " 2000",
		"sentinel failover-timeout " + masterName + " 6000",
	}
	if password := master.admin.Options().Password; password != "" {
		config = append(config, "sentinel auth-pass "+masterName+" "+strconv.QuoteToASCII(password))
	}
	for i := range sentinels {
		sentinel, err := StartRedis(ctx, filepath.Join(dir, "sentinel-"+strconv.Itoa(i)), asSentinel(config))
		if err != nil {
			return fmt.Errorf("sentinel %d: %w", i, err)
		}
		s.sentinels = append(s.sentinels, sentinel)
	}
	return s.waitSentinels(ctx)
}

// asSentinel runs redis-server as a sentinel, which takes only some of a server's settings.
func asSentinel(lines []string) RedisOption {
	return func(c *redisConfig) {
		c.sentinel = true
		c.lines = lines
	}
}

func (s *RedisSentinel) waitReplica(ctx context.Context, replica *Redis) error {
	return poll(ctx, "waiting for the replica to follow its master", until(func(ctx context.Context) error {
		info, err := replica.info(ctx, "replication")
		if err == nil && info["master_link_status"] != "up" {
			err = fmt.Errorf("master_link_status is %q", info["master_link_status"])
		}
		return err
	}))
}

// waitSentinels returns when every sentinel could lead a failover.
func (s *RedisSentinel) waitSentinels(ctx context.Context) error {
	return poll(ctx, "waiting for the sentinels to find the replica and one another", until(func(ctx context.Context) error {
		for i, sentinel := range s.sentinels {
			if err := s.checkSentinel(ctx, sentinel); err != nil {
				return fmt.Errorf("sentinel %d: %w", i, err)
			}
		}
		return nil
	}))
}

func (s *RedisSentinel) checkSentinel(ctx context.Context, sentinel *Redis) error {
	client := sentinelClient(sentinel)
	defer client.Close()
	master, err := client.Master(ctx, masterName).Result()
	if err != nil {
		return fmt.Errorf("SENTINEL MASTER: %w", err)
	}
	if want := strconv.Itoa(len(s.sentinels) - 1); master["num-other-sentinels"] != want {
		return fmt.Errorf("knows %s other sentinels, want %s", master["num-other-sentinels"], want)
	}
	replicas, err := client.Replicas(ctx, masterName).Result()
	if err != nil {
		return fmt.Errorf("SENTINEL REPLICAS: %w", err)
	}
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
		return fmt.Errorf("knows %d replicas that it could promote, want 1", len(replicas))
	}
	return nil
}

func sentinelClient(sentinel *Redis) *redis.SentinelClient {
	opts := *sentinel.admin.Options()
	return redis.NewSentinelClient(&opts)
}

// MasterName returns the name under which the sentinels know the master.
func (s *RedisSentinel) MasterName() string { return masterName }

// Addrs returns host:port of every sentinel.
func (s *RedisSentinel) Addrs() []string { return addrs(s.sentinels) }

// Sentinels returns the sentinels.
func (s *RedisSentinel) Sentinels() []*Redis { return append([]*Redis(nil), s.sentinels...) }

// Data returns the two servers that hold the data: the first master and its first replica, whatever their roles became.
func (s *RedisSentinel) Data() []*Redis { return append([]*Redis(nil), s.data...) }

// Master returns the server that is the master in the eyes of the first sentinel that answers.
func (s *RedisSentinel) Master(ctx context.Context) (*Redis, error) {
	var failed []error
	for _, sentinel := range s.sentinels {
		client := sentinelClient(sentinel)
		addr, err := client.GetMasterAddrByName(ctx, masterName).Result()
		client.Close()
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, server := range s.data {
			if len(addr) == 2 && addr[1] == strconv.Itoa(server.port.number) {
				return server, nil
			}
		}
		failed = append(failed, fmt.Errorf("the sentinel names the unknown server %v", addr))
	}
	return nil, fmt.Errorf("no sentinel tells the master: %w", errors.Join(failed...))
}

// Close kills all servers, the sentinels first. The files stay.
func (s *RedisSentinel) Close() error {
	return errors.Join(closeAll(s.sentinels), closeAll(s.data))
}

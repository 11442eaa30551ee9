package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

var errLoading = errors.New("the Redis server is still loading its data")

// Redis is a redis-server process (or, inside RedisSentinel, a sentinel).
type Redis struct {
	daemon
	admin *redis.Client
}

type redisConfig struct {
	password string
	lines    []string // further lines of the configuration file
	sentinel bool
}

// RedisOption changes how a redis-server is configured.
type RedisOption func(*redisConfig)

// WithPassword makes clients authenticate. The default is none.
func WithPassword(password string) RedisOption {
	return func(c *redisConfig) { c.password = password }
}

// WithAppendOnly makes the server write every change to disk before it answers, so that a killed server comes back
// with all it had acknowledged. The default is no persistence: a restarted server is empty.
func WithAppendOnly() RedisOption {
	return WithRedisConfig("appendonly yes", "appendfsync always", "auto-aof-rewrite-percentage 0")
}

// WithRedisConfig adds lines to the configuration file, such as "maxmemory 10mb". The last of several wins.
func WithRedisConfig(lines ...string) RedisOption {
	return func(c *redisConfig) { c.lines = append(c.lines, lines...) }
}

// StartRedis starts a redis-server with its files in dir.
func StartRedis(ctx context.Context, dir string, opts ...RedisOption) (*Redis, error) {
	var config redisConfig
	for _, opt := range opts {
		opt(&config)
	}
	return retry(func() (*Redis, error) { return startRedis(ctx, dir, &config) })
}

func startRedis(ctx context.Context, dir string, config *redisConfig) (_ *Redis, err error) {
	server := &Redis{}
	if server.daemon, err = newDaemon(ctx, "redis-server", dir, "redis.conf", func(p *port) []byte { return config.file(dir, p.number) }); err != nil {
		return nil, err
	}
	server.args = []string{filepath.Join(dir, "redis.conf")}
	if config.sentinel {
		server.args = append(server.args, "--sentinel")
	}
	server.answers = server.checkAnswers
	// The plainest client: its own requests would show in the server's command counts.
	server.admin = redis.NewClient(&redis.Options{
		Addr:                     server.Addr(),
		Password:                 config.password,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1,
		DialerRetries:            1,
		PoolSize:                 1,
		ContextTimeoutEnabled:    true,
	})
	if err := server.Restart(ctx); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

// file returns the configuration file. It is written once: Redis itself keeps it up to date when a sentinel changes
// a server's role, and a restarted server must know its last role.
func (c *redisConfig) file(dir string, port int) []byte {
	lines := []string{
		"bind " + loopback,
		"port " + strconv.Itoa(port),
		"dir " + strconv.Quote(dir),
		"daemonize no",
	}
	if !c.sentinel {
		lines = append(lines, c.serverLines()...)
	}
	lines = append(lines, c.lines...)
	return []byte(strings.Join(lines, "\n") + "\n")
}

// serverLines returns the settings that a sentinel does not take.
func (c *redisConfig) serverLines() []string {
	lines := []string{
		"appendonly no",
		`save ""`,
		// What a pool's records need: nothing is evicted.
		"maxmemory-policy noeviction",
		// A replica is synchronised without the default wait of five seconds.
		"repl-diskless-sync-delay 0",
	}
	if c.password != "" {
		lines = append(lines, "requirepass "+strconv.QuoteToASCII(c.password), "masterauth "+strconv.QuoteToASCII(c.password))
	}
	return lines
}

// checkAnswers checks the identity of the server, because on a port taken by a foreign program it might be another Redis. It also checks
// whether the server has read its files, before which it refuses all else. It dials by itself first, because the client does not redial for
// a second after a refusal.
func (r *Redis) checkAnswers(ctx context.Context, pid int) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", r.Addr())
	if err != nil {
		return err
	}
	conn.Close()
	info, err := r.info(ctx, "default")
	if err != nil {
		return err
	}
	if got := info["process_id"]; got != strconv.Itoa(pid) {
		return fmt.Errorf("%s is served by process %s, not by %d: %w", r.Addr(), got, pid, errPortTaken)
	}
	if info["loading"] == "1" {
		return fmt.Errorf("%s: %w", r.Addr(), errLoading)
	}
	return nil
}

// info returns a section of INFO as a map.
func (r *Redis) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.admin.Do(ctx, "INFO", section).Text()
	if err != nil {
		return nil, fmt.Errorf("INFO %s: %w", section, err)
	}
	return parseInfo(text), nil
}

// parseInfo reads the lines "name:value" of INFO and CLUSTER INFO.
func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields
}

// Addr returns host:port. It stays the same over restarts.
func (r *Redis) Addr() string { return r.port.addr() }

// Commands returns how often each command was called since the server started, by its name in lower case. Calls from inside a script count,
// too. The INFO of this method counts from the next call on.
func (r *Redis) Commands(ctx context.Context) (map[string]int64, error) {
	info, err := r.info(ctx, "commandstats")
	if err != nil {
		return nil, err
	}
	calls := map[string]int64{}
	for name, value := range info {
		command, isStat := strings.CutPrefix(name, "cmdstat_")
		count, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		n, err := strconv.ParseInt(count, 10, 64)
		if !isStat || err != nil {
			return nil, fmt.Errorf("INFO commandstats: unexpected line %q", name+":"+value)
		}
		calls[command] = n
	}
	return calls, nil
}

// CPUTime returns how much processor time the server has used since it started, in user and kernel mode.
func (r *Redis) CPUTime(ctx context.Context) (time.Duration, error) {
	info, err := r.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		used, err := time.ParseDuration(info[field] + "s")
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %s is %q: %w", field, info[field], err)
		}
		total += used
	}
	return total, nil
}

// Close kills the server and gives its port back. The files stay.
func (r *Redis) Close() error { return errors.Join(r.daemon.Close(), r.admin.Close()) }

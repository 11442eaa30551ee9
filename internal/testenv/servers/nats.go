package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// Limits of a JetStream server. It uses only the size of its streams.
const (
	jetStreamMemory = 256 << 20
	jetStreamDisk   = 2 << 30
)

// NATSOption changes the options of an embedded server before each of its starts. Address, ports, names, routes and
// the store's directory are set already and should be left alone.
type NATSOption func(*server.Options)

// NATS is a NATS server with JetStream, embedded in this process.
type NATS struct {
	name   string
	dir    string
	opts   []NATSOption
	client *port
	log    *natsLog

	mu      sync.Mutex
	running *server.Server // nil while the server is shut down
	closed  bool
}

// StartNATS starts an embedded server with its files in dir.
func StartNATS(ctx context.Context, dir string, opts ...NATSOption) (*NATS, error) {
	for attempt := 1; ; attempt++ {
		n, err := newNATS(ctx, "numathrottle", dir, opts)
		if err != nil {
			return nil, err
		}
		if err = n.Restart(ctx); err == nil {
			return n, nil
		}
		n.Close()
		if attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
}

// newNATS reserves the port of a server and makes its directory. It does not start it.
func newNATS(ctx context.Context, name, dir string, opts []NATSOption) (*NATS, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the NATS server: %w", err)
	}
	reserved, err := reservePort(ctx)
	if err != nil {
		return nil, err
	}
	return &NATS{name: name, dir: dir, opts: opts, client: reserved, log: &natsLog{file: filepath.Join(dir, "nats.log")}}, nil
}

func (n *NATS) options() *server.Options {
	opts := &server.Options{
		ServerName:         n.name,
		Host:               loopback,
		Port:               n.client.number,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           n.storeDir(),
		JetStreamMaxMemory: jetStreamMemory,
		JetStreamMaxStore:  jetStreamDisk,
	}
	for _, opt := range n.opts {
		opt(opts)
	}
	return opts
}

func (n *NATS) storeDir() string { return filepath.Join(n.dir, "store") }

// URL returns nats://host:port. It stays the same over restarts.
func (n *NATS) URL() string { return (&url.URL{Scheme: "nats", Host: n.client.addr()}).String() }

// Running reports whether the server is up.
func (n *NATS) Running() bool { return n.server() != nil }

// server returns the running server, or nil.
func (n *NATS) server() *server.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running
}

// Shutdown ends the server cleanly: it disconnects clients and writes all to disk. It returns when the server has ended, and does nothing
// when it is not running.
func (n *NATS) Shutdown() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shutdownLocked()
}

func (n *NATS) shutdownLocked() {
	if n.running == nil {
		return
	}
	n.running.Shutdown()
	n.running.WaitForShutdown()
	n.running = nil
}

// Restart shuts the server down if it is running, starts it again under the same address with the same store, and
// returns when it takes connections.
func (n *NATS) Restart(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shutdownLocked()
	return n.startLocked(ctx)
}

// RestartEmpty is Restart with all streams lost, as when a pod without a persistent volume is replaced.
func (n *NATS) RestartEmpty(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shutdownLocked()
	if err := os.RemoveAll(n.storeDir()); err != nil {
		return fmt.Errorf("empty the store of the NATS server: %w", err)
	}
	return n.startLocked(ctx)
}

func (n *NATS) startLocked(ctx context.Context) error {
	if n.closed {
		return errNotRunning
	}
	s, err := server.NewServer(n.options())
	if err != nil {
		return fmt.Errorf("NATS server: %w", err)
	}
	n.log.reset()
	s.SetLoggerV2(n.log, false, false, false)
	// Start recovers the streams before it listens. On a goroutine of its own, the context can end the wait for it.
	go s.Start()
	n.running = s
	err = poll(ctx, "waiting for the NATS server to take connections", func(context.Context) (bool, error) {
		if err := n.log.fatal(); err != nil {
			return true, err
		}
		return s.ReadyForConnections(pollInterval), nil
	})
	if err != nil {
		n.shutdownLocked()
	}
	return err
}

// LogTail returns the last lines that the server logged, at most 2 KiB. Empty when there are none.
func (n *NATS) LogTail() string { return logTail(n.log.file) }

// Close shuts the server down for good and gives its port back. The files stay.
func (n *NATS) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shutdownLocked()
	if !n.closed {
		n.client.release()
	}
	n.closed = true
	return n.log.close()
}

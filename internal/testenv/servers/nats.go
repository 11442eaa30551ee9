package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	dir    string
	opts   []NATSOption
	client *port
	log    natsLog

	mu      sync.Mutex
	running *server.Server // nil while the server is shut down
	closed  bool
}

// StartNATS starts an embedded server with its files in dir.
func StartNATS(ctx context.Context, dir string, opts ...NATSOption) (*NATS, error) {
	return retry(func() (*NATS, error) {
		n, err := newNATS(ctx, dir, opts)
		if err != nil {
			return nil, err
		}
		if err := n.Restart(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
		return n, nil
	})
}

// newNATS reserves the port of a server and makes its directory. It does not start it.
func newNATS(ctx context.Context, dir string, opts []NATSOption) (*NATS, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the NATS server: %w", err)
	}
	reserved, err := reservePort(ctx)
	if err != nil {
		return nil, err
	}
	return &NATS{dir: dir, opts: opts, client: reserved, log: natsLog{name: filepath.Join(dir, "nats.log")}}, nil
}

func (n *NATS) options() *server.Options {
	opts := &server.Options{
		ServerName:         "numathrottle",
		Host:               loopback,
		Port:               n.client.number,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           filepath.Join(n.dir, "store"),
		JetStreamMaxMemory: jetStreamMemory,
		JetStreamMaxStore:  jetStreamDisk,
	}
	for _, opt := range n.opts {
		opt(opts)
	}
	return opts
}

// URL returns nats://host:port. It stays the same over restarts.
func (n *NATS) URL() string { return (&url.URL{Scheme: "nats", Host: n.client.addr()}).String() }

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
	if n.closed {
		return errNotRunning
	}
	s, err := server.NewServer(n.options())
	if err != nil {
		return fmt.Errorf("NATS server: %w", err)
	}
	n.log.fatal.Store(nil)
	s.SetLoggerV2(&n.log, false, false, false)
	// Start recovers the streams before it listens. On a goroutine of its own, the context can end the wait for it.
	go s.Start()
	n.running = s
	err = poll(ctx, "waiting for the NATS server to take connections", func(context.Context) (bool, error) {
		if err := n.log.fatal.Load(); err != nil {
			return true, *err
		}
		return s.ReadyForConnections(pollInterval), nil
	})
	if err != nil {
		n.shutdownLocked()
	}
	return err
}

// LogTail returns the last lines that the server logged, at most 2 KiB. Empty when there are none.
func (n *NATS) LogTail() string { return logTail(n.log.name) }

// Close shuts the server down for good and gives its port back. The files stay.
func (n *NATS) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shutdownLocked()
	if !n.closed {
		n.client.release()
	}
	n.closed = true
	return nil
}

// natsLog takes what an embedded NATS server logs: notices and worse go to a file, and the first fatal error is kept. The server's own
// loggers end the whole process on a fatal error.
type natsLog struct {
	name  string
	fatal atomic.Pointer[error]
}

// Noticef implements server.Logger.
func (l *natsLog) Noticef(format string, v ...any) { l.write("INF", format, v) }

// Warnf implements server.Logger.
func (l *natsLog) Warnf(format string, v ...any) { l.write("WRN", format, v) }

// Errorf implements server.Logger.
func (l *natsLog) Errorf(format string, v ...any) { l.write("ERR", format, v) }

// Debugf implements server.Logger; debug output is off.
func (l *natsLog) Debugf(string, ...any) {}

// Tracef implements server.Logger; trace output is off.
func (l *natsLog) Tracef(string, ...any) {}

// Fatalf implements server.Logger.
func (l *natsLog) Fatalf(format string, v ...any) {
	l.write("FTL", format, v)
	err := fmt.Errorf("NATS server: "+format, v...)
	if strings.Contains(strings.ToLower(err.Error()), "address already in use") {
		err = errors.Join(err, errPortTaken)
	}
	l.fatal.CompareAndSwap(nil, &err)
}

func (l *natsLog) write(level, format string, v []any) {
	if file, err := os.OpenFile(l.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil { // else it goes on without a log
		fmt.Fprintf(file, "%s [%s] %s\n", time.Now().Format(time.RFC3339Nano), level, fmt.Sprintf(format, v...))
		file.Close()
	}
}

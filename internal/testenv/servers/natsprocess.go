package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// NATSProcess is a NATS server with JetStream that runs as a process: the nats-server installed on this machine,
// which on Debian 12 is 2.9.10. Unlike an embedded server it can be killed and stopped.
type NATSProcess struct {
	daemon
	name string // tells this server from a foreign one on the same port
	port *port
}

// StartNATSProcess starts the installed nats-server with its files in dir. The configuration lines are added to its
// file.
func StartNATSProcess(ctx context.Context, dir string, configLines ...string) (*NATSProcess, error) {
	path, err := locate("nats-server", "nats-server")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the NATS server: %w", err)
	}
	for attempt := 1; ; attempt++ {
		n, err := startNATSProcessOnce(ctx, path, dir, configLines)
		if err == nil || attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return n, err
		}
	}
}

func startNATSProcessOnce(ctx context.Context, path, dir string, configLines []string) (*NATSProcess, error) {
	reserved, err := reservePort(ctx)
	if err != nil {
		return nil, err
	}
	n := &NATSProcess{name: "numathrottle-" + rand.Text(), port: reserved}
	config := fmt.Appendf(nil, "listen: %q\nserver_name: %q\njetstream { store_dir: %s, max_mem: %d, max_file: %d }\n",
		reserved.addr(), n.name, strconv.Quote(filepath.Join(dir, "store")), jetStreamMemory, jetStreamDisk)
	for _, line := range configLines {
		config = fmt.Appendln(config, line)
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		reserved.release()
		return nil, fmt.Errorf("configuration of the NATS server: %w", err)
	}
	n.path = path
	n.args = []string{"-c", file}
	n.dir = dir
	n.logFile = filepath.Join(dir, "nats.log")
	n.answers = n.checkAnswers
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// checkAnswers asks for the account's JetStream use, which is answered only when the streams have been recovered.
func (n *NATSProcess) checkAnswers(ctx context.Context, _ int) error {
	nc, err := nats.Connect(n.URL(), nats.Timeout(askTimeout), nats.NoReconnect())
	if err != nil {
		return fmt.Errorf("connect to the NATS server: %w", err)
	}
	defer nc.Close()
	if got := nc.ConnectedServerName(); got != n.name {
		return fmt.Errorf("%s is served by %q, not by %q: %w", n.port.addr(), got, n.name, errPortTaken)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("JetStream client: %w", err)
	}
	if _, err := js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("JetStream account: %w", err)
	}
	return nil
}

// URL returns nats://host:port. It stays the same over restarts.
func (n *NATSProcess) URL() string {
	return (&url.URL{Scheme: "nats", Host: n.port.addr()}).String()
}

// Close kills the server and gives its port back. The files stay.
func (n *NATSProcess) Close() error {
	err := n.close()
	n.port.release()
	return err
}

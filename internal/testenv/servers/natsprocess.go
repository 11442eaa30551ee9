package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// NATSProcess is a NATS server with JetStream that runs as a process: the nats-server installed on this machine,
// which on Debian 12 is 2.9.10. Unlike an embedded server it can be killed and stopped.
type NATSProcess struct {
	daemon
	name string // tells this server from a foreign one on the same port
}

// StartNATSProcess starts the installed nats-server with its files in dir. The configuration lines are added to its
// file.
func StartNATSProcess(ctx context.Context, dir string, configLines ...string) (*NATSProcess, error) {
	return retry(func() (_ *NATSProcess, err error) {
		n := &NATSProcess{name: "numathrottle-" + rand.Text()}
		n.daemon, err = newDaemon(ctx, "nats-server", dir, "nats.conf", func(p *port) []byte {
			config := fmt.Appendf(nil, "listen: %q\nserver_name: %q\njetstream { store_dir: %q, max_mem: %d, max_file: %d }\n",
				p.addr(), n.name, filepath.Join(dir, "store"), jetStreamMemory, jetStreamDisk)
			return append(config, strings.Join(configLines, "\n")+"\n"...)
		})
		if err != nil {
			return nil, err
		}
		n.args = []string{"-c", filepath.Join(dir, "nats.conf")}
		n.answers = n.checkAnswers
		if err := n.Restart(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
		return n, nil
	})
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

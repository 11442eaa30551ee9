package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
)

// natsNodeVariable names the configuration file of the server that a process is to be.
const natsNodeVariable = "NUMATHROTTLE_NATS_NODE"

// nowhere returns an address on which nothing listens, another one for each i. A node tells the others that it can be
// reached there, so that they know no way to it but their proxies.
func nowhere(i int) string { return net.JoinHostPort(loopback, strconv.Itoa(i+1)) }

// BeNATSNode makes this process a NATS server, for good, if StartNATSProcessCluster has started it as one; otherwise it does nothing. Every
// program that starts such a cluster calls it first in main, and a test in TestMain. The servers are this same program, so that they have
// the version in go.mod and need no other binary.
func BeNATSNode() {
	file := os.Getenv(natsNodeVariable)
	if file == "" {
		return
	}
	if err := runNATSNode(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runNATSNode(file string) error {
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		return fmt.Errorf("configuration of the NATS server: %w", err)
	}
	opts.Logtime = true
	s, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("NATS server: %w", err)
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		return fmt.Errorf("NATS server: %w", err)
	}
	s.WaitForShutdown()
	return nil
}

// NATSNode is one server of a NATSProcessCluster: a process that can be killed, stopped, continued, started again and
// cut off.
type NATSNode struct {
	daemon
	name    string
	client  *port
	cluster *port
	clients *proxy.Proxy               // from everyone but this package to client
	routes  map[*NATSNode]*proxy.Proxy // between this node and the others
	admin   *nats.Conn                 // past the proxy
}

// newNATSNode reserves the ports of a server that is to keep its files in dir.
func newNATSNode(ctx context.Context, name, dir string) (*NATSNode, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of the NATS server: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own file: %w", err)
	}
	file := filepath.Join(dir, "nats.conf")
	n := &NATSNode{name: name, routes: make(map[*NATSNode]*proxy.Proxy), daemon: daemon{
		path: self, env: []string{natsNodeVariable + "=" + file}, dir: dir,
	}}
	n.answers = n.checkAnswers
	if err := n.reserve(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *NATSNode) reserve(ctx context.Context) (err error) {
	if n.client, err = reservePort(ctx); err != nil {
		return err
	}
	if n.cluster, err = reservePort(ctx); err != nil {
		return err
	}
	if n.clients, err = proxy.Start(ctx, n.client.addr()); err != nil {
		return err
	}
	// The connection is made in the background, again and again while the node is away.
	n.admin, err = nats.Connect((&url.URL{Scheme: "nats", Host: n.client.addr()}).String(), nats.Name("servers"),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(pollInterval), nats.ReconnectJitter(0, 0),
		nats.ReconnectBufSize(-1), nats.IgnoreDiscoveredServers(), nats.Timeout(askTimeout),
		nats.PingInterval(askTimeout), nats.MaxPingsOutstanding(2))
	return err
}

// configure writes the node's configuration. Of two nodes one connects to the other, through a proxy, so that no second connection has to
// be abandoned. The first one connects. The other gets a route to nowhere instead, because a node takes the number of its routes for the
// size of the cluster.
func (n *NATSNode) configure(ctx context.Context, nodes []*NATSNode) error {
	var routes []string
	met := false
	for i, other := range nodes {
		if other == n {
			met = true
			continue
		}
		addr := nowhere(i)
		if met {
			p, err := proxy.Start(ctx, other.cluster.addr())
			if err != nil {
				return err
			}
			n.routes[other], other.routes[n] = p, p
			addr = p.Addr()
		}
		routes = append(routes, strconv.Quote((&url.URL{Scheme: "nats-route", Host: addr}).String()))
	}
	config := fmt.Sprintf(`server_name: %q
listen: %q
client_advertise: %q
jetstream { store_dir: %q, max_mem: %d, max_file: %d }
cluster { name: numathrottle, listen: %q, advertise: %q, no_advertise: true, routes: [%s] }
connect_error_reports: 1000000
`, n.name, n.client.addr(), n.clients.Addr(), filepath.Join(n.dir, "store"), jetStreamMemory, jetStreamDisk,
		n.cluster.addr(), nowhere(len(nodes)), strings.Join(routes, ", "))
	if err := os.WriteFile(filepath.Join(n.dir, "nats.conf"), []byte(config), 0o600); err != nil {
		return fmt.Errorf("configuration of the NATS server: %w", err)
	}
	return nil
}

// Name returns the server's name, as JetStream tells who leads a stream.
func (n *NATSNode) Name() string { return n.name }

// URL returns nats://host:port of the proxy through which clients reach the node. It stays the same over restarts.
func (n *NATSNode) URL() string { return (&url.URL{Scheme: "nats", Host: n.clients.Addr()}).String() }

// Clients returns the proxy through which clients reach the node.
func (n *NATSNode) Clients() *proxy.Proxy { return n.clients }

// checkAnswers asks for the account's JetStream use, which is answered when the node has recovered its streams and
// the cluster has a leader that counts it in.
func (n *NATSNode) checkAnswers(ctx context.Context, _ int) error {
	var reply struct{ Error *json.RawMessage }
	if err := ask(ctx, n.admin, "$JS.API.INFO", &reply); err != nil {
		return err
	}
	if reply.Error != nil {
		return fmt.Errorf("JetStream of %s: %s", n.name, *reply.Error)
	}
	return nil
}

// Close kills the server and gives its ports back. The files stay.
func (n *NATSNode) Close() error {
	failed := []error{n.daemon.Close()}
	if n.admin != nil {
		n.admin.Close()
	}
	if n.clients != nil {
		failed = append(failed, n.clients.Close())
	}
	for _, p := range n.routes {
		failed = append(failed, p.Close())
	}
	for _, reserved := range []*port{n.client, n.cluster} {
		if reserved != nil {
			reserved.release()
		}
	}
	return errors.Join(failed...)
}

// ask sends an empty request to JetStream and decodes its reply.
func ask(ctx context.Context, nc *nats.Conn, subject string, reply any) error {
	const timeout = 250 * time.Millisecond // many times what a healthy cluster takes
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, subject, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	if err := json.Unmarshal(msg.Data, reply); err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	return nil
}

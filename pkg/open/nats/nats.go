// Package nats lets pkg/open open stores on NATS JetStream. Import it for this effect:
//
//	import _ "github.com/numaproj-contrib/numathrottle/pkg/open/nats"
package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
)

func init() { //nolint:gochecknoinits // as the drivers of database/sql do
	drivers.Register(drivers.Driver{Check: check, Open: open}, config.NATS)
}

// open returns a store on a connection made in the background: the client tries every server once before it returns a connection.
func open(r *drivers.Request) *drivers.Guarded {
	store, creds := r.URL, r.Credentials
	link := &natsLink{made: make(chan struct{}), noted: make(chan struct{}), secrets: &creds.Seen}
	o := nats.GetDefaultOptions()
	for _, host := range store.Hosts {
		scheme := "nats://"
		if store.TLS {
			scheme = "tls://"
		}
		o.Servers = append(o.Servers, scheme+host)
	}
	connect := append(natsstore.ConnectOptions(),
		nats.Name("numathrottle "+r.ID),
		// A password may change on the server before it changes here: do not give up forever.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { link.note(probed(err, store.HandshakeFirst)) }),
		nats.ErrorHandler(link.report(r.Logger)),
	)
	if store.HandshakeFirst {
		connect = append(connect, nats.TLSHandshakeFirst())
	}
	login, _ := newLogin(creds) // check has reported the faults
	for _, option := range append(connect, login.opts...) {
		_ = option(&o) // none of these fails
	}

	opts := []natsstore.Option{natsstore.WithLogger(r.Logger), natsstore.WithConnect(func(o nats.Options) (*nats.Conn, error) {
		nc, ready, err := login.connect(o)
		ready()
		return nc, err
	})}
	if store.Bucket != "" {
		opts = append(opts, natsstore.WithBucket(store.Bucket))
	}
	if store.Replicas > 0 {
		opts = append(opts, natsstore.WithReplicas(store.Replicas))
	}
	if r.LongestLease > 0 {
		opts = append(opts, natsstore.WithLongestLease(r.LongestLease))
	}
	go link.connect(login, o, opts)
	return &drivers.Guarded{Get: link.get, Explain: link.explain, End: link.closeWithin, Of: r}
}

// A natsLink is a store on a connection that may not be made yet.
type natsLink struct {
	secrets *drivers.Secrets
	made    chan struct{} // closed when conn and store, or err, are set
	conn    *nats.Conn
	store   *natsstore.Store
	err     error
	noted   chan struct{} // closed when failed is set for the first time

	mu       sync.Mutex
	failed   error     // why the last attempt to connect failed
	reported time.Time // when the server's last error was logged
}

func (l *natsLink) connect(login *login, o nats.Options, opts []natsstore.Option) {
	defer close(l.made)
	var ready func()
	if l.conn, ready, l.err = login.connect(o); l.err != nil {
		return
	}
	if l.store, l.err = natsstore.New(l.conn, opts...); l.err != nil {
		l.conn.Close()
		return
	}
	ready() // the store has copied the options
}

// get waits for a connection object, connected or not, and returns the store on it.
func (l *natsLink) get(ctx context.Context) (drivers.Remote, error) {
	select {
	case <-l.made:
		return l.store, l.err
	case <-ctx.Done():
		return nil, fmt.Errorf("still connecting to NATS: %w", context.Cause(ctx))
	}
}

// closeWithin closes the connection. If it is not made when ctx ends, it is closed as soon as it is made.
func (l *natsLink) closeWithin(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-l.made
		if l.store != nil {
			_ = l.store.Close() // it may have a second connection
		}
		if l.conn != nil {
			l.conn.Close()
		}
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	return nil
}

// note records why an attempt to connect failed.
func (l *natsLink) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		return
	}
	if l.failed == nil {
		close(l.noted)
	}
	l.failed = err
}

// explain adds to an error why there is no connection, which the client does not report. It takes no longer than ctx and a moment.
func (l *natsLink) explain(ctx context.Context, err error) error {
	connected, last := l.state()
	if connected {
		return err
	}
	select {
	case <-l.noted:
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond): // the client reports it a moment later
	}
	l.mu.Lock()
	why := l.failed
	l.mu.Unlock()
	if last != nil {
		why = last
	}
	if why == nil || errors.Is(err, why) {
		return err
	}
	return fmt.Errorf("%w; the last attempt to connect: %w", err, why)
}

// state returns whether there is a connection, and the client's last error, if the client answers at once. It does not while it looks for a
// server that answers nothing.
func (l *natsLink) state() (connected bool, last error) {
	connected, _ = bounded.AtOnce(l.conn.IsConnected)
	last, _ = bounded.AtOnce(l.conn.LastError)
	return connected, last
}

// report logs errors that a server reports only to the connection, at most one line in five seconds: a refused login repeats with every
// attempt to connect.
func (l *natsLink) report(log *slog.Logger) nats.ErrHandler {
	const every = 5 * time.Second
	return func(_ *nats.Conn, _ *nats.Subscription, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if time.Since(l.reported) < every {
			return
		}
		l.reported = time.Now()
		log.Warn("the NATS server reported an error", "error", l.secrets.Clean(err))
	}
}

// Package nats lets pkg/open open stores on NATS JetStream. Import it for this effect:
//
//	import _ "github.com/numaproj-contrib/numathrottle/pkg/open/nats"
package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
)

func init() { //nolint:gochecknoinits // as the drivers of database/sql do
	drivers.Register(drivers.Driver{Check: check, Open: open}, config.NATS)
}

// open returns a store on a connection made in the background: nats.Connect tries every server once before it returns.
func open(r *drivers.Request) drivers.Backend {
	store, creds := r.URL, r.Credentials
	link := &natsLink{made: make(chan struct{}), noted: make(chan struct{}), secrets: &creds.Seen}
	scheme := "nats://"
	if store.TLS {
		scheme = "tls://"
	}
	servers := scheme + strings.Join(store.Hosts, ","+scheme)
	connect := append(natsstore.ConnectOptions(),
		nats.Name("numathrottle "+r.ID),
		// A password may change on the server before it changes here: do not give up forever.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { link.note(err) }),
		nats.ErrorHandler(link.report(r.Logger)),
	)
	logins, _ := logins(creds) // check has reported the faults
	connect = append(connect, logins...)

	opts := []natsstore.Option{natsstore.WithLogger(r.Logger)}
	if store.Bucket != "" {
		opts = append(opts, natsstore.WithBucket(store.Bucket))
	}
	if store.Replicas > 0 {
		opts = append(opts, natsstore.WithReplicas(store.Replicas))
	}
	if r.LongestLease > 0 {
		opts = append(opts, natsstore.WithLongestLease(r.LongestLease))
	}
	go link.connect(servers, connect, opts)
	return drivers.Backend{Store: &drivers.Guarded{Store: link, Secrets: &creds.Seen, Of: r}, Close: link.closeWithin}
}

// A natsLink is a consensus.Store on a connection that may not be made yet. Calls wait for it as long as their context allows.
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

func (l *natsLink) connect(servers string, connect []nats.Option, opts []natsstore.Option) {
	defer close(l.made)
	if l.conn, l.err = nats.Connect(servers, connect...); l.err != nil {
		return
	}
	if l.store, l.err = natsstore.New(l.conn, opts...); l.err != nil {
		l.conn.Close()
	}
}

// Sync implements consensus.Store.
func (l *natsLink) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if err := l.wait(ctx); err != nil {
		return driver.Answer{}, err
	}
	answer, err := l.store.Sync(ctx, req)
	return answer, l.explain(ctx, err)
}

// Leave implements consensus.Store.
func (l *natsLink) Leave(ctx context.Context, req driver.Leave) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.explain(ctx, l.store.Leave(ctx, req))
}

// Load implements consensus.Store.
func (l *natsLink) Load(ctx context.Context, pool string) ([]driver.Document, []consensus.RosterRow, error) {
	if err := l.wait(ctx); err != nil {
		return nil, nil, err
	}
	docs, roster, err := l.store.Load(ctx, pool)
	return docs, roster, l.explain(ctx, err)
}

// Save implements consensus.Store.
func (l *natsLink) Save(ctx context.Context, pool string, d driver.DocumentReport) (consensus.Version, error) {
	if err := l.wait(ctx); err != nil {
		return 0, err
	}
	current, err := l.store.Save(ctx, pool, d)
	return current, l.explain(ctx, err)
}

// Reserve implements consensus.Store.
func (l *natsLink) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	if err := l.wait(ctx); err != nil {
		return driver.Reserved{}, err
	}
	res, err := l.store.Reserve(ctx, req)
	return res, l.explain(ctx, err)
}

// Pools implements driver.Lister.
func (l *natsLink) Pools(ctx context.Context) ([]string, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	pools, err := l.store.Pools(ctx)
	return pools, l.explain(ctx, err)
}

// Age implements driver.Ager.
func (l *natsLink) Age(ctx context.Context, pool string) (time.Duration, error) {
	if err := l.wait(ctx); err != nil {
		return 0, err
	}
	age, err := l.store.Age(ctx, pool)
	return age, l.explain(ctx, err)
}

// Tills implements driver.TillReader.
func (l *natsLink) Tills(ctx context.Context, pool string) ([]driver.Till, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	tills, err := l.store.Tills(ctx, pool)
	return tills, l.explain(ctx, err)
}

// SetSpent implements driver.TillSetter.
func (l *natsLink) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.explain(ctx, l.store.SetSpent(ctx, pool, r))
}

// Push implements consensus.Pusher.
func (l *natsLink) Push(ctx context.Context, pool string, news []byte) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.store.Push(ctx, pool, news)
}

// Watch implements consensus.Pusher.
func (l *natsLink) Watch(ctx context.Context, pool string, heard func(news []byte)) (stop func(), err error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	return l.store.Watch(ctx, pool, heard)
}

// Close implements consensus.Store.
func (l *natsLink) Close() error { return l.closeWithin(context.Background()) }

// wait waits for a connection object, connected or not.
func (l *natsLink) wait(ctx context.Context) error {
	select {
	case <-l.made:
		return l.err
	case <-ctx.Done():
		return fmt.Errorf("still connecting to NATS: %w", context.Cause(ctx))
	}
}

// closeWithin closes the connection. If it is not made when ctx ends, it is closed as soon as it is made.
func (l *natsLink) closeWithin(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-l.made
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
	if err == nil {
		return nil
	}
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

package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/net/netutil"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

// A Source returns the status of one limit. It is called from any goroutine.
type Source func() Limit

// A Server serves one address of this process.
type Server struct {
	http   http.Server
	addr   net.Addr
	meters metric.MeterProvider
	stop   func(context.Context) error // of meters
	served chan struct{}               // closed when the server has ended
	users  int                         // guarded by the lock of servers

	mu      sync.Mutex
	nextID  int
	sources map[int]Source
}

// mostConnections bounds the concurrent connections of a server. The rest wait, and none lasts long.
const mostConnections = 256

// servers are the servers of this process, by requested address.
var servers = struct {
	sync.Mutex
	at map[string]*Server
}{at: map[string]*Server{}}

// Open returns the server for an address such as ":8085", and starts it if there is none. Close it once for every Open. ctx bounds only
// Open. The error says why the address is unavailable.
func Open(ctx context.Context, addr string, log *slog.Logger) (*Server, error) {
	servers.Lock()
	defer servers.Unlock()
	if s := servers.at[addr]; s != nil {
		s.users++
		return s, nil
	}
	s, err := start(ctx, addr, log)
	if err != nil {
		return nil, err
	}
	servers.at[addr] = s
	return s, nil
}

func start(ctx context.Context, addr string, log *slog.Logger) (*Server, error) {
	meters, metrics, stop, err := Prometheus()
	if err != nil {
		return nil, fmt.Errorf("health: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("health: %w", err), stop(ctx))
	}
	s := &Server{addr: listener.Addr(), meters: meters, stop: stop, served: make(chan struct{}), users: 1, sources: map[int]Source{}}
	s.http = http.Server{
		Handler:     s.handler(metrics),
		BaseContext: listen.BaseContext(nil),
		// Clients must not be able to hold connections for long.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       5 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(netutil.LimitListener(listener, mostConnections)); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the health server has stopped", "address", addr, "error", err)
		}
	}()
	return s, nil
}

// Addr returns the server's address.
func (s *Server) Addr() net.Addr { return s.addr }

// Meters returns the provider of the metrics at /metrics.
func (s *Server) Meters() metric.MeterProvider { return s.meters }

// Add shows one more limit until remove is called.
func (s *Server) Add(source Source) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID
	s.nextID++
	s.sources[id] = source
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sources, id)
	}
}

// Close ends the server after as many calls as Open had. Requests under way may continue until ctx ends.
func (s *Server) Close(ctx context.Context) error {
	servers.Lock()
	defer servers.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	for addr, at := range servers.at {
		if at == s {
			delete(servers.at, addr)
		}
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.served
	return errors.Join(err, s.stop(ctx))
}

// limits queries every source, in the order of their names.
func (s *Server) limits() []Limit {
	s.mu.Lock()
	sources := make([]Source, 0, len(s.sources))
	for _, source := range s.sources {
		sources = append(sources, source)
	}
	s.mu.Unlock()
	limits := make([]Limit, len(sources))
	for i, source := range sources {
		limits[i] = source()
	}
	slices.SortFunc(limits, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.processor(), b.processor()))
	})
	return limits
}

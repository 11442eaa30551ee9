package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// Main runs a demo until it ends or is interrupted, in a temporary folder. It exits with 1 unless every promise was kept.
func Main(name string, run func(ctx context.Context, dir string, out io.Writer) (kept bool, err error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	kept, err := inFolder(name, func(dir string) (bool, error) { return run(ctx, dir, os.Stdout) })
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	if err != nil || !kept {
		os.Exit(1)
	}
}

func inFolder(name string, run func(dir string) (bool, error)) (bool, error) {
	dir, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return run(dir)
}

// A Store holds the shared limits of a demo's processes.
type Store struct {
	URL string
	// Name describes it, without a secret.
	Name  string
	close func() error
}

// OpenStore returns the store whose URL is in the environment variable, or starts an embedded NATS server with its files below dir. Close
// it.
func OpenStore(ctx context.Context, variable, dir string) (*Store, error) {
	if url := os.Getenv(variable); url != "" {
		return &Store{URL: url, Name: "the store at " + variable, close: func() error { return nil }}, nil
	}
	server, err := servers.StartNATS(ctx, filepath.Join(dir, "nats"))
	if err != nil {
		return nil, err
	}
	return &Store{URL: server.URL(), Name: "an embedded NATS JetStream server", close: server.Close}, nil
}

// Close ends the server if there is one.
func (s *Store) Close() { _ = s.close() } // the demo is over

// Serve answers HTTP calls on a free loopback port until end is called.
func Serve(ctx context.Context, h http.Handler) (url string, end func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("start the called service: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

// Command http-sink is a Numaflow sink that sends each message, or many together, to an HTTP
// service. All pods together stay within the limits that are set, and heed what the service says
// about its own. It serves as main, fallback and on-success sink; see README.md for what it can be
// told and does.
//
//	http-sink            serves, as the user-defined sink of a vertex
//	http-sink --check    prints the settings in force, without secrets, and what is wrong with them
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends, or checks the settings.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("http-sink", flag.ContinueOnError)
	flags.SetOutput(errOut)
	check := flags.Bool("check", false, "print the settings in force, without secrets, and what is wrong with them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("http-sink: %q is no flag; settings come from variables %s* and NUMATHROTTLE_*", flags.Arg(0), prefix)
	}
	s, err := loadSettings()
	if *check {
		_, _ = io.WriteString(out, s.effective())
	}
	if err != nil || *check {
		return err
	}
	return serve(ctx, &s, slog.New(slog.NewTextHandler(errOut, nil)))
}

// serve is the life of the sink.
func serve(ctx context.Context, s *settings, log *slog.Logger) error {
	sink, err := newSink(ctx, s, log)
	if err != nil {
		return err
	}
	log.Info("http-sink", "method", s.Method, "format", s.Format, "max", s.Limit.Max, "unit", s.Unit, "inFlight", s.InFlight,
		"shadow", s.Shadow, "pool", s.Pool)
	var opts []sinksdk.Option
	if s.Socket != "" {
		opts = append(opts, sinksdk.WithSockAddr(s.Socket))
	}
	if s.ServerInfo != "" {
		opts = append(opts, sinksdk.WithServerInfoFilePath(s.ServerInfo))
	}
	err = sinksdk.NewServer(sink.handler, opts...).Start(ctx)
	return errors.Join(err, sink.close()) // leaves the pools, after the server has stopped
}

// A sink is a handler with all that it needs.
type sink struct {
	handler *handler
	limits  *limits
	metrics string // where they are served
	end     func() error
}

// newSink puts the parts together. Close it when nothing is handled any more.
func newSink(ctx context.Context, s *settings, log *slog.Logger) (*sink, error) {
	provider, addr, end, err := serveMetrics(ctx, s.MetricsAddr, log)
	if err != nil {
		return nil, err
	}
	k := &sink{end: end}
	if addr != nil {
		k.metrics = addr.String()
	}
	m, err := newMeters(provider, log)
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	if k.limits, err = openLimits(ctx, s, log, m.shadow); err != nil {
		return nil, errors.Join(err, k.close())
	}
	c, err := newClient(s, k.limits.limiter(), m)
	if err == nil {
		k.handler, err = newHandler(s, c, m, log)
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *sink) close() error {
	var err error
	if k.limits != nil {
		err = k.limits.close()
	}
	return errors.Join(err, k.end())
}

// Command http-sink is a Numaflow sink that sends each message, or many together, to an HTTP service. All pods together stay within the
// configured limits, and obey the service's responses about its own. It serves as main, fallback and on-success sink; see README.md for its
// settings and behaviour.
//
//	http-sink              serves, as the user-defined sink of a vertex
//	http-sink --check      prints the settings in force, without secrets, and their faults
//	http-sink --version    prints the version
package main

import (
	"context"
	"errors"
	"log/slog"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

var httpSink = program.Program[settings]{
	Name: "http-sink", Prefix: prefix, Fields: fields, Pool: poolOf, Finish: finish, NoLimit: noLimit, Serve: serve,
	Open: func(ctx context.Context, s *settings, log *slog.Logger) error {
		l, err := openLimits(ctx, s, log, nil)
		if err != nil {
			return err
		}
		return l.close()
	},
	Live: []string{"max", "per", "quotas", "maxRequests"},
}

func main() { httpSink.Main() }

// serve runs the sink.
func serve(ctx context.Context, s *settings, log *slog.Logger) error {
	sink, err := newSink(ctx, s, log)
	if err != nil {
		return err
	}
	log.Info("http-sink", "method", s.Method, "format", s.Format, "max", s.Pool.Limit.Max, "unit", s.Unit, "inFlight", s.InFlight,
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

// A sink is a handler with its resources.
type sink struct {
	handler *handler
	limits  *limits
	meters  *meters
}

// newSink assembles the parts. Close it after the last message.
func newSink(ctx context.Context, s *settings, log *slog.Logger) (*sink, error) {
	m, err := openMeters(ctx, &s.Pool, log)
	if err != nil {
		return nil, err
	}
	k := &sink{meters: m}
	if k.limits, err = openLimits(ctx, s, log, m.shadow); err != nil {
		return nil, errors.Join(err, k.close())
	}
	c, err := newClient(s, k.limits.limiter(), m, log)
	if err == nil {
		k.handler, err = newHandler(s, c, m, log)
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	k.handler.turns = &admission.Admitter{Limiter: k.limits, MaxWait: s.LimitWait, Log: log}
	return k, nil
}

func (k *sink) close() error {
	var err error
	if k.limits != nil {
		err = k.limits.close()
	}
	return errors.Join(err, k.meters.close())
}

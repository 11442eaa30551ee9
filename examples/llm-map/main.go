// Command llm-map is a Numaflow mapper that sends each message to an OpenAI-compatible chat
// endpoint and answers with what the model says, as JSON. All pods together stay within the
// provider's limits on requests per minute, tokens per minute and calls in flight. See
// README.md for what it can be told and does.
//
//	llm-map            serves, as the user-defined function of a map vertex
//	llm-map --check    prints the settings, without secrets, and what is wrong with them
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

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
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
	flags := flag.NewFlagSet("llm-map", flag.ContinueOnError)
	flags.SetOutput(errOut)
	check := flags.Bool("check", false, "print the settings, without secrets, and what is wrong with them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("llm-map: %q is no flag; settings come from variables %s* and NUMATHROTTLE_*", flags.Arg(0), prefix)
	}
	s, err := loadSettings()
	if *check {
		_, _ = io.WriteString(out, s.effective())
	}
	if err != nil || *check {
		return err
	}
	return serve(ctx, s, slog.New(slog.NewTextHandler(errOut, nil)))
}

// serve is the life of the mapper.
func serve(ctx context.Context, s settings, log *slog.Logger) error {
	l, err := openLimits(ctx, &s, log)
	if err != nil {
		return err
	}
	h, err := newHandler(s, l.limiter(), nil, log)
	if err != nil {
		return errors.Join(err, l.close())
	}
	log.Info("llm-map", "provider", s.Provider, "model", s.Model, "baseURL", s.BaseURL, "requestsPerMinute", s.RequestsPerMinute,
		"tokensPerMinute", s.TokensPerMinute, "inFlight", s.InFlight, "charge", s.Charge, "pool", s.Pool)
	var opts []mapsdk.Option
	if s.Socket != "" {
		opts = append(opts, mapsdk.WithSockAddr(s.Socket))
	}
	if s.ServerInfo != "" {
		opts = append(opts, mapsdk.WithServerInfoFilePath(s.ServerInfo))
	}
	err = mapsdk.NewServer(h, opts...).Start(ctx)
	return errors.Join(err, l.close()) // leaves the pools, after the server has stopped
}

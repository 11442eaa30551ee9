// Command cmd runs a fake LLM provider; see package fakellm.
//
//	go run ./examples/llm-map/fakellm/cmd -listen 127.0.0.1:8080 -requests-per-minute 600 -tokens-per-minute 90000
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fakellm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var c fakellm.Config
	flags := flag.NewFlagSet("fakellm", flag.ContinueOnError)
	flags.SetOutput(out)
	listen := flags.String("listen", "127.0.0.1:8080", "address to listen on")
	provider := flags.String("provider", "openai", "whose headers and refusals: openai, azure, anthropic or self-hosted")
	flags.IntVar(&c.RequestsPerMinute, "requests-per-minute", 0, "limit; 0 = none")
	flags.IntVar(&c.TokensPerMinute, "tokens-per-minute", 0, "limit; 0 = none")
	flags.DurationVar(&c.Slice, "slice", 0, "how much of a minute's limit can be saved up; 0 = 1m")
	flags.IntVar(&c.InFlight, "in-flight", 0, "calls at once; more are answered as an overload; 0 = any number")
	flags.DurationVar(&c.Latency, "latency", 0, "how long a call takes")
	flags.DurationVar(&c.PerToken, "per-token", 0, "what each token of the answer adds to it")
	flags.IntVar(&c.ContextTokens, "context-tokens", 0, "largest prompt; 0 = any")
	flags.IntVar(&c.DefaultMaxTokens, "default-max-tokens", 0, "largest answer to a call that does not say; 0 = 1024")
	flags.IntVar(&c.Quota, "quota", 0, "tokens of the account in all; 0 = any number")
	flags.StringVar(&c.APIKey, "api-key", "", "what calls have to show; else $FAKELLM_API_KEY, else nothing")
	forms := flags.String("forms", "", fmt.Sprintf("how answers look, one after the other, with commas between: %v", fakellm.Forms))
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if c.Forms, err = fakellm.ParseForms(*forms); err != nil {
		return err
	}
	c.APIKey = cmp.Or(c.APIKey, os.Getenv("FAKELLM_API_KEY")) // not as the default, which -h prints
	c.Provider = fakellm.Provider(*provider)
	server, err := fakellm.New(c)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "fakellm: an endpoint like that of %s at http://%s/v1\n", *provider, l.Addr())
	return serve(ctx, l, server, out)
}

// serve answers until ctx ends, and prints changed statistics once a second.
func serve(ctx context.Context, l net.Listener, server *fakellm.Server, out io.Writer) error {
	s := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last fakellm.Stats
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return s.Close()
		case <-tick.C:
			if st := server.Stats(); st != last {
				_, _ = fmt.Fprintf(out,
					"fakellm: served %d; refused for requests %d, for tokens %d, for overload %d, for quota %d; in flight %d; tokens used %d\n",
					st.Served, st.RefusedRequests, st.RefusedTokens, st.RefusedOverload, st.RefusedQuota, st.InFlight, st.Used)
				last = st
			}
		}
	}
}

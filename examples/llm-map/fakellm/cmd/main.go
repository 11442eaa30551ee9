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
	_ "time/tzdata" // -day-zone counts also where there are no time zones

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
	provider := flags.String("provider", "openai", fmt.Sprintf("whose headers, refusals and counting: %v", fakellm.Providers))
	prices := flags.String("prices", "", `what a million tokens cost: {"input": 4, "output": 20, "cachedInput": 0.4, "cacheWrite": 5}`)
	flags.StringVar(&c.APIKey, "api-key", "", "what calls have to show; else $FAKELLM_API_KEY, else nothing")
	limitFlags(flags, &c)
	usageFlags(flags, &c)
	forms := flags.String("forms", "", fmt.Sprintf("how answers look, one after the other, with commas between: %v", fakellm.Forms))
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if c.Forms, err = fakellm.ParseForms(*forms); err != nil {
		return err
	}
	if c.Prices, err = fakellm.ParsePrices(*prices); err != nil {
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

// limitFlags are the flags of the limits.
func limitFlags(flags *flag.FlagSet, c *fakellm.Config) {
	flags.IntVar(&c.RequestsPerMinute, "requests-per-minute", 0, "limit; 0 = none")
	flags.IntVar(&c.InputTokensPerMinute, "input-tokens-per-minute", 0, "limit; 0 = none")
	flags.IntVar(&c.OutputTokensPerMinute, "output-tokens-per-minute", 0, "limit; 0 = none")
	flags.IntVar(&c.TokensPerMinute, "tokens-per-minute", 0, "limit; 0 = none")
	flags.IntVar(&c.RequestsPerDay, "requests-per-day", 0, "limit; 0 = none")
	flags.IntVar(&c.TokensPerDay, "tokens-per-day", 0, "limit; 0 = none")
	flags.DurationVar(&c.Slice, "slice", 0, "how much of a minute's limit can be saved up; 0 = 1m")
	flags.DurationVar(&c.DaySlice, "day-slice", 0, "how much of a day's limit can be saved up; 0 = 24h")
	flags.StringVar(&c.DayZone, "day-zone", "", "time zone at whose midnight days begin; empty = refilled all the time, at Gemini America/Los_Angeles")
	flags.IntVar(&c.InFlight, "in-flight", 0, "calls at once; more are answered as an overload; 0 = any number")
	flags.StringVar(&c.CachedInput, "cached-input", "", "whether input from a cache counts: free or counted; empty = the provider's")
	flags.BoolVar(&c.CacheMissedAtArrival, "cache-missed-at-arrival", false, "charge the whole prompt at arrival, with what a cache has of it")
	flags.IntVar(&c.OutputWeight, "output-weight", 0, "what a token of output counts for once it is produced; 0 = 1")
	flags.BoolVar(&c.CountInputs, "count-inputs", false, "each input of a call for embeddings is a request")
	flags.IntVar(&c.Quota, "quota", 0, "tokens of the account in all; 0 = any number")
}

// usageFlags are the flags of what calls use.
func usageFlags(flags *flag.FlagSet, c *fakellm.Config) {
	flags.Float64Var(&c.TokensPerByte, "tokens-per-byte", 0, "tokens of a byte of a prompt; 0 = 0.25")
	flags.Float64Var(&c.Spread, "spread", 0, "by how much of that prompts differ: 0 to 0.9")
	flags.Float64Var(&c.CachedShare, "cached-share", 0, "part of a prompt that is read from a cache: 0 to 1")
	flags.Float64Var(&c.WriteShare, "write-share", 0, "part of a prompt that is put into a cache: 0 to 1")
	flags.BoolVar(&c.LongWrites, "long-writes", false, "put it there for an hour")
	flags.IntVar(&c.AnswerLeast, "answer-least", 0, "shortest answer, in tokens; with -answer-most")
	flags.IntVar(&c.AnswerMost, "answer-most", 0, "longest answer; 0 = the call's maximum, with an eighth of it as the shortest")
	flags.Uint64Var(&c.Seed, "seed", 0, "varies the lengths")
	flags.Float64Var(&c.ReasoningShare, "reasoning-share", 0, "part of an answer that is thought: 0 to 1")
	flags.DurationVar(&c.Latency, "latency", 0, "how long a call takes")
	flags.DurationVar(&c.PerToken, "per-token", 0, "what each token of the answer adds to it")
	flags.IntVar(&c.ContextTokens, "context-tokens", 0, "largest prompt; 0 = any")
	flags.IntVar(&c.DefaultMaxTokens, "default-max-tokens", 0, "largest answer to a call that does not say; 0 = 1024")
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
					"fakellm: served %d; refused for requests %d, for tokens %d, for overload %d, for quota %d; in flight %d; tokens used %d; cost %d\n",
					st.Served, st.RefusedRequests+st.RefusedRequestsDay, st.RefusedInput+st.RefusedOutput+st.RefusedTokens+st.RefusedTokensDay,
					st.RefusedOverload, st.RefusedQuota, st.InFlight, st.Used, st.Millionths)
				last = st
			}
		}
	}
}

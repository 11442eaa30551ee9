// Command demo runs llm-map on one machine against a fake provider, with real parts. Four processes of the llm-map binary share the
// provider's limits through a real store, and 2,000 prompts come in over their real gRPC sockets. The provider enforces its limits on its
// own clock. The demo prints a line every two seconds and ends with a verdict: no call was refused, and the tighter limit was used.
// Otherwise it exits with 1. With -profiles a table follows that tells the same of each provider, with some of the input from a cache and
// one process killed on the way, and whether its processes counted the same money.
//
//	make llm-demo
//
// Flags change the provider, the limits and the number of prompts; LLM_DEMO_STORE=redis://... or nats://... names a store in place of an
// embedded NATS server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

func main() {
	stage.Main("llm-demo", func(ctx context.Context, dir string, out io.Writer) (bool, error) {
		return run(ctx, os.Args[1:], dir, out)
	})
}

// options holds the flags.
type options struct {
	binary    string
	provider  string
	prompts   int
	processes int
	maxTokens int
	provides  fakellm.Config // the provider's limits, which are also those of the pool
	inFlight  int

	profiles       map[fakellm.Provider]bool // of the table at the end
	processesOfRow int
	rowTime        time.Duration
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{provides: fakellm.Config{Slice: 10 * time.Second, Latency: 250 * time.Millisecond, Spread: 0.12}}
	flags := flag.NewFlagSet("llm-demo", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.binary, "binary", "", "the llm-map binary; required")
	flags.StringVar(&o.provider, "provider", "anthropic", fmt.Sprintf("whose way of counting and refusing: %v", fakellm.Providers))
	flags.IntVar(&o.prompts, "prompts", 2000, "how many prompts to send")
	flags.IntVar(&o.processes, "processes", 4, "how many processes share the limits")
	flags.IntVar(&o.maxTokens, "max-tokens", 200, "how long an answer may be")
	flags.IntVar(&o.provides.RequestsPerMinute, "requests-per-minute", 2400, "limit")
	flags.IntVar(&o.provides.TokensPerMinute, "tokens-per-minute", 540_000, "limit")
	flags.IntVar(&o.inFlight, "in-flight", 64, "limit on calls at once")
	flags.DurationVar(&o.provides.Slice, "slice", o.provides.Slice, "how much of a minute's limit the provider lets a caller save up")
	flags.DurationVar(&o.provides.Latency, "latency", o.provides.Latency, "how long a call takes")
	profiles := flags.String("profiles", "", fmt.Sprintf("providers of the table at the end, with commas between; of %v", fakellm.Providers))
	flags.IntVar(&o.processesOfRow, "profile-processes", 3, "how many processes each of its rows has")
	flags.DurationVar(&o.rowTime, "profile-time", 40*time.Second, "how long each of its rows takes from the first call on")
	err := flags.Parse(args)
	if err != nil {
		return o, err
	}
	if o.profiles, err = parseProfiles(*profiles); err != nil {
		return o, err
	}
	o.provides.Provider = fakellm.Provider(o.provider)
	switch {
	case o.binary == "":
		return o, errors.New("-binary is empty, allowed: the path of the llm-map binary")
	case o.processes < 1 || o.processes > 64:
		return o, fmt.Errorf("-processes is %d, allowed: 1 to 64", o.processes)
	case o.prompts < 1 || o.prompts > 1_000_000:
		return o, fmt.Errorf("-prompts is %d, allowed: 1 to 1000000", o.prompts)
	case o.processesOfRow < 2 || o.processesOfRow > 16:
		return o, fmt.Errorf("-profile-processes is %d, allowed: 2 to 16, for one is killed", o.processesOfRow)
	case o.rowTime < 20*time.Second || o.rowTime > time.Hour:
		return o, fmt.Errorf("-profile-time is %s, allowed: 20s to 1h", o.rowTime)
	case o.provides.RequestsPerMinute < 1 && o.provides.TokensPerMinute < 1:
		return o, errors.New("-requests-per-minute and -tokens-per-minute are 0, allowed: one of them above 0")
	}
	return o, nil
}

// run plays the demo and reports whether every promise was kept.
func run(ctx context.Context, args []string, dir string, out io.Writer) (bool, error) {
	o, err := parse(args, out)
	if err != nil {
		return false, err
	}
	store, err := stage.OpenStore(ctx, "LLM_DEMO_STORE", dir)
	if err != nil {
		return false, err
	}
	defer store.Close()
	p, err := startProvider(ctx, o.provides)
	if err != nil {
		return false, err
	}
	defer p.close()
	d := &demo{options: o, out: out, dir: dir, store: store.URL, provider: p, began: time.Now()}
	_, _ = fmt.Fprintf(out, "llm-map demo: %d processes of llm-map share %d requests and %d tokens per minute, %d calls in flight, through %s\n",
		o.processes, o.provides.RequestsPerMinute, o.provides.TokensPerMinute, o.inFlight, store.Name)
	_, _ = fmt.Fprintf(out, "%d prompts; a provider that counts and refuses as %s does, on its own clock, and lets %s worth of its limits be saved up\n",
		o.prompts, o.provider, o.provides.Slice)
	_, _ = fmt.Fprintf(out, "a pool that is new to its store is frozen for 15 s: the first calls come then\n\n")
	defer d.killAll()
	if err := d.play(ctx); err != nil {
		return false, err
	}
	kept := d.verdict()
	if len(o.profiles) == 0 {
		return kept, nil
	}
	profilesKept, err := d.playProfiles(ctx)
	return kept && profilesKept, err
}

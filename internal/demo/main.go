package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The demo's limit. The burst leaves the processes 200 ms to be late in on a busy machine.
var limit = throttle.Limit{Max: 400, Per: time.Second, Burst: 80}

const lease = driver.MinLease

func main() {
	if j := os.Getenv(jobVariable); j != "" {
		if err := work(j); err != nil {
			fmt.Fprintln(os.Stderr, "mapper:", err)
			os.Exit(1)
		}
		return
	}
	stage.Main("numathrottle-demo", run)
}

// run plays the demo and reports whether every promise was kept.
func run(ctx context.Context, dir string, out io.Writer) (bool, error) {
	if url := os.Getenv("DEMO_STORE"); url != "" {
		if s, _, _ := strings.Cut(url, "://"); s != "nats" && s != "tls" && s != "redis" && s != "rediss" {
			return false, fmt.Errorf("DEMO_STORE has the scheme %q, allowed: nats, tls, redis, rediss", s)
		}
	}
	began := time.Now()
	late := stage.MeasureLateness(ctx)
	store, err := stage.OpenStore(ctx, "DEMO_STORE", dir)
	if err != nil {
		return false, err
	}
	defer store.Close()

	input, stopInput := context.WithCancel(ctx)
	defer stopInput()
	f, text, err := newFeeder(input, os.Getenv("DEMO_INPUT"))
	if err != nil {
		return false, err
	}
	svc, err := startService(ctx, bound(limit, processors+1))
	if err != nil {
		return false, err
	}
	defer svc.close()

	d := &demo{
		out: out, dir: dir, svc: svc, feed: f, stopInput: stopInput, began: began, late: late,
		job: job{
			Pool: fmt.Sprintf("demo/%d", time.Now().UnixNano()), Store: store.URL, Service: svc.url,
			Max: limit.Max, Burst: limit.Burst, Lease: lease,
		},
	}
	_, _ = fmt.Fprintf(out, "numathrottle demo: %d mapper processes share %d calls per second (burst %d) through %s\n",
		processors, limit.Max, limit.Burst, store.Name)
	address, endConsole, err := serveConsole(ctx, store.URL, d.job.Pool)
	if err != nil {
		return false, fmt.Errorf("console: %w", err)
	}
	defer endConsole()
	_, _ = fmt.Fprintf(out, "console, while the demo runs: %s\n", address)
	_, _ = fmt.Fprintf(out, "input: the lines of %s; lease %s, removal time %s; the service refuses call %d in any second\n\n",
		text, lease, wire.Removal(lease), svc.bound+1)
	defer d.killAll()
	if err := d.play(ctx); err != nil {
		return false, err
	}
	return d.verdict(), nil
}

// bound returns how much the pool may use in any window of one period: the limit, its burst, and one token for each holder of a share.
func bound(l throttle.Limit, processors int) int { return l.Max + l.Burst + processors }

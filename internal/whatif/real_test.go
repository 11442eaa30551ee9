//go:build numathrottle_faults

package whatif

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/nats" // the store of the processes
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const jobVariable = "NUMATHROTTLE_WHATIF_JOB"

// A job is the task of a process: calls per second of each tag from a moment on, for a minute.
type job struct {
	ID, Store string
	Rates     map[string]float64
	Begin     time.Time
}

// The recording is in the style of make quota-demo: a tag with a reserved rate, one with a total, and a hog.
var (
	realConf = opening.Config{Limit: throttle.Limit{Max: 400, Burst: 80}, Pool: "what-if", Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{
		"a": {Reserved: 100}, "b": {Total: 40}, "c": {Class: throttle.ClassBatch},
	}}}
	realRates = map[string]float64{"a": 80, "b": 60, "c": 600}
)

const (
	realPods = 4
	realWait = 5 * time.Second
)

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work makes the calls of one process, and prints their waits in seconds, by tag.
func work(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	conf := realConf
	conf.ID, conf.Store, conf.Logger = j.ID, j.Store, slog.New(slog.DiscardHandler)
	th, err := opening.Open(context.Background(), conf)
	if err != nil {
		return err
	}
	waits, mu, calls := map[string][]float64{}, sync.Mutex{}, sync.WaitGroup{}
	for tag, rate := range j.Rates {
		calls.Go(func() {
			for i := range int(rate * 60) {
				at := j.Begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
				time.Sleep(time.Until(at))
				calls.Go(func() {
					ctx, cancel := context.WithDeadline(context.Background(), at.Add(realWait))
					defer cancel()
					if _, err := th.ForTag(tag).Acquire(ctx, 1); err == nil {
						mu.Lock()
						waits[tag] = append(waits[tag], time.Since(at).Seconds())
						mu.Unlock()
					}
				})
			}
		})
	}
	calls.Wait()
	if err := th.Close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(waits)
}

// The prediction is within a tenth of what real processes with a real store do, or within the time for which a busy machine stops one.
func TestPredictsRealProcesses(t *testing.T) {
	const stall = 50 * time.Millisecond
	store, begin := testenv.NATS(t).URL(), time.Now().Add(25*time.Second) // a new pool grants after 15 s
	outs, ended := make([][]byte, realPods), sync.WaitGroup{}
	for i := range realPods {
		j := job{ID: fmt.Sprint("pod-", i), Store: store, Rates: map[string]float64{}, Begin: begin.Add(time.Duration(i) * time.Millisecond)}
		for tag, rate := range realRates {
			j.Rates[tag] = rate / realPods
		}
		text, err := json.Marshal(j)
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), jobVariable+"="+string(text)), os.Stderr
		ended.Go(func() { outs[i], _ = cmd.Output() })
	}
	ended.Wait()
	real := map[string]*waits{}
	for _, out := range outs {
		var of map[string][]float64
		require.NoError(t, json.Unmarshal(out, &of))
		for tag, all := range of {
			if real[tag] == nil {
				real[tag] = &waits{}
			}
			for _, s := range all {
				real[tag].add(time.Duration(s*float64(time.Second)), 1)
			}
		}
	}
	res := replayed(t, constant(1, realRates), realConf, Options{Pods: realPods, MaxWait: realWait})
	for _, tag := range res.Tags {
		is := real[tag.Name]
		t.Logf("%s: granted %d, predicted %.0f; p50 %v, predicted %v; p99 %v, predicted %v",
			tag.Name, is.n, tag.Granted, is.quantile(0.5), tag.P50, is.quantile(0.99), tag.P99)
	}
	for _, tag := range res.Tags {
		is := real[tag.Name]
		for part, predicted := range map[float64]time.Duration{0.5: tag.P50, 0.99: tag.P99} {
			require.InDelta(t, is.quantile(part), predicted, max(0.1*float64(is.quantile(part)), float64(stall)), "tag %s, %g", tag.Name, part)
		}
	}
}

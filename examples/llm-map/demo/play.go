package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// offered is how many messages a process is offered at once: more than it can have in flight, so that only the limits hold it back.
const offered = 64

// A demo is one run: the processes, the provider, and the observations.
type demo struct {
	options

	out       io.Writer
	dir       string
	store     string
	provider  *provider
	began     time.Time
	processes []*process

	answers, errorResults, failed atomic.Int64
	ended                         error
	table                         table
}

// play sends all prompts and waits for their answers.
func (d *demo) play(ctx context.Context) error {
	for i := range d.options.processes {
		if err := d.start(ctx, fmt.Sprintf("p%d", i+1)); err != nil {
			return err
		}
	}
	prompts := make(chan string)
	go func() {
		defer close(prompts)
		for i := range d.prompts {
			select {
			case prompts <- newPrompt(i):
			case <-ctx.Done():
				return
			}
		}
	}()
	var sending sync.WaitGroup
	for _, p := range d.processes {
		for range offered {
			sending.Go(func() {
				for prompt := range prompts {
					d.send(ctx, p, prompt)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-done:
			waiting = false
		case <-tick.C:
			d.row()
		}
	}
	for _, p := range d.processes {
		d.ended = errors.Join(d.ended, p.End())
	}
	return nil
}

// send sends one prompt to a process and counts the answer.
func (d *demo) send(ctx context.Context, p *process, prompt string) {
	results, err := p.Feed.Do(ctx, dataplane.Message{Value: []byte(prompt)})
	var answer struct {
		Text  string           `json:"text"`
		Usage *json.RawMessage `json:"usage"`
	}
	switch {
	case err != nil || len(results) != 1:
		d.failed.Add(1)
	case json.Unmarshal(results[0].Value, &answer) != nil || answer.Text == "" || answer.Usage == nil:
		d.errorResults.Add(1)
	default:
		d.answers.Add(1)
		p.answered.Add(1)
	}
}

// newPrompt makes the i-th prompt: 10 to 200 words, the same in every run.
func newPrompt(i int) string {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	words := []string{"pods", "share", "one", "limit", "through", "a", "store", "and", "never", "exceed", "it", "together"}
	var b strings.Builder
	fmt.Fprintf(&b, "Prompt %d:", i)
	for range 10 + r.IntN(190) {
		b.WriteString(" " + words[r.IntN(len(words))])
	}
	return b.String()
}

// used returns how much of each limit was used between the first call and the last: all usage after the first call, divided by the time.
func (d *demo) used(charges []fakellm.Charge) (requests, tokens float64, took time.Duration) {
	calls := make([]fakellm.Charge, 0, len(charges))
	for _, c := range charges {
		if c.Requests > 0 {
			calls = append(calls, c)
		}
	}
	if len(calls) < 2 {
		return 0, 0, 0
	}
	from, to := calls[0].At, calls[len(calls)-1].At
	took = to.Sub(from)
	n, sum := fakellm.Sum(charges, from, to)
	share := func(n, limit int) float64 {
		if limit == 0 {
			return 0
		}
		return float64(n) / (float64(limit) * took.Minutes())
	}
	return share(n, d.provides.RequestsPerMinute), share(sum, d.provides.TokensPerMinute), took
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// limits are those of each provider in the table of profiles. For some shares of cached input one is the tighter, for others another.
var limits = []fakellm.Config{
	{Provider: fakellm.OpenAI, RequestsPerMinute: 3000, TokensPerMinute: 400_000},
	{Provider: fakellm.Azure, RequestsPerMinute: 3000, TokensPerMinute: 600_000},
	{Provider: fakellm.Anthropic, RequestsPerMinute: 3000, InputTokensPerMinute: 300_000, OutputTokensPerMinute: 90_000},
	{Provider: fakellm.Gemini, RequestsPerMinute: 3000, InputTokensPerMinute: 300_000},
	{Provider: fakellm.Bedrock, TokensPerMinute: 700_000, OutputWeight: 5},
	{Provider: fakellm.BedrockMantle, InputTokensPerMinute: 350_000, OutputTokensPerMinute: 90_000},
	{Provider: fakellm.Groq, RequestsPerMinute: 3000, TokensPerMinute: 400_000},
	{Provider: fakellm.SelfHosted, RequestsPerMinute: 3000, TokensPerMinute: 400_000},
}

// cachedShares are the parts of the prompts that come from a cache, in the rows of each provider.
var cachedShares = []float64{0, 0.5, 0.95}

// prices are those of both sides.
var prices = fakellm.Prices{Input: "3", Output: "15", CachedInput: "0.3", CacheWrite: "3.75"}

// Times of a row. A pool is whole again a removal time after a process was killed, and even soon after it was made.
const (
	rowLease  = 3 * time.Second
	rowWarmUp = 3 * time.Second
	rowHeal   = rowLease*3/2 + 2*time.Second
)

// A profileRow is a run of some processes against one profile.
type profileRow struct {
	*demo

	healths []string // addresses
	killed  time.Time
	// What was seen.
	tighter fakellm.Limit
	use     float64
	refused int
	priced  float64 // what the processes that were not killed cost, in millionths: by the provider,
	counted float64 // and by themselves
	err     error
}

// kept reports whether a row keeps its promises.
func (r *profileRow) kept() bool {
	return r.err == nil && r.use >= leastProfileUse && r.refused == 0 && r.isExact() && r.priced > 0 && r.failed.Load()+r.errorResults.Load() == 0
}

// isExact reports whether both sides count the same money, but for what a sum of floating-point numbers loses.
func (r *profileRow) isExact() bool { return math.Abs(r.priced-r.counted) < 0.01 }

// leastProfileUse is the part of the tighter limit that must be used in each row.
const leastProfileUse = 0.98

// rowsAtOnce is how many rows are played at once: a machine that is too busy lets tokens be lost.
const rowsAtOnce = 6

// playProfiles plays the rows of each named provider, prints a table, and reports whether all promises were kept.
func (d *demo) playProfiles(ctx context.Context) (bool, error) {
	_, _ = fmt.Fprintf(d.out, "\nEach provider with %d processes for %s, of which one is killed on the way\n\n", d.processesOfRow, d.rowTime)
	var playing sync.WaitGroup
	var rows []*profileRow
	free := make(chan struct{}, rowsAtOnce)
	for _, c := range limits {
		for _, share := range cachedShares {
			if !d.profiles[c.Provider] {
				continue
			}
			c.CachedShare = share
			r := newProfileRow(d, c, len(rows))
			rows = append(rows, r)
			playing.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				r.err = r.play(ctx)
			})
		}
	}
	playing.Wait()
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return printRows(d.out, rows), nil
}

// newProfileRow returns the n-th row, with a provider's limits.
func newProfileRow(d *demo, c fakellm.Config, n int) *profileRow {
	c.Slice, c.Latency, c.Spread, c.AnswerLeast, c.AnswerMost = d.provides.Slice, d.provides.Latency, 0.1, 20, 70
	c.Prices = prices
	r := &profileRow{demo: &demo{options: d.options, out: io.Discard, store: d.store, dir: filepath.Join(d.dir, strconv.Itoa(n)), began: time.Now()}}
	r.options.provider, r.provides = string(c.Provider), c
	return r
}

// printRows prints the table, and reports whether all rows kept their promises.
func printRows(out io.Writer, rows []*profileRow) bool {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "PROFILE\tcached\ttighter limit\tuse\trefused\terrors\tcost\tmoney exact\t")
	all := true
	var errs []error
	for _, r := range rows {
		all = all && r.kept()
		r.print(t)
		if r.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.options.provider, r.err))
		}
	}
	_ = t.Flush()
	if err := errors.Join(errs...); err != nil {
		_, _ = fmt.Fprintf(out, "\n%v\n", err)
	}
	return all
}

// print adds the row to a table.
func (r *profileRow) print(t io.Writer) {
	word, exact := "ok", "yes"
	if !r.kept() {
		word = "BROKEN"
	}
	if !r.isExact() {
		exact = fmt.Sprintf("no: counted %.2f", r.counted)
	}
	_, _ = fmt.Fprintf(t, "%s\t%.0f %%\t%s\t%.3f\t%d\t%d\t%.2f\t%s\t%s\n", r.options.provider, r.provides.CachedShare*100, r.tighter, r.use, r.refused,
		r.failed.Load()+r.errorResults.Load(), r.priced, exact, word)
}

// settingsOf returns the settings of llm-map for a provider's limits, without those that are not set.
func settingsOf(c fakellm.Config) (settings []string, err error) {
	for _, s := range []struct {
		name  string
		value int
	}{
		{"REQUESTS_PER_MINUTE", c.RequestsPerMinute},
		{"INPUT_TOKENS_PER_MINUTE", c.InputTokensPerMinute},
		{"OUTPUT_TOKENS_PER_MINUTE", c.OutputTokensPerMinute},
		{"TOKENS_PER_MINUTE", c.TokensPerMinute},
		{"OUTPUT_WEIGHT", c.OutputWeight},
	} {
		if s.value > 0 {
			settings = append(settings, "LLM_MAP_"+s.name+"="+strconv.Itoa(s.value))
		}
	}
	if c.CachedInput != "" {
		settings = append(settings, "LLM_MAP_CACHED_INPUT="+c.CachedInput)
	}
	priced, err := json.Marshal(map[string]fakellm.Prices{"demo": c.Prices})
	return append(settings, "LLM_MAP_PRICES="+string(priced)), err
}

// play starts the processes of a row, feeds them, kills one at half time, and reads what was seen.
func (r *profileRow) play(ctx context.Context) (err error) {
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return err
	}
	if r.provider, err = startProvider(ctx, r.provides); err != nil {
		return err
	}
	defer r.provider.close()
	defer r.killAll()
	settings, err := settingsOf(r.provides)
	if err != nil {
		return err
	}
	for i := range r.processesOfRow {
		address, err := freeAddress(ctx)
		if err != nil {
			return err
		}
		r.healths = append(r.healths, address)
		id := fmt.Sprintf("p%d", i+1)
		own := append(slices.Clip(settings), "LLM_MAP_API_KEY="+id, "NUMATHROTTLE_HEALTH_ADDR="+address, "NUMATHROTTLE_LEASE="+rowLease.String())
		if err := r.startWith(ctx, id, own...); err != nil {
			return err
		}
	}
	if err := r.feed(ctx); err != nil {
		return err
	}
	return r.read(ctx)
}

// feed feeds the processes until the row's time is over, and kills the first at half of it. Messages that it had go to the others.
func (r *profileRow) feed(ctx context.Context) error {
	if err := r.firstCall(ctx); err != nil {
		return err
	}
	var over atomic.Bool
	var feeding sync.WaitGroup
	for i := range offered * len(r.processes) {
		feeding.Go(func() {
			for n := i; !over.Load() && ctx.Err() == nil; n += offered * len(r.processes) {
				prompt := dataplane.Message{Value: []byte(newPrompt(n))}
				if results, err := r.processes[i%len(r.processes)].Feed.Do(ctx, prompt); err == nil {
					r.note(results)
					continue
				}
				if i%len(r.processes) != 0 { // only the first may be gone
					r.failed.Add(1)
				}
				return
			}
		})
	}
	half := r.rowTime / 2
	wait(ctx, half)
	r.killed = time.Now()
	err := r.processes[0].Kill()
	wait(ctx, half)
	over.Store(true)
	feeding.Wait()
	return err
}

// firstCall waits until the pool has begun, for which one message is enough.
func (r *profileRow) firstCall(ctx context.Context) error {
	results, err := r.processes[0].Feed.Do(ctx, dataplane.Message{Value: []byte(newPrompt(rand.Int()))})
	r.began = time.Now()
	r.note(results)
	return err
}

// note counts an answer.
func (r *profileRow) note(results []dataplane.Result) {
	var answer struct {
		Text string `json:"text"`
	}
	if len(results) != 1 || json.Unmarshal(results[0].Value, &answer) != nil || answer.Text == "" {
		r.errorResults.Add(1)
		return
	}
	r.answers.Add(1)
}

// read reads what was seen, and ends the processes.
func (r *profileRow) read(ctx context.Context) error {
	r.tighter, r.use = r.tightest(r.provider.Charges(), time.Now())
	r.refused = r.provider.Stats().Refused()
	for i, p := range r.processes {
		if i == 0 {
			continue // it was killed
		}
		cost, _ := r.provider.CostOf(p.ID).Float64()
		r.priced += cost
		counted, err := costByMetrics(ctx, r.healths[i])
		if err != nil {
			return err
		}
		r.counted += counted
	}
	var errs []error
	for _, p := range r.processes[1:] {
		errs = append(errs, p.End())
	}
	return errors.Join(errs...)
}

// tightest returns the limit of which most was used while all processes were well, and that part.
func (r *profileRow) tightest(charges []fakellm.Charge, end time.Time) (tightest fakellm.Limit, most float64) {
	c := r.provides
	for _, l := range []struct {
		limit  fakellm.Limit
		amount int
	}{
		{fakellm.Requests, c.RequestsPerMinute},
		{fakellm.InputTokens, c.InputTokensPerMinute},
		{fakellm.OutputTokens, c.OutputTokensPerMinute},
		{fakellm.Tokens, c.TokensPerMinute},
	} {
		if l.amount == 0 {
			continue
		}
		sum, minutes := 0, 0.0
		for _, steady := range [][2]time.Time{{r.began.Add(rowWarmUp), r.killed}, {r.killed.Add(rowHeal), end.Add(-c.Latency)}} {
			sum += fakellm.SumOf(l.limit, charges, steady[0], steady[1])
			minutes += steady[1].Sub(steady[0]).Minutes()
		}
		if use := float64(sum) / (float64(l.amount) * minutes); use > most {
			tightest, most = l.limit, use
		}
	}
	return tightest, most
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// freeAddress returns a free loopback address.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// parseProfiles parses the names of providers with commas between.
func parseProfiles(names string) (map[fakellm.Provider]bool, error) {
	set := map[fakellm.Provider]bool{}
	for name := range strings.SplitSeq(names, ",") {
		if name == "" {
			continue
		}
		known := false
		for _, c := range limits {
			known = known || string(c.Provider) == name
		}
		if !known {
			return nil, fmt.Errorf("-profiles has %.40q, allowed: %v", name, fakellm.Providers)
		}
		set[fakellm.Provider(name)] = true
	}
	return set, nil
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

// A table remembers the figures of its last row.
type table struct {
	at       time.Time
	answered map[string]int64
}

// row prints the events since the last row.
func (d *demo) row() {
	now := time.Now()
	if d.table.answered == nil {
		d.table = table{at: d.began, answered: map[string]int64{}}
		_, _ = fmt.Fprintln(d.out, " time  prompts    requests/s  tokens/s      in flight  refused  answered per second")
	}
	since := now.Sub(d.table.at)
	requests, tokens := fakellm.Sum(d.provider.Charges(), d.table.at, now)
	var each []string
	for _, p := range d.processes {
		n := p.answered.Load()
		each = append(each, fmt.Sprintf("%s %4.1f", p.ID, float64(n-d.table.answered[p.ID])/since.Seconds()))
		d.table.answered[p.ID] = n
	}
	d.table.at = now
	st := d.provider.Stats()
	_, _ = fmt.Fprintf(d.out, "%4.0fs  %4d/%-5d %5.1f/%-5.1f %6.0f/%-7.0f %8d %8d  %s\n", now.Sub(d.began).Seconds(),
		d.answers.Load(), d.prompts,
		float64(requests)/since.Seconds(), float64(d.provides.RequestsPerMinute)/60,
		float64(tokens)/since.Seconds(), float64(d.provides.TokensPerMinute)/60,
		st.InFlight, st.Refused(), strings.Join(each, "  "))
}

// leastUse is the part of the tighter limit that must be used.
const leastUse = 0.97

// verdict prints the promises and the observations, and reports whether all promises were kept.
func (d *demo) verdict() bool {
	charges, st := d.provider.Charges(), d.provider.Stats()
	requests, tokens, took := d.used(charges)
	v := stage.NewVerdict(d.out)
	v.Judge(int64(d.prompts) == d.answers.Load(), "prompts, answers", "equal", "%d, %d", d.prompts, d.answers.Load())
	v.Judge(d.errorResults.Load()+d.failed.Load() == 0, "error results, messages without a result", "0, 0", "%d, %d", d.errorResults.Load(), d.failed.Load())
	v.Judge(st.Served == d.prompts, "calls made", "one for each prompt", "%d", st.Served)
	v.Judge(st.Refused() == 0, "calls refused by the provider", "0", "%d", st.Refused())
	v.Judge(d.inFlight == 0 || st.MostInFlight <= d.inFlight, "calls in flight at most", fmt.Sprintf("at most %d", d.inFlight), "%d", st.MostInFlight)
	for _, limit := range []struct {
		name string
		use  float64
	}{{"requests", requests}, {"tokens", tokens}} {
		what := fmt.Sprintf("%s: use of the limit over %.1f s", limit.name, took.Seconds())
		if limit.use < max(requests, tokens) {
			v.Tell(what, "", "%.3f", limit.use)
			continue
		}
		v.Judge(limit.use >= leastUse, what, fmt.Sprintf("at least %.2f of the tighter one", leastUse), "%.3f", limit.use)
	}
	mostRequests, mostTokens := fakellm.Worst(charges, time.Minute)
	v.Tell("requests in the worst minute", "", "%d of %d", mostRequests, d.provides.RequestsPerMinute)
	v.Tell("tokens in the worst minute", "", "%d of %d", mostTokens, d.provides.TokensPerMinute)
	v.Ended(d.ended)
	return v.Print(time.Since(d.began))
}

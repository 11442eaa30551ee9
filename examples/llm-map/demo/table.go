package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
)

// A table remembers what its last row showed.
type table struct {
	at       time.Time
	answered map[string]int64
}

// row prints what happened since the last one.
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
		each = append(each, fmt.Sprintf("%s %4.1f", p.id, float64(n-d.table.answered[p.id])/since.Seconds()))
		d.table.answered[p.id] = n
	}
	d.table.at = now
	st := d.provider.Stats()
	_, _ = fmt.Fprintf(d.out, "%4.0fs  %4d/%-5d %5.1f/%-5.1f %6.0f/%-7.0f %8d %8d  %s\n", now.Sub(d.began).Seconds(),
		d.answers.Load(), d.prompts,
		float64(requests)/since.Seconds(), float64(d.provides.RequestsPerMinute)/60,
		float64(tokens)/since.Seconds(), float64(d.provides.TokensPerMinute)/60,
		st.InFlight, st.Refused(), strings.Join(each, "  "))
}

// leastUse is how much of the tighter limit has to be used.
const leastUse = 0.97

// verdict prints what was promised and what was seen, and tells whether all of it was kept.
func (d *demo) verdict() bool {
	ok := true
	judge := func(kept bool) string {
		ok = ok && kept
		if kept {
			return "ok"
		}
		return "BROKEN"
	}
	charges, st := d.provider.Charges(), d.provider.Stats()
	requests, tokens, took := d.used(charges)
	tighter := max(requests, tokens)
	promise := func(use float64) (string, string) {
		if use < tighter {
			return "", ""
		}
		return fmt.Sprintf("at least %.2f of the tighter one", leastUse), judge(use >= leastUse)
	}
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("\nVERDICT\tseen\tpromised\t")
	line("prompts, answers\t%d, %d\tequal\t%s", d.prompts, d.answers.Load(), judge(int64(d.prompts) == d.answers.Load()))
	line("error results, messages without a result\t%d, %d\t0, 0\t%s", d.errorResults.Load(), d.failed.Load(),
		judge(d.errorResults.Load()+d.failed.Load() == 0))
	line("calls made\t%d\tone for each prompt\t%s", st.Served, judge(st.Served == d.prompts))
	line("calls refused by the provider\t%d\t0\t%s", st.Refused(), judge(st.Refused() == 0))
	line("calls in flight at most\t%d\tat most %d\t%s", st.MostInFlight, d.inFlight, judge(d.inFlight == 0 || st.MostInFlight <= d.inFlight))
	words, result := promise(requests)
	line("requests: use of the limit over %.1f s\t%.3f\t%s\t%s", took.Seconds(), requests, words, result)
	words, result = promise(tokens)
	line("tokens: use of the limit over %.1f s\t%.3f\t%s\t%s", took.Seconds(), tokens, words, result)
	mostRequests, mostTokens := fakellm.Worst(charges, time.Minute)
	line("requests in the worst minute\t%d of %d\t\t", mostRequests, d.provides.RequestsPerMinute)
	line("tokens in the worst minute\t%d of %d\t\t", mostTokens, d.provides.TokensPerMinute)
	ended := "yes"
	if d.ended != nil {
		ended = d.ended.Error()
	}
	line("processes ended in good order\t%s\tyes\t%s", ended, judge(d.ended == nil))
	_ = w.Flush()
	_, _ = fmt.Fprintf(d.out, "\n%s after %.0f s\n", map[bool]string{true: "PASS", false: "FAIL"}[ok], time.Since(d.began).Seconds())
	return ok
}

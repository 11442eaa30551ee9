package brownout

import (
	"fmt"
	"strings"
)

// Shown is the run in the documentation: a minute as configured, a minute at a quarter of the service's capacity, two minutes as configured
// again.
func Shown(way Way, seed uint64) Plan {
	return Plan{Way: way, Processors: 20, Limit: 200, Service: Falls(200, 50, fallAt, backAt), Seconds: 240, Seed: seed}
}

const (
	fallAt, backAt = 60, 120
	seedsShown     = 5
)

// ways names the ways to handle refusals, in the order of the table.
var ways = []struct {
	way  Way
	name string
}{
	{Fixed, "fixed shares, refused calls tried again every second"},
	{Alone, "the law in each processor for itself"},
	{Shared, "one ceiling for the pool"},
}

// Table returns a Markdown table of the results of the ways, as means and worst cases of several seeds.
func Table() string {
	var b strings.Builder
	b.WriteString("| | of what the service can do | while it can do a quarter | refused | while it can do a quarter | " +
		"calls refused of | 80 % again after |\n|---|---|---|---|---|---|---|\n")
	for _, w := range ways {
		var used, low, part, hard, least, most float64
		var refused, calls, back int
		least = 1
		for seed := range uint64(seedsShown) {
			r := Run(Shown(w.way, seed))
			used += r.Used() / seedsShown
			low += r.UsedIn(fallAt, backAt) / seedsShown
			part += r.RefusedPart() / seedsShown
			hard += r.RefusedIn(fallAt, backAt) / seedsShown
			least, most = min(least, r.Used()), max(most, r.RefusedPart())
			refused += r.Refused / seedsShown
			calls += r.Calls / seedsShown
			back = max(back, r.Back(backAt, 0.8))
		}
		fmt.Fprintf(&b, "| %s | %.3f (least %.3f) | %.2f | %.2f %% (most %.2f %%) | %.2f %% | %d of %d | %d s at most |\n",
			w.name, used, least, low, 100*part, 100*most, 100*hard, refused, calls, back)
	}
	return b.String()
}

// Plot returns one run over time as text: the service's capacity, the pool's ceiling, and the accepted and refused calls. Its steps are
// five seconds around the fall.
func Plot(seed uint64) string {
	r := Run(Shown(Shared, seed))
	var b strings.Builder
	b.WriteString("  from   can  ceiling  accepted  refused   (calls per second; # accepted, x refused, | what the service can do)\n")
	const step, scale = 5, 4.0
	for at := fallAt - 10; at < backAt+30; at += step {
		var ceiling, accepted, refused float64
		for _, s := range r.Seconds[at : at+step] {
			ceiling += s.Ceiling / step
			accepted += float64(s.Accepted) / step
			refused += float64(s.Refused) / step
		}
		can := r.Seconds[at].Can
		bar := []byte(strings.Repeat(" ", int(200/scale)+2))
		for i := range bar {
			switch rate := (float64(i) + 0.5) * scale; {
			case rate < accepted:
				bar[i] = '#'
			case rate < accepted+refused:
				bar[i] = 'x'
			}
		}
		if i := int(can / scale); bar[i] == ' ' {
			bar[i] = '|'
		}
		fmt.Fprintf(&b, "%4d s  %4.0f  %7.0f  %8.0f  %7.1f   %s\n", at, can, ceiling, accepted, refused, strings.TrimRight(string(bar), " "))
	}
	return b.String()
}

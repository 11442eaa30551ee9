package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// row prints what every processor does, once a second.
func (d *demo) row() {
	now := time.Now()
	if d.granted == nil {
		d.granted = map[string]int64{}
		_, _ = fmt.Fprintln(d.out, " time  total/limit  pool          per processor: granted per second, share            phase")
		d.tableAt = now
	}
	since := now.Sub(d.tableAt)
	if since < time.Second {
		return
	}
	var cols []string
	var pool, frozen string
	for _, p := range d.procs {
		r := p.report()
		perSecond := float64(r.Granted-d.granted[p.id]) / since.Seconds()
		d.granted[p.id] = r.Granted
		state := fmt.Sprintf("%3.0f %4.1f%%", perSecond, 100*r.Share)
		if word := p.word(); word != "" {
			state = fmt.Sprintf("%9s", word)
		} else {
			pool = consensusWord(r)
			if r.Frozen > 0 && r.Share == 0 {
				frozen = fmt.Sprintf(" (frozen for %.1f s more: the pool is new to the store)", r.Frozen.Seconds())
			}
		}
		cols = append(cols, p.id+" "+state)
	}
	total := d.svc.calls(now.Add(-since), now)
	_, _ = fmt.Fprintf(d.out, "%4.0fs  %5.0f/%-5d  %-12s  %s  %s%s\n", now.Sub(d.began).Seconds(),
		float64(total)/since.Seconds(), limit.Max, pool, strings.Join(cols, " | "), d.phase, frozen)
	d.tableAt = now
}

func consensusWord(r report) string {
	if r.Agreed {
		return fmt.Sprintf("%d AGREE", r.PoolSize)
	}
	return fmt.Sprintf("%d DISAGREE", r.PoolSize)
}

// verdict prints what was promised and what was seen, and tells whether all of
// it was kept.
func (d *demo) verdict() bool {
	ok := true
	judge := func(kept bool) string {
		ok = ok && kept
		if kept {
			return "ok"
		}
		return "BROKEN"
	}
	t := d.svc.tally()
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("\nVERDICT\tseen\tpromised\t")
	line("calls in the worst second, by grant\t%d\tat most %d\t%s", t.byGrant, d.svc.bound, judge(t.byGrant <= d.svc.bound))
	line("calls in the worst second, by arrival\t%d\tat most %d\t%s", t.byArrival, d.svc.bound, judge(t.byArrival <= d.svc.bound))
	line("calls refused by the service\t%d\t0\t%s", t.refused, judge(t.refused == 0))
	line("calls granted before a stop, used after it\t%d\tat most %d in flight\t%s", t.late, inFlight, judge(t.late <= inFlight))
	for _, p := range d.steady {
		line("use: %s\t%.3f of the limit (%d calls in %.1f s)\tat least 0.97\t%s",
			p.name, p.use, p.calls, p.took.Seconds(), judge(p.use >= 0.97))
	}
	for _, e := range d.events {
		if e.limit == 0 {
			line("time until all is in use: %s\t%.2f s\tmeasured only\t", e.name, e.took.Seconds())
			continue
		}
		line("time to heal: %s\t%.2f s\tat most %.1f s\t%s", e.name, e.took.Seconds(), e.limit.Seconds(), judge(e.took <= e.limit))
	}
	in, answered := d.feed.in.Load(), d.feed.out.Load()
	line("messages in, results out\t%d, %d\tequal\t%s", in, answered, judge(in == answered))
	line("messages sent again after the kill\t%d\t\t", d.feed.resent.Load())
	line("processes ended in good order\t%s\tyes\t%s", yes(d.ended), judge(d.ended == nil))
	_ = w.Flush()
	_, _ = fmt.Fprintf(d.out, "\n%s after %.0f s\n", map[bool]string{true: "PASS", false: "FAIL"}[ok], time.Since(d.began).Seconds())
	return ok
}

func yes(err error) string {
	if err == nil {
		return "yes"
	}
	return err.Error()
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

// row prints the state of every processor, once a second.
func (d *demo) row() {
	now := time.Now()
	if d.granted == nil {
		d.granted = map[string]int64{}
		_, _ = fmt.Fprintln(d.out, " time  total/limit  pool          per pod: granted per second, share                  phase")
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
		perSecond := float64(r.Granted-d.granted[p.ID]) / since.Seconds()
		d.granted[p.ID] = r.Granted
		state := fmt.Sprintf("%3.0f %4.1f%%", perSecond, 100*r.Share)
		if word := p.word(); word != "" {
			state = fmt.Sprintf("%9s", word)
		} else {
			pool = consensusWord(r)
			if r.Frozen > 0 && r.Share == 0 {
				frozen = fmt.Sprintf(" (frozen for %.1f s more: the pool is new to the store)", r.Frozen.Seconds())
			}
		}
		cols = append(cols, p.ID+" "+state)
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

// verdict prints the promises and the observations, and reports whether all promises were kept.
func (d *demo) verdict() bool {
	v, t := stage.NewVerdict(d.out), d.svc.tally()
	bound := fmt.Sprintf("at most %d", d.svc.bound)
	v.Judge(t.byGrant <= d.svc.bound, "calls in the worst second, by grant", bound, "%d", t.byGrant)
	v.Judge(t.byArrival <= d.svc.bound, "calls in the worst second, by arrival", bound, "%d", t.byArrival)
	v.Judge(t.refused == 0, "calls refused by the service", "0", "%d", t.refused)
	v.Judge(t.late <= inFlight, "calls granted before a stop, used after it", fmt.Sprintf("at most %d in flight", inFlight), "%d", t.late)
	for _, p := range d.steady {
		v.Judge(p.use >= 0.97, "use: "+p.name, "at least 0.97", "%.3f of the limit (%d calls in %.1f s)", p.use, p.calls, p.took.Seconds())
	}
	for _, e := range d.events {
		if e.limit == 0 {
			v.Tell("time until all is in use: "+e.name, "measured only", "%.2f s", e.took.Seconds())
			continue
		}
		v.Judge(e.took <= e.limit, "time to heal: "+e.name, fmt.Sprintf("at most %.1f s", e.limit.Seconds()), "%.2f s", e.took.Seconds())
	}
	in, answered := d.feed.in.Load(), d.feed.out.Load()
	v.Judge(in == answered, "messages in, results out", "equal", "%d, %d", in, answered)
	v.Tell("messages sent again after the kill", "", "%d", d.feed.resent.Load())
	v.Ended(d.ended)
	burst := time.Duration(limit.Burst) * limit.Per / time.Duration(limit.Max)
	v.Tell("this machine, late at worst", fmt.Sprintf("a busy one loses use: the burst lasts %v", burst), "%v", d.late.Worst().Round(time.Millisecond))
	took := time.Since(d.began)
	v.Judge(took < longest, "time of the whole demo", fmt.Sprintf("less than %.0f s", longest.Seconds()), "%.1f s", took.Seconds())
	return v.Print(took)
}

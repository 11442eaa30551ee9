package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// writeTable prints the state of one pool at now. still is how long values that should change have not. all also shows ended settings and
// dead pods.
func writeTable(out io.Writer, o *protocol.Overview, now time.Time, still time.Duration, all bool) {
	head := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) {
		_, _ = fmt.Fprintf(head, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("pool", "%s", printable(o.Pool))
	line("why", "%s", explain(o, now).Sentence)
	line("limit", "%s", limitText(o))
	if a := o.Announced; a.Max > 0 {
		line("announced", "%s by the called service", why.LimitText(a.Max, a.Per))
	}
	if o.Ramp > 0 {
		line("ramp", "at %.4g per %s", o.Ramp, duration.Short(o.RampPer))
	}
	for _, p := range poolview.PausesAt(o.Pauses, now) {
		line("PAUSED", "%s", pauseText(&p))
	}
	if o.Frozen > 0 {
		line("FROZEN", "no share grows for %s: %s", seconds(o.Frozen), printable(o.FrozenBy.Explain()))
	}
	for i := range o.Processors {
		if p := &o.Processors[i]; p.Overdue && !p.Gone() {
			line("SILENT", "%s for %s; its share of %s may be unused for %s more", printable(p.ID), seconds(p.Silent), percent(p.Claim), seconds(p.Left))
		}
	}
	line("pods", "%s", podsText(o, all))
	if len(o.Processors) > 0 {
		use, waiting := poolview.Use(o)
		line("use", "%s of the limit, %d waiting", fraction(use), waiting)
	}
	if text := protocol.Disagreement(o.Settings, o.Override.Max > 0 || o.File.Max > 0); text != "" {
		for i, part := range strings.Split(text, "; ") {
			if i == 0 {
				line("settings", "DISAGREE: %s", part)
			} else {
				line("", "%s", part)
			}
		}
	}
	if o.File.Hash != "" {
		line("file", "%s", fileText(&o.File))
	}
	if names := documents(o, now, all); len(names) > 0 {
		line("documents", "%s", strings.Join(names, ", "))
	}
	if len(o.Unreadable) > 0 {
		for _, name := range o.Unreadable {
			line("not readable", "%s: from a later version than this command, or damaged; %s replaces it", name, why.Replacement(name))
		}
	}
	if still > 0 {
		line("still", "nothing has changed for %s: nobody syncs", seconds(still))
	}
	_ = head.Flush()
	writePods(out, o, all)
}

// documents names the documents in force, or all.
func documents(o *protocol.Overview, now time.Time, all bool) (names []string) {
	if !all {
		return o.InForce(now)
	}
	for _, d := range o.Documents {
		names = append(names, d.Name)
	}
	return names
}

func writePods(out io.Writer, o *protocol.Overview, all bool) {
	if len(o.Processors) == 0 || !all && dead(o) == len(o.Processors) {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nPOD\tSHARE\tDEMAND\tUSE\tWAITING\tTHROTTLED\tPOOL SIZE\tCONFIGURED\tSEEN")
	for i := range o.Processors {
		p := &o.Processors[i]
		if p.Gone() && !all {
			continue
		}
		demand, use, waiting, throttled := percent(p.Demand), fraction(poolview.UseOf(o, p)), strconv.Itoa(p.Waiting), cmp.Or(printable(whyText(p)), "-")
		if p.Overdue { // what it reported is outdated
			demand, use, waiting, throttled = "-", "-", "-", why.CauseSilent
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s ago\n", printable(p.ID), percent(p.Claim), demand, use, waiting, throttled,
			p.PoolSize, configured(p), seconds(p.Silent))
	}
	_ = table.Flush()
}

// whyText says what holds a pod's callers back, in a word and the tag.
func whyText(p *protocol.OverviewRow) string {
	s := p.Standing
	s.Throttled = limit.Reason(poolview.Word(string(s.Throttled)))
	return s.Why()
}

// seconds formats a duration in tenths of a second.
func seconds(d time.Duration) string { return duration.Short(d.Round(100 * time.Millisecond)) }

// dead counts the dead pods.
func dead(o *protocol.Overview) int { return count(o, (*protocol.OverviewRow).Gone) }

// silent counts the pods that should have synced by now, without the dead ones.
func silent(o *protocol.Overview) int {
	return count(o, func(p *protocol.OverviewRow) bool { return p.Overdue && !p.Gone() })
}

func count(o *protocol.Overview, is func(*protocol.OverviewRow) bool) (n int) {
	for i := range o.Processors {
		if is(&o.Processors[i]) {
			n++
		}
	}
	return n
}

// podsText counts the pods and says how they divide the limit.
func podsText(o *protocol.Overview, all bool) string {
	if len(o.Processors) == 0 {
		return "none"
	}
	agreement := "AGREE"
	if !o.Agreed {
		agreement = "DISAGREE"
	}
	var claimed driver.Share
	for i := range o.Processors {
		claimed += o.Processors[i].Claim
	}
	more := ""
	if n := silent(o); n > 0 {
		more = fmt.Sprintf(", %d silent", n)
	}
	if n := dead(o); n > 0 {
		more += fmt.Sprintf(", %d dead", n)
		if !all {
			more += " (--" + allName + ")"
		}
	}
	return fmt.Sprintf("%d, pool size %d %s, %s of the limit claimed%s", len(o.Processors), o.PoolSize, agreement, percent(claimed), more)
}

// limitText describes the limit in force and its source.
func limitText(o *protocol.Overview) string {
	switch {
	case o.Override.Max > 0:
		return poolview.LimitText(o) + ", an override" + endText(o.Override.Until, o.Override.By, o.Override.Reason)
	case o.Max == 0 && o.Slots == 0:
		return "none that a pod tells"
	case o.File.Max > 0 && !o.Announced.Followed && !o.Announced.Awaited:
		return poolview.LimitText(o) + ", by " + printable(o.File.String())
	case o.Slots > 0:
		return poolview.LimitText(o)
	}
	switch {
	case o.Announced.Followed:
		return poolview.LimitText(o) + ", which the called service announces"
	case o.Announced.Awaited:
		return poolview.LimitText(o) + ", until the called service announces one"
	}
	for i := range o.Processors {
		if p := &o.Processors[i]; p.Max > 0 && float64(p.Max)*o.Per.Seconds() != float64(o.Max)*p.Per.Seconds() {
			return poolview.LimitText(o) + ", the lowest that is configured"
		}
	}
	return poolview.LimitText(o)
}

// configured returns the limit in a processor's note.
func configured(p *protocol.OverviewRow) string {
	if p.Note == "" {
		return "-"
	}
	return poolview.Configured(p)
}

// pauseText describes a pause: its scope, end, author and reason.
func pauseText(p *throttle.Paused) string {
	what := "everything"
	if p.Tag != "" {
		what = "tag " + printable(p.Tag)
	}
	if p.Until.IsZero() {
		what += " until it is cleared"
	}
	return what + endText(p.Until, p.By, p.Reason)
}

// endText says when something ends, who requested it, and why.
func endText(until time.Time, by, reason string) (text string) {
	if !until.IsZero() {
		text += " until " + until.UTC().Format(time.RFC3339)
	}
	if by != "" {
		text += " by " + printable(by)
	}
	if reason != "" {
		text += ": " + printable(reason)
	}
	return text
}

// stateOf summarises the exceptional conditions of a pool.
func stateOf(o *protocol.Overview, now time.Time) string {
	var words []string
	add := func(there bool, word string) {
		if there {
			words = append(words, word)
		}
	}
	add(len(poolview.PausesAt(o.Pauses, now)) > 0, "PAUSED")
	add(o.Frozen > 0, "FROZEN")
	add(silent(o) > 0, "SILENT")
	add(o.Override.Max > 0, "override")
	add(len(o.Settings) > 1, "DISAGREE")
	add(len(o.Unreadable) > 0, "not readable")
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

func percent(s driver.Share) string { return fraction(s.Fraction()) }

func fraction(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

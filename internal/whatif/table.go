package whatif

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
)

// A Report compares a recording with what a configuration makes of it. Before is another configuration's result, or Recorded.
type Report struct {
	Traffic       *Traffic
	Before, After *Result
	// BeforeName and AfterName name the two, such as by their files.
	BeforeName, AfterName string
	Options               Options

	recorded *Result
}

// columns are those of the table.
var columns = []string{
	"tag", "calls", "use before", "after", "p50 wait before", "after", "p99 wait before", "after", "refused before", "after", "budget spent before", "after",
}

// rows are the lines of the table: a total, then the tags.
func (r *Report) rows() (rows [][]string) {
	row := func(name string, b, a *TagResult) {
		use := func(of *Result, t *TagResult) string { return part(of.Use * t.Tokens / max(of.All.Tokens, 1)) }
		cells := []string{name, count(a.Calls), use(r.Before, b), use(r.After, a)}
		for _, wait := range []func(*TagResult) time.Duration{
			func(t *TagResult) time.Duration { return t.P50 }, func(t *TagResult) time.Duration { return t.P99 },
		} {
			cells = append(cells, r.Before.wait(b, wait(b)), r.After.wait(a, wait(a)))
		}
		cells = append(cells, r.Before.refusals(b), r.After.refusals(a), spends(b), spends(a))
		rows = append(rows, cells)
	}
	row("all", &r.Before.All, &r.After.All)
	for i := range r.After.Tags {
		row(tagText(r.After.Tags[i].Name), &r.Before.Tags[i], &r.After.Tags[i])
	}
	return rows
}

// tagText names a tag, in a form that cannot disturb a terminal.
func tagText(name string) string {
	if name == "" {
		return "(no tag)"
	}
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// wait returns a wait of a tag's calls; a dash where none was granted, or none computed.
func (r *Result) wait(t *TagResult, d time.Duration) string {
	if !r.Waited || t.Granted == 0 {
		return "-"
	}
	return waitText(d)
}

// waitText returns a wait with three digits.
func waitText(d time.Duration) string {
	switch {
	case d < 100*time.Microsecond:
		return "0"
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return duration.Short(d.Round(time.Second))
}

// refusals returns how many calls of a tag were refused, why, and how many still wait at the end.
func (r *Result) refusals(t *TagResult) string {
	if !r.Waited {
		return "-"
	}
	text := "0"
	if t.Refused > 0 {
		most, others := t.Reason()
		text = fmt.Sprintf("%s (%s %s", count(t.Refused), part(t.Refused/t.Calls), most)
		if others > 0 {
			text += " and others"
		}
		text += ")"
	}
	if t.Left > 0 {
		text += fmt.Sprintf(", %s never served", count(t.Left))
	}
	return text
}

// spends returns what is spent of a tag's budgets.
func spends(t *TagResult) string {
	var parts []string
	for _, s := range t.Budgets {
		text := fmt.Sprintf("%s of %s a %s", count(s.Spent), count(float64(s.Budget.Amount)), s.Budget.Per)
		if s.Of != t.Name {
			text += " (all others)"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// part returns a part in percent.
func part(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

// count returns a whole number.
func count(x float64) string { return strconv.FormatFloat(math.Round(x), 'f', 0, 64) }

// head returns what was replayed, line by line: a name and a text.
func (r *Report) head() [][2]string {
	t, o := r.Traffic, r.Options
	lines := [][2]string{
		{"recording", fmt.Sprintf("%s from %s, %d tags, %s calls", duration.Short(t.Length()), t.Start.Format(time.RFC3339), len(t.Tags), count(t.calls()))},
		{"before", r.BeforeName + limitOf(r.Before)},
		{"after", r.AfterName + limitOf(r.After)},
		{"replay", fmt.Sprintf("%d pods, calls %s, %s", o.Pods, comes(o.Random), patience(o.MaxWait))},
	}
	if o.Pods == 1 {
		lines[3][1] = strings.Replace(lines[3][1], "1 pods", "1 pod", 1)
	}
	if r.After.Merged > 1 {
		lines = append(lines, [2]string{"resolution", fmt.Sprintf("%d draws; one stands for up to %d calls", r.After.Draws, r.After.Merged)})
	}
	return lines
}

func limitOf(r *Result) string {
	if r.Limit == "" {
		return ""
	}
	return ": " + r.Limit
}

func comes(random bool) string {
	if random {
		return "at random moments"
	}
	return "at equal distances"
}

func patience(most time.Duration) string {
	if most == 0 {
		return "which wait as long as it takes"
	}
	return "which wait for " + duration.Short(most) + " at most"
}

// WriteTable prints the comparison.
func (r *Report) WriteTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range r.head() {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], line[1]) // Flush says what is wrong
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	w.Init(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.ToUpper(strings.Join(columns, "\t")))
	for _, row := range r.rows() {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

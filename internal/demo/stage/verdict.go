package stage

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A Verdict is a table of observations and promises.
type Verdict struct {
	out    io.Writer
	table  *tabwriter.Writer
	broken bool
}

// NewVerdict begins a verdict.
func NewVerdict(out io.Writer) *Verdict {
	v := &Verdict{out: out, table: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	_, _ = fmt.Fprintln(v.table, "\nVERDICT\tseen\tpromised\t")
	return v
}

// Judge adds a row for a promise, with the result.
func (v *Verdict) Judge(kept bool, what, promised, seen string, args ...any) {
	word := "ok"
	if !kept {
		v.broken, word = true, "BROKEN"
	}
	v.row(what, promised, word, seen, args)
}

// Tell adds a row for an observation without a promise, with a note in its place.
func (v *Verdict) Tell(what, note, seen string, args ...any) { v.row(what, note, "", seen, args) }

func (v *Verdict) row(what, promised, word, seen string, args []any) {
	_, _ = fmt.Fprintf(v.table, "%s\t%s\t%s\t%s\n", what, fmt.Sprintf(seen, args...), promised, word)
}

// Ended adds the row on how the processes ended.
func (v *Verdict) Ended(err error) {
	seen := "yes"
	if err != nil {
		seen = err.Error()
	}
	v.Judge(err == nil, "processes ended in good order", "yes", "%s", seen)
}

// Print prints the verdict and reports whether every promise was kept.
func (v *Verdict) Print(took time.Duration) bool {
	_ = v.table.Flush()
	word := "PASS"
	if v.broken {
		word = "FAIL"
	}
	_, _ = fmt.Fprintf(v.out, "\n%s after %.0f s\n", word, took.Seconds())
	return !v.broken
}

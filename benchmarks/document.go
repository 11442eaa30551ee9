package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// writeText prints the results for a terminal.
func writeText(w io.Writer, results []result) {
	for _, r := range results {
		fmt.Fprintf(w, "\n%s\n%s\n", r.title, strings.Repeat("-", len(r.title)))
		for _, t := range r.tables {
			fmt.Fprintln(w)
			tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			head, rows := t.grid()
			fmt.Fprintln(tab, strings.Join(head, "\t"))
			for _, cells := range rows {
				fmt.Fprintln(tab, strings.ReplaceAll(strings.Join(cells, "\t"), "**", ""))
			}
			tab.Flush()
		}
	}
	kept, missed := tally(results)
	fmt.Fprintf(w, "\n%d of %d targets kept\n", kept, kept+len(missed))
	for _, m := range missed {
		fmt.Fprintln(w, "missed:", m)
	}
}

// tally counts the targets that were kept and names the others.
func tally(results []result) (kept int, missed []string) {
	for _, r := range results {
		for _, t := range r.tables {
			for _, line := range t.rows {
				switch {
				case line.target == "":
				case line.kept:
					kept++
				default:
					missed = append(missed, r.title+": "+strings.Join(line.cells, ", ")+" (target "+line.target+")")
				}
			}
		}
	}
	return kept, missed
}

// writeMarkdown writes the document.
func writeMarkdown(w io.Writer, m *machine, results []result) {
	fmt.Fprint(w, "# Benchmarks\n\nWritten by `make bench`; do not edit by hand. One run on one machine, together with the servers. Compared programs ",
		"took turns, several times: the tables show medians, and ratios are medians of the turns' ratios.\n\n")
	writeGrid(w, []string{"", ""}, m.facts())
	kept, missed := tally(results)
	fmt.Fprintf(w, "\n**%d of %d targets kept.**\n", kept, kept+len(missed))
	for _, line := range missed {
		fmt.Fprintf(w, "- missed: %s\n", line)
	}
	for _, r := range results {
		fmt.Fprintf(w, "\n## %s\n\n%s\n", r.title, r.shows)
		for _, t := range r.tables {
			if t.caption != "" {
				fmt.Fprintf(w, "\n%s\n", t.caption)
			}
			fmt.Fprintln(w)
			head, rows := t.grid()
			writeGrid(w, head, rows)
		}
	}
}

// writeGrid writes a Markdown table: the first column to the left, the others to
// the right.
func writeGrid(w io.Writer, head []string, rows [][]string) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	if len(head) == 2 {
		rule[1] = "---"
	}
	line(rule)
	for _, cells := range rows {
		line(cells)
	}
}

package main

import (
	"fmt"
	"time"
)

// A table is measurements of one kind.
type table struct {
	// caption says how to read it; may be empty.
	caption string
	head    []string
	rows    []row
}

// A row is one line of a table. Its cells match the table's head.
type row struct {
	cells []string
	// target is what the row is judged by; empty when it is not.
	target string
	kept   bool
}

// plain is a row that is shown and not judged.
func plain(cells ...string) row { return row{cells: cells} }

// judged is a row with a target.
func judged(kept bool, target string, cells ...string) row {
	return row{cells: cells, target: target, kept: kept}
}

// verdict says whether the row kept its target.
func (r row) verdict() string {
	switch {
	case r.target == "":
		return ""
	case r.kept:
		return "kept"
	default:
		return "**missed**"
	}
}

// hasTargets tells whether any row is judged.
func (t table) hasTargets() bool {
	for _, r := range t.rows {
		if r.target != "" {
			return true
		}
	}
	return false
}

// grid returns head and rows with the columns for target and verdict, where
// there are any.
func (t table) grid() (head []string, rows [][]string) {
	with := t.hasTargets()
	head = append(head, t.head...)
	if with {
		head = append(head, "target", "")
	}
	for _, r := range t.rows {
		cells := append([]string(nil), r.cells...)
		if with {
			cells = append(cells, r.target, r.verdict())
		}
		rows = append(rows, cells)
	}
	return head, rows
}

// Cells.

func nanoseconds(v float64) string { return fmt.Sprintf("%.1f", v) }

func ratio(v float64) string { return fmt.Sprintf("%.2f", v) }

// fraction shows parts of a limit, precisely enough for a target of 0.999.
func fraction(v float64) string { return fmt.Sprintf("%.4f", v) }

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// count shows a whole number with its thousands set apart.
func count[N int | int64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

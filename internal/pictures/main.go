// Command pictures draws the pictures of docs/how-it-works.md, and writes the table below them. `make pictures` runs it in the root of the
// repository.
//
// The pods of the pictures are the shipped state machines on a virtual clock, with a shipped record of the store; see pool.go. They are
// compared with golang.org/x/time/rate, and with Numaflow's own rateLimit by its rules; see rivals.go. Nothing is random: the same code
// draws the same pictures, to the byte.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// run writes the pictures and the table below the folder of the documentation.
func run(args []string, errs io.Writer) error {
	flags := flag.NewFlagSet("pictures", flag.ContinueOnError)
	flags.SetOutput(errs)
	docs := flags.String("docs", "docs", "`folder` of the documentation: the pictures go into pictures/ in it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	made, err := draw()
	if err != nil {
		return err
	}
	for name, text := range made.files {
		if err := os.WriteFile(filepath.Join(*docs, "pictures", name), []byte(text), 0o644); err != nil { //nolint:gosec // for everyone
			return err
		}
	}
	page := filepath.Join(*docs, "how-it-works.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := withTable(string(text), made.table)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(changed), 0o644) //nolint:gosec // for everyone
}

// drawn is the output of the command: files of the folder pictures by name, and the table of the page.
type drawn struct {
	files map[string]string
	table string
}

// draw runs the scenarios and draws their pictures.
func draw() (drawn, error) {
	life, err := runPool(lifeOfAPool())
	if err != nil {
		return drawn{}, err
	}
	work := sameWork()
	ours, err := runPool(work)
	if err != nil {
		return drawn{}, err
	}
	ways := []way{
		{"numathrottle", ours.calls},
		{"x/time/rate in each pod, max / 3", runDivided(work)},
		{"rateLimit by its rules", runBuiltIn(work)},
	}
	return drawn{
		files: map[string]string{"shares.svg": sharesPicture(life), "same-work.svg": workPicture(work, ways), "second.svg": secondPicture(work, ways)},
		table: table(work, ways),
	}, nil
}

// The table stands between these lines of the page.
const begin, end = "<!-- figures: written by make pictures -->\n", "<!-- end -->\n"

// withTable returns the page with the table in its place.
func withTable(page, table string) (string, error) {
	before, rest, opened := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", fmt.Errorf("the lines %q and %q are missing", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + table + end + after, nil
}

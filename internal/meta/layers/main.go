// Command layers prints the map of this module's packages, by layer, and fails if an import points upwards. `make map` runs it and updates
// README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "layers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("layers", flag.ContinueOnError)
	file := flags.String("page", "", "Markdown `file` to write the map to, between its markers; default: print it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := load(ctx, ".")
	if err != nil {
		return err
	}
	if *file == "" {
		err = write(out, all)
	} else {
		err = replace(*file, all)
	}
	if err != nil {
		return err
	}
	if faults := check(all); len(faults) > 0 {
		return fmt.Errorf("imports:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}

// The map stands between these lines of the page.
const begin, end = "<!-- map -->\n", "<!-- end of the map -->\n"

// replace writes the map into a page.
func replace(file string, all []pkg) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	page, err := withMap(string(text), all)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(page), 0o644) //nolint:gosec // a document for everyone
}

// withMap returns a page with the map of these packages.
func withMap(page string, all []pkg) (string, error) {
	before, rest, opened := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", fmt.Errorf("the lines %q and %q are missing", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	var b strings.Builder
	if err := write(&b, all); err != nil {
		return "", err
	}
	return before + begin + b.String() + "\n" + end + after, nil
}

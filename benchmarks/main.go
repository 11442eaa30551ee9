// Command benchmarks measures numathrottle beside what it is compared with, in
// one run on one machine, judges the figures against their targets and writes
// them down. It starts the Redis and NATS servers that it needs.
//
// It is a module of its own, so that nobody who uses numathrottle resolves the
// rivals.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetOutput(io.Discard) // numaflow-go tells there that its servers stop
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// A section measures one subject.
type section struct {
	key, title string
	// shows says what the section's tables show.
	shows   string
	measure func(ctx context.Context, b *bench) ([]table, error)
}

var sections = []section{
	hotPath, contention, waiting, handlerSection, sourceSection, rhythmSection, oneSync, permits, pools, hard, pausing, behaviour, storeCost, peerSection,
}

// A result is a section with what was measured.
type result struct {
	section

	tables []table
}

// A bench is what the sections have in common.
type bench struct {
	// quick shortens every measurement, to try the program out.
	quick    bool
	progress io.Writer
	// dir is for the files of servers.
	dir string
	// servers holds the versions of the servers that were started.
	servers map[string]string
	current string
}

// long returns how long to measure: a fifth of full in a quick run.
func (b *bench) long(full time.Duration) time.Duration {
	if b.quick {
		return full / 5
	}
	return full
}

// times returns how often to measure: a third of full in a quick run, at least 3.
func (b *bench) times(full int) int {
	if b.quick {
		return max(3, full/3)
	}
	return full
}

// sayf reports progress.
func (b *bench) sayf(format string, args ...any) {
	fmt.Fprintf(b.progress, "%s  %-10s %s\n", time.Now().Format(time.TimeOnly), b.current, fmt.Sprintf(format, args...))
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(progress)
	quick := flags.Bool("quick", false, "short measurements, to try the program out; their figures are not written down")
	only := flags.String("only", "", "sections to run, separated by commas: "+strings.Join(keys(), ", ")+"; their figures are not written down")
	file := flags.String("out", "", "Markdown `file` to write the figures of a full run to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return fmt.Errorf("folder for the servers' files: %w", err)
	}
	defer os.RemoveAll(dir)

	b := &bench{quick: *quick, progress: progress, dir: dir, servers: map[string]string{}}
	m := newMachine()
	results, err := b.runAll(ctx, chosen)
	m.end(b.servers)
	writeText(out, results)
	if err != nil {
		return err
	}
	if *file == "" || *quick || *only != "" {
		return nil
	}
	var doc strings.Builder
	writeMarkdown(&doc, m, results)
	if err := os.WriteFile(*file, []byte(doc.String()), 0o644); err != nil { //nolint:gosec // a document for everyone
		return fmt.Errorf("write the figures down: %w", err)
	}
	return nil
}

// runAll runs the sections one after the other. One that fails does not stop
// the others.
func (b *bench) runAll(ctx context.Context, chosen []section) ([]result, error) {
	var results []result
	var errs []error
	for _, s := range chosen {
		b.current = s.key
		began := time.Now()
		b.sayf("%s", s.title)
		tables, err := s.measure(ctx, b)
		if err != nil {
			b.sayf("failed: %v", err)
			errs = append(errs, fmt.Errorf("%s: %w", s.key, err))
		}
		if ctx.Err() != nil {
			return results, errors.Join(append(errs, context.Cause(ctx))...)
		}
		results = append(results, result{section: s, tables: tables})
		b.sayf("took %s", time.Since(began).Round(time.Second))
	}
	return results, errors.Join(errs...)
}

func keys() []string {
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.key
	}
	return names
}

// choose returns the sections named, in the order of the document.
func choose(only string) ([]section, error) {
	if only == "" {
		return sections, nil
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.Contains(keys(), name) {
			return nil, fmt.Errorf("-only names %q, allowed: %s", name, strings.Join(keys(), ", "))
		}
	}
	chosen := slices.Clone(sections)
	return slices.DeleteFunc(chosen, func(s section) bool { return !slices.Contains(names, s.key) }), nil
}

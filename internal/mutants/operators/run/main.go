// Command run plays the operator mutants of some packages, and lists those that no test notices. It is started in the root of the module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/mutants/operators"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

func main() {
	sample := flag.Int("sample", 0, "play so many mutants of each target, the same ones each time; 0 plays all")
	only := flag.String("only", "", "play those mutants whose name contains this")
	jobs := flag.Int("jobs", runtime.NumCPU(), "play so many mutants at a time")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: run [flags] [target ...]\n\nWithout targets it plays all of them.")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, flag.Args(), operators.Options{Sample: *sample, Only: *only, Jobs: *jobs})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run plays the targets, all of them even if one fails.
func run(ctx context.Context, names []string, o operators.Options) (err error) {
	targets, err := operators.Find(names...)
	if err != nil {
		return err
	}
	for _, t := range targets {
		began := time.Now()
		r, failed := t.Play(ctx, ".", o)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", t.Name, failed))
			continue
		}
		r.Print(os.Stdout, t.Name, time.Since(began))
		err = errors.Join(err, proof.Write(t.Name, t.Name+": "+r.String()))
		if n := len(r.Survivors); n > 0 {
			err = errors.Join(err, fmt.Errorf("%s: no test notices %d mutants, and survivors.txt has no reason for them", t.Name, n))
		}
	}
	return err
}

// Command soak runs the long forms of the reliability tests, one after the other, and writes their figures to docs/reliability.md. `make
// soak` starts it. A failing test does not stop the others, and shows on the page.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// lengths are the lengths of the tests.
type lengths struct {
	seeds, tagSeeds, shell, rounds, kills, permits int
	fuzz, memory                                   time.Duration
}

// A step is one test run: a command with its settings.
type step struct {
	name    string
	figures []string // that it records
	args    []string // of the command; the first is its name
	env     []string
	// resumes is the variable with the state from which the step continues an interrupted run. Empty: it starts again.
	resumes string
	// beside means that the step runs in parallel with the others, at the lowest priority: it computes for long, and measures no time.
	beside bool
}

func steps(l lengths) []step {
	test := func(flags ...string) []string {
		return append([]string{"go", "test", "-count=1", "-timeout=0"}, flags...)
	}
	mutants := func(flags ...string) []string {
		return append([]string{"go", "run", "./internal/mutants/run", "-count=1", "-timeout=0"}, flags...)
	}
	const nice = "-exec=nice -n 19" // not what compiles it
	rounds := []string{fmt.Sprint("NUMATHROTTLE_FAULT_ROUNDS=", l.rounds)}
	faults := func(run string) []string { return test("-tags=numathrottle_faults", "-run="+run, "./internal/chaos") }
	return []step{
		{
			name: "simulation", figures: []string{"simulation", "regressions"},
			args: test(nice, "-v", "-run=TestSeeds|TestDirected", "./internal/sim"),
			env:  []string{fmt.Sprint("NUMATHROTTLE_SIM_SEEDS=", l.seeds)}, beside: true, resumes: "NUMATHROTTLE_SIM_OF",
		},
		{
			name: "tags", figures: []string{"tags"},
			args: test(nice, "-v", "-run=TestTagSeeds$", "./internal/sim"),
			env:  []string{fmt.Sprint("NUMATHROTTLE_SIM_TAG_SEEDS=", l.tagSeeds)}, beside: true,
		},
		{name: "redis", figures: []string{"redis", "regressions-servers"}, args: faults("TestRedis|TestFound"), env: rounds},
		{name: "nats", figures: []string{"nats"}, args: faults("TestNATS"), env: rounds},
		{name: "stops", figures: []string{"stops"}, args: faults("TestStopped"), env: rounds},
		{name: "strict", figures: []string{"strict"}, args: faults("TestStrictFaults"), env: rounds},
		{name: "overrides", figures: []string{"overrides"}, args: faults("TestOverrideFaults"), env: rounds},
		{name: "limits", figures: []string{"limits"}, args: faults("TestLimitFaults"), env: rounds},
		{name: "quotas", figures: []string{"quotas"}, args: faults("TestQuotaFaults"), env: rounds},
		{name: "takeover", args: faults("TestAProcessThatIsKilledIsTakenOver")},
		{name: "overload", args: test("-tags=numathrottle_faults", "./internal/overload")},
		{
			name: "permits", figures: []string{"permits"},
			args: test(nice, "-run=TestPermitsAreSpaced", "./pkg/consensus/driver"),
			env:  []string{fmt.Sprint("NUMATHROTTLE_PERMITS=", l.permits)}, beside: true,
		},
		{
			// On Redis, and on a NATS cluster.
			name: "slots", figures: []string{"permits-redis", "permits-nats"},
			args: test("-run=TestConformance(OfThree)?$/^server$/many", "./pkg/consensus/redisstore", "./pkg/consensus/natsstore"),
			env:  []string{fmt.Sprint("NUMATHROTTLE_CLUSTER_PERMITS=", clusterPermits)},
		},
		{
			name: "losses", figures: []string{"noloss", "pressure"},
			args: test("-run=TestNoMessageIsLostOrAnsweredTwice|TestTenThousandMessagesWaitForTenPerSecond", "./internal/noloss"),
			env:  []string{fmt.Sprint("NUMATHROTTLE_LOSS_KILLS=", l.kills)},
		},
		{
			name: "memory", figures: []string{"flat"},
			args: test(nice, "-run=TestMemoryStaysFlat", "./internal/noloss"),
			env:  []string{fmt.Sprint("NUMATHROTTLE_FLAT_FOR=", l.memory)}, beside: true,
		},
		{name: "mutants", figures: []string{"mutants"}, args: mutants("-run=TestMutants$", "./internal/sim")},
		{name: "shell", figures: []string{"shell"}, args: test("-race", "./internal/shell"), env: []string{fmt.Sprint("NUMATHROTTLE_SHELL_RUNS=", l.shell)}},
		{name: "fuzz", figures: []string{"fuzz"}, args: []string{"scripts/fuzz.sh"}, env: []string{fmt.Sprint("FUZZ_TIME=", l.fuzz)}},
	}
}

// clusterPermits is how many permits a NATS cluster issues. A Redis always issues 100,000.
const clusterPermits = 20_000

func run(ctx context.Context, args []string, progress io.Writer) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(progress)
	l := lengths{}
	flags.IntVar(&l.seeds, "seeds", 20_000, "seeds of the simulation")
	flags.IntVar(&l.tagSeeds, "tag-seeds", 2_000, "seeds of the simulation with tags")
	flags.IntVar(&l.shell, "shell", 100, "runs of the goroutine shell in virtual time")
	flags.IntVar(&l.rounds, "rounds", 8, "rounds of the faults of real servers")
	flags.IntVar(&l.kills, "kills", 500, "faults of handler processes, and 400 messages for each, and 1,000 after the last of each lane")
	flags.IntVar(&l.permits, "permits", 10_000_000, "permits issued by the state machine alone")
	flags.DurationVar(&l.fuzz, "fuzz", 25*time.Second, "time of each fuzz target")
	flags.DurationVar(&l.memory, "memory", time.Hour, "time for which the memory of handler processes is looked at")
	only := flags.String("only", "", "steps to run, separated by commas: simulation, tags, redis, nats, stops, strict, overrides, limits, quotas, "+
		"takeover, overload, permits, slots, losses, memory, mutants, shell, fuzz; for the others the figures in -figures are taken; "+
		"none: the page is made of what is there")
	dir := flags.String("figures", "", "`folder` for the figures; default: one that is removed again")
	file := flags.String("out", "", "Markdown `file` to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		temporary, err := os.MkdirTemp("", "figures")
		if err != nil {
			return fmt.Errorf("folder for the figures: %w", err)
		}
		defer os.RemoveAll(temporary)
		*dir = temporary
	}
	folder, err := filepath.Abs(*dir)
	if err == nil {
		err = os.MkdirAll(folder, 0o750)
	}
	if err != nil {
		return fmt.Errorf("folder for the figures: %w", err)
	}
	tested := commit(ctx)
	var p page
	var errs []error
	var beside sync.WaitGroup
	failed := make(chan error, len(steps(l)))
	for _, s := range steps(l) {
		switch {
		case *only != "" && !strings.Contains(","+*only+",", ","+s.name+","):
		case s.beside:
			beside.Go(func() { failed <- s.do(ctx, tested, folder, progress) })
		default:
			errs = append(errs, s.do(ctx, tested, folder, progress))
		}
	}
	beside.Wait()
	close(failed)
	for err := range failed {
		errs = append(errs, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	errs = append(errs, p.load(folder))
	if *file != "" {
		errs = append(errs, p.write(*file))
	}
	return errors.Join(errs...)
}

// do runs the step and records its time and result.
func (s step) do(ctx context.Context, tested, folder string, progress io.Writer) error {
	began := time.Now()
	if err := s.forget(folder); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s  %-10s %s\n", began.Format(time.TimeOnly), s.name, s.command())
	cmd := exec.CommandContext(ctx, s.args[0], s.args[1:]...)
	cmd.Env = append(append(os.Environ(), s.env...), proof.Folder+"="+folder, "NUMATHROTTLE_REQUIRE_STORES=1")
	if s.resumes != "" {
		if of := version(ctx, simulated(ctx)); of != "" {
			cmd.Env = append(cmd.Env, s.resumes+"="+of)
		}
	}
	cmd.Stdout, cmd.Stderr = progress, progress
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	fmt.Fprintf(progress, "%s  %-10s took %s\n", time.Now().Format(time.TimeOnly), s.name, time.Since(began).Round(time.Second))
	outcome := proof.Well
	if err != nil {
		outcome = err.Error()
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	return errors.Join(err, proof.Save(folder, s.name+".run", proof.Step{
		Name: s.name, Command: s.command(), Commit: tested, Machine: machine(), Began: began, Took: time.Since(began), Outcome: outcome,
	}))
}

// forget removes the records of an earlier run of the step, so that the page shows only those of this one.
func (s step) forget(folder string) error {
	for _, name := range append([]string{s.name + ".run"}, s.figures...) {
		if err := os.Remove(filepath.Join(folder, name+".json")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("figures of %s: %w", s.name, err)
		}
	}
	return nil
}

// command returns the step as a typed command.
func (s step) command() string {
	words := append([]string(nil), s.env...)
	for _, a := range s.args {
		if strings.ContainsAny(a, "|$ ") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// Command soak runs the long forms of the reliability tests, one after the other, and writes the result of each into the table of
// docs/reliability.md. `make soak` starts it. A failing step does not stop the others. The rows of other steps stay as they are.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

// A step is one test run.
type step struct {
	name string
	// length is a variable of the environment with its default. A value that is set already holds.
	length  string
	command string
	// beside means that the step runs in parallel with the others, at the lowest priority: it computes for long, and measures no time.
	beside bool
}

const (
	test    = "go test -count=1 -timeout=0 "
	faults  = test + "-tags=numathrottle_faults ./internal/chaos -run="
	rounds  = "NUMATHROTTLE_FAULT_ROUNDS=8"
	mutants = "go run ./internal/mutants/run -count=1 -timeout=0 -run=TestMutants$ ./internal/sim"
	// Together they are what make operators plays.
	operators = "go run ./internal/mutants/operators/run "
)

var steps = []step{
	{"simulation", "NUMATHROTTLE_SIM_SEEDS=20000", test + "-v -run=TestSeeds|TestDirected ./internal/sim", true},
	{"tags", "NUMATHROTTLE_SIM_TAG_SEEDS=2000", test + "-v -run=TestTagSeeds$ ./internal/sim", true},
	{"redis", rounds, faults + "TestRedis", false},
	{"nats", rounds, faults + "TestNATS", false},
	{"stops", rounds, faults + "TestStopped", false},
	{"strict", rounds, faults + "TestStrictFaults", false},
	{"overrides", rounds, faults + "TestOverrideFaults", false},
	{"limits", rounds, faults + "TestLimitFaults", false},
	{"quotas", rounds, faults + "TestQuotaFaults", false},
	{"takeover", "", faults + "TestAProcessThatIsKilledIsTakenOver", false},
	{"calls in flight", "NUMATHROTTLE_SIM_SLOT_SEEDS=5000", test + "-v -run=TestSlotSeeds$ ./internal/sim", true},
	{"what-if", "", test + "-tags=numathrottle_faults -run=TestPredictsRealProcesses ./internal/whatif", false},
	{"overload", "", test + "-tags=numathrottle_faults ./internal/overload", false},
	{"permits", "NUMATHROTTLE_PERMITS=10000000", test + "-run=TestPermitsAreSpaced ./pkg/consensus/driver", true},
	// On Redis, and on a NATS cluster. A Redis always issues 100,000.
	{
		"slots", "NUMATHROTTLE_CLUSTER_PERMITS=20000",
		test + "-run=TestConformance(OfThree)?$/^server$/many ./pkg/consensus/redisstore ./pkg/consensus/natsstore", false,
	},
	{
		"losses", "NUMATHROTTLE_LOSS_KILLS=500",
		test + "-run=TestNoMessageIsLostOrAnsweredTwice|TestTenThousandMessagesWaitForTenPerSecond ./internal/noloss", false,
	},
	{"memory", "NUMATHROTTLE_FLAT_FOR=1h", test + "-run=TestMemoryStaysFlat ./internal/noloss", true},
	{"mutants", "", mutants, false},
	{"operators: engine", "", operators + "engine", true},
	{"operators: throttle", "", operators + "throttle", true},
	{"operators: tags", "", operators + "fairtags fairslots", true},
	{"operators: pool", "", operators + "protocol", true},
	{"operators: driver", "", operators + "driver", true},
	{"operators: LLM", "", operators + "readers llm", true},
	{"shell", "NUMATHROTTLE_SHELL_RUNS=100", "env CGO_ENABLED=1 " + test + "-race ./internal/shell", false},
	{"fuzz", "FUZZ_TIME=25s", "scripts/fuzz.sh", false},
}

func main() {
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	only := flag.String("only", "", "steps to run, separated by commas: "+strings.Join(names, ", "))
	out := flag.String("out", "docs/reliability.md", "Markdown `file` with the table")
	flag.Parse()
	chosen := steps
	if *only != "" {
		chosen = nil
		for name := range strings.SplitSeq(*only, ",") {
			i := slices.Index(names, name)
			if i < 0 {
				fmt.Fprintf(os.Stderr, "soak: -only names %q, allowed: %s\n", name, strings.Join(names, ", "))
				os.Exit(2)
			}
			chosen = append(chosen, steps[i])
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, chosen, *out, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run runs steps, and writes the row of each into the page as soon as it has ended.
func run(ctx context.Context, chosen []step, page string, progress io.Writer) error {
	tested := commit(ctx, page)
	var mu sync.Mutex
	var errs []error
	do := func(s step) {
		row, err := s.do(ctx, tested, progress)
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			err = errors.Join(err, update(page, s.name, row))
		}
		errs = append(errs, err)
	}
	var beside sync.WaitGroup
	for _, s := range chosen {
		switch {
		case ctx.Err() != nil:
		case s.beside:
			beside.Go(func() { do(s) })
		default:
			do(s)
		}
	}
	beside.Wait()
	return cmp.Or(context.Cause(ctx), errors.Join(errs...))
}

// do runs a step and returns its row.
func (s step) do(ctx context.Context, tested string, progress io.Writer) (row string, err error) {
	figures, err := os.MkdirTemp("", "figures")
	if err != nil {
		return "", fmt.Errorf("folder for the figures: %w", err)
	}
	defer os.RemoveAll(figures)
	began := time.Now()
	words := strings.Fields(s.command)
	if s.beside {
		words = append([]string{"nice", "-n", "19"}, words...)
	}
	length := s.length
	if name, _, _ := strings.Cut(length, "="); os.Getenv(name) != "" {
		length = name + "=" + os.Getenv(name)
	}
	fmt.Fprintf(progress, "%s  %-10s %s %s\n", began.Format(time.TimeOnly), s.name, length, strings.Join(words, " "))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), length, proof.Folder+"="+figures, "NUMATHROTTLE_REQUIRE_STORES=1")
	cmd.Stdout, cmd.Stderr = progress, progress
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	err = cmd.Run()
	took := time.Since(began).Round(time.Second)
	fmt.Fprintf(progress, "%s  %-10s took %s\n", time.Now().Format(time.TimeOnly), s.name, took)
	ended := "ok"
	if err != nil {
		ended = "**failed**: " + err.Error()
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	said := []string{length}
	files, _ := os.ReadDir(figures) // missing ones show on the page
	for _, f := range files {
		text, readErr := os.ReadFile(filepath.Join(figures, f.Name()))
		err = errors.Join(err, readErr)
		said = append(said, strings.ReplaceAll(strings.TrimSpace(string(text)), "|", `\|`))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", s.name, tested, began.UTC().Format("2 January 2006, 15:04"), took, ended,
		strings.Join(said, "; ")), err
}

// The table stands between these lines of the page. scripts/evidence.sh reads its first columns.
const (
	begin = "<!-- soak: written by make soak -->\n"
	end   = "<!-- end -->\n"
	head  = "| step | commit | began (UTC) | took | ended | figures |\n| --- | --- | --- | ---: | --- | --- |\n"
)

// update replaces the row of a step in the page.
func update(page, name, row string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, opened := bytes.Cut(text, []byte(begin))
	table, after, closed := bytes.Cut(rest, []byte(end))
	if !opened || !closed {
		return fmt.Errorf("%s has no lines %q and %q", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(table)) {
		of, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		rows[of] = strings.TrimSpace(line)
	}
	rows[name] = row
	var out strings.Builder
	fmt.Fprintf(&out, "%s%sThe newest step ran with %s %s/%s on %d cores.\n\n%s",
		before, begin, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), head)
	for _, s := range steps {
		fmt.Fprintln(&out, cmp.Or(rows[s.name], "| "+s.name+" | | | | **not run** | |"))
	}
	fmt.Fprintf(&out, "%s%s", end, after)
	return os.WriteFile(page, []byte(out.String()), 0o644) //nolint:gosec // a page for everyone
}

// commit returns the tested commit. The soak's own page does not change it.
func commit(ctx context.Context, page string) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+page).Output()
	if err != nil || len(changed) > 0 {
		return strings.TrimSpace(string(head)) + "-dirty"
	}
	return strings.TrimSpace(string(head))
}

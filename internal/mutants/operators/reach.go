package operators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A suite is the compiled tests of a package.
type suite struct {
	pkg, folder, binary string
}

// A test is one of a suite, with the mutants whose places it reached when it ran without one.
type test struct {
	*suite
	name    string
	took    time.Duration
	reaches map[int]bool
}

// prepare compiles the tests of packages, and runs each of them alone, without a mutant.
func prepare(ctx context.Context, packages []string, root, folder, overlay string, jobs int) (tests []test, err error) {
	for i, pkg := range packages {
		s := &suite{pkg: pkg, folder: filepath.Join(root, pkg), binary: filepath.Join(folder, strconv.Itoa(i)+".test")}
		names, err := s.compile(ctx, root, overlay)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			tests = append(tests, test{suite: s, name: name})
		}
	}
	return tests, each(ctx, len(tests), jobs, func(ctx context.Context, i int) error {
		return tests[i].record(ctx, filepath.Join(folder, strconv.Itoa(i)+".reached"))
	})
}

// compile returns the names of the tests; a package may have none.
func (s *suite) compile(ctx context.Context, root, overlay string) (names []string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", s.binary, s.pkg)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the tests of %s: %w\n%s", s.pkg, err, text)
	}
	if _, err := os.Stat(s.binary); os.IsNotExist(err) {
		return nil, nil
	}
	cmd = exec.CommandContext(ctx, s.binary, "-test.list=^(Test|Example|Fuzz)")
	cmd.Dir = s.folder
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", s.pkg, err)
	}
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); !strings.ContainsAny(name, " \t") { // TestMain may print
			names = append(names, name)
		}
	}
	return names, nil
}

// record runs a test alone. The mutants that it reaches are written to the file.
func (t *test) record(ctx context.Context, file string) error {
	began := time.Now()
	alone := part{suite: t.suite, names: []string{t.name}, took: time.Hour}
	if text, err := alone.run(ctx, recordVariable+"="+file); err != nil {
		return fmt.Errorf("%s of %s fails without a mutant: %w\n%s", t.name, t.pkg, err, text)
	}
	t.took = time.Since(began)
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("mutants that %s of %s reaches: %w", t.name, t.pkg, err)
	}
	t.reaches = map[int]bool{}
	for word := range strings.FieldsSeq(string(text)) {
		id, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("mutants that %s of %s reaches: %w", t.name, t.pkg, err)
		}
		t.reaches[id] = true
	}
	return nil
}

// A part is some tests of a suite that run as one process.
type part struct {
	*suite
	names []string
	took  time.Duration
}

// parts returns the tests that reach a mutant, the quickest first. Those of a part run as one process: the first parts take a fifth of a
// second together, the next four times that, and so on.
func parts(tests []test, id int) (all []part) {
	tests = slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return !t.reaches[id] })
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	of := map[*suite]int{} // index in all of this round
	var round time.Duration
	most := 200 * time.Millisecond
	for _, t := range tests {
		if round > most {
			clear(of)
			round, most = 0, 4*most
		}
		round += t.took
		i, ok := of[t.suite]
		if !ok {
			i = len(all)
			of[t.suite] = i
			all = append(all, part{suite: t.suite})
		}
		all[i].names = append(all[i].names, t.name)
		all[i].took += t.took
	}
	return all
}

func (p *part) play(ctx context.Context, id int) end {
	switch _, err := p.run(ctx, variable+"="+strconv.Itoa(id)); {
	case err == nil:
		return survived
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut
	}
	return killed
}

// mostMemory bounds the memory of a test in KiB: a mutant may fill it without end.
const mostMemory = 6 << 20

// run runs the tests with a variable of the environment.
func (p *part) run(ctx context.Context, variable string) (text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second+5*p.took)
	defer cancel()
	script := fmt.Sprintf(`ulimit -v %d; exec "$0" -test.short -test.failfast -test.count=1 "-test.run=$1"`, mostMemory)
	cmd := exec.CommandContext(ctx, "sh", "-c", script, p.binary, "^("+strings.Join(p.names, "|")+")$")
	cmd.Dir = p.folder
	cmd.Env = append(os.Environ(), variable)
	cmd.WaitDelay = time.Second
	text, err = cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return text[max(0, len(text)-4000):], err
}

package main

import (
	"context"
	"crypto/sha256"
	_ "embed" // the page's text
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/meta/wrap"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

//go:embed page.md.tmpl
var text string

// page holds the data of docs/reliability.md.
type page struct {
	Steps []proof.Step

	Simulation, Shell, Redis, NATS, Stops proof.Pools
	Strict, Overrides, Limits, Permits    proof.Pools
	Tags, Quotas                          proof.Pools
	Losses, Pressure, Memory              proof.Pools
	RedisPermits, NATSPermits             proof.Permits
	Mutants                               []proof.Mutant
	Regressions, ServerRegressions        []proof.Regression
	Fuzz                                  []proof.Fuzzed
}

// load reads the figures. Missing ones are an error, and empty on the page. A step with violations has failed, even if its result was not
// recorded.
func (p *page) load(folder string) error {
	var errs []error
	for name, figures := range map[string]any{
		"simulation": &p.Simulation, "shell": &p.Shell, "redis": &p.Redis, "nats": &p.NATS, "stops": &p.Stops,
		"strict": &p.Strict, "overrides": &p.Overrides, "limits": &p.Limits, "permits": &p.Permits,
		"tags": &p.Tags, "quotas": &p.Quotas,
		"permits-redis": &p.RedisPermits, "permits-nats": &p.NATSPermits,
		"noloss": &p.Losses, "pressure": &p.Pressure, "flat": &p.Memory,
		"mutants": &p.Mutants, "regressions": &p.Regressions, "regressions-servers": &p.ServerRegressions, "fuzz": &p.Fuzz,
	} {
		errs = append(errs, proof.Load(folder, name, figures))
	}
	for _, s := range steps(lengths{}) {
		done := proof.Step{Name: s.name}
		errs = append(errs, proof.Load(folder, s.name+".run", &done))
		if f := p.figures(s.name); done.Outcome == "" && f != nil && len(f.Violations) > 0 {
			done.Outcome = "violations"
		}
		p.Steps = append(p.Steps, done)
	}
	return errors.Join(errs...)
}

// figures returns the figures in which a step records violations; nil: it has none.
func (p *page) figures(step string) *proof.Pools {
	return map[string]*proof.Pools{
		"simulation": &p.Simulation, "shell": &p.Shell, "redis": &p.Redis, "nats": &p.NATS, "stops": &p.Stops,
		"strict": &p.Strict, "overrides": &p.Overrides, "limits": &p.Limits, "quotas": &p.Quotas, "tags": &p.Tags, "permits": &p.Permits, "losses": &p.Losses,
		"memory": &p.Memory,
	}[step]
}

func (p *page) write(file string) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"count": count, "time": short, "ratio": func(f float64) string { return fmt.Sprintf("%.3f", f) },
		"hours": func(h float64) string { return count(uint64(h + 0.5)) }, "whole": func(n int) string { return count(uint64(max(n, 0))) },
	}).Parse(text)
	if err != nil {
		return fmt.Errorf("the page's text: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, p); err != nil {
		return fmt.Errorf("the page's text: %w", err)
	}
	if err := os.WriteFile(file, []byte(wrap.Markdown(out.String())), 0o644); err != nil { //nolint:gosec // a document for everyone
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// Command returns the command of a step.
func (p *page) Command(name string) string {
	for _, s := range p.Steps {
		if s.Name == name {
			return s.Command
		}
	}
	return ""
}

// Endings lists the steps that failed or have no record. It says that all ended well if that was recorded for all.
func (p *page) Endings() string {
	var failed, missing []string
	well := true
	for _, s := range p.Steps {
		switch {
		case s.Began.IsZero():
			missing = append(missing, s.Name)
		case s.Failed():
			failed = append(failed, s.Name)
		}
		well = well && s.Outcome == proof.Well
	}
	var said []string
	if len(failed) > 0 {
		said = append(said, fmt.Sprintf("%d of %d steps failed: %s", len(failed), len(p.Steps), strings.Join(failed, ", ")))
	}
	if len(missing) > 0 {
		said = append(said, "not run: "+strings.Join(missing, ", "))
	}
	if well {
		said = append(said, "every step ended well")
	}
	return strings.Join(said, "; ")
}

// RulesCaught counts the omitted rules that were noticed. Figures of a step without a recorded result may lack the others.
func (p *page) RulesCaught() string {
	n := 0
	for _, m := range p.Mutants {
		if m.Caught != "" {
			n++
		}
	}
	step := slices.IndexFunc(p.Steps, func(s proof.Step) bool { return s.Name == "mutants" })
	if n == len(p.Mutants) && (step < 0 || p.Steps[step].Outcome == "") {
		return fmt.Sprintf("%d rules caught", n)
	}
	return fmt.Sprintf("%d of %d rules caught", n, len(p.Mutants))
}

// Violations returns those of all tests.
func (p *page) Violations() []proof.Violation {
	all := append(p.Pools(), p.Permits, p.Losses, p.Memory)
	var found []proof.Violation
	for i := range all {
		found = append(found, all[i].Violations...)
	}
	return found
}

// Servers are the figures of real servers and processes.
func (p *page) Servers() []proof.Pools {
	return []proof.Pools{p.Redis, p.NATS, p.Stops, p.Strict, p.Overrides, p.Limits, p.Quotas}
}

// Messages are the figures of handler processes and their messages.
func (p *page) Messages() []proof.Pools { return []proof.Pools{p.Losses, p.Pressure, p.Memory} }

// ServerFaults counts the faults of real servers and processes.
func (p *page) ServerFaults() (n uint64) {
	for _, s := range p.Servers() {
		for _, f := range s.Faults {
			n += f.Times
		}
	}
	return n
}

// Pools returns all figures with measured windows.
func (p *page) Pools() []proof.Pools {
	return append([]proof.Pools{p.Simulation, p.Tags, p.Shell}, p.Servers()...)
}

// Stores returns the figures of the real stores that have issued permits.
func (p *page) Stores() []proof.Permits { return []proof.Permits{p.RedisPermits, p.NATSPermits} }

// Machines describes the machines of the steps.
func (p *page) Machines() string {
	var all []string
	for _, s := range p.Steps {
		if s.Machine != "" && !slices.Contains(all, s.Machine) {
			all = append(all, s.Machine)
		}
	}
	return strings.Join(all, "; ")
}

// machine describes this machine.
func machine() string {
	return fmt.Sprintf("%s %s/%s, %d cores", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

// commit returns the tested commit. The soak's own output does not change it.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!docs/reliability.md").Output()
	if err != nil || len(changed) > 0 {
		return strings.TrimSpace(string(head)) + "-dirty"
	}
	return strings.TrimSpace(string(head))
}

// simulated lists the sources of the simulation: the packages of this module that it imports, and go.mod for others. It is empty if the go
// command fails.
func simulated(ctx context.Context) []string {
	const format = "{{with .Module}}{{if .Main}}{{.Path}} {{$.ImportPath}}{{end}}{{end}}"
	out, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, "./internal/sim").Output()
	if err != nil {
		return nil
	}
	parts := []string{"go.mod"}
	for line := range strings.Lines(string(out)) {
		module, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		parts = append(parts, strings.TrimPrefix(path, module+"/"))
	}
	return parts
}

// version returns the committed version of files, and of the code in folders without their subfolders; empty if some of it is not
// committed. It excludes tests, on which a run of the simulation does not depend.
func version(ctx context.Context, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	code := []string{"--"}
	for _, path := range paths {
		if filepath.Ext(path) != "" {
			code = append(code, path)
			continue
		}
		code = append(code, ":(glob)"+path+"/*.go", ":(glob,exclude)"+path+"/*_test.go")
	}
	changed, err := exec.CommandContext(ctx, "git", append([]string{"status", "--porcelain"}, code...)...).Output()
	if err != nil || len(changed) > 0 {
		return ""
	}
	files, err := exec.CommandContext(ctx, "git", append([]string{"ls-files", "--stage"}, code...)...).Output()
	if err != nil || len(files) == 0 {
		return ""
	}
	return fmt.Sprintf("%x %s", sha256.Sum256(files), runtime.Version())
}

// count writes a number with commas.
func count(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes a duration with three digits.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

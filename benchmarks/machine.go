package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A machine is where and with what was measured.
type machine struct {
	began time.Time
	took  time.Duration
	// load is the load average of the last minute before the run.
	load    string
	steal   float64 // seconds of processor time taken by the hypervisor
	servers map[string]string
}

func newMachine() *machine {
	load, _, _ := strings.Cut(readFile("/proc/loadavg"), " ")
	return &machine{began: time.Now(), load: cmp.Or(load, "unknown"), steal: stolen()}
}

// end notes what is known at the end of the run only.
func (m *machine) end(servers map[string]string) {
	m.took = time.Since(m.began)
	m.steal = stolen() - m.steal
	m.servers = servers
}

// libraries are the modules whose versions matter for the figures.
var libraries = []string{
	"golang.org/x/time",
	"github.com/redis/go-redis/v9",
	"github.com/nats-io/nats.go",
	"github.com/nats-io/nats-server/v2",
	"github.com/numaproj/numaflow-go",
	"google.golang.org/grpc",
	"go.uber.org/ratelimit",
	"github.com/failsafe-go/failsafe-go",
	"github.com/go-redis/redis_rate/v10",
	"github.com/throttled/throttled/v2",
}

// facts returns the lines of the table at the head of the document.
func (m *machine) facts() [][]string {
	lines := [][]string{
		{"command", "`make bench`"},
		{"commit", commit()},
		{"date", m.began.UTC().Format("2 January 2006, 15:04 UTC") + ", " + m.took.Round(time.Second).String()},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"processor", processorModel() + ", " + strconv.Itoa(runtime.NumCPU()) + " cores, GOMAXPROCS " + strconv.Itoa(runtime.GOMAXPROCS(0))},
		{"load before the run", m.load + " (average of one minute)"},
		{"taken by the hypervisor", strconv.FormatFloat(m.steal, 'f', 1, 64) + " s of processor time during the run"},
	}
	var names []string
	for name := range m.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lines = append(lines, []string{name, m.servers[name]})
	}
	info, _ := debug.ReadBuildInfo()
	for _, path := range libraries {
		lines = append(lines, []string{"`" + path + "`", moduleVersion(info, path)})
	}
	return lines
}

// commit is the commit that is measured. What the run itself writes does not change it.
func commit() string {
	head, err := exec.CommandContext(context.Background(), "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.CommandContext(context.Background(), "git", "status", "--porcelain", "--", ":/", ":!/docs/benchmarks.md").Output()
	if err != nil || len(changed) > 0 {
		return strings.TrimSpace(string(head)) + "-dirty"
	}
	return strings.TrimSpace(string(head))
}

func moduleVersion(info *debug.BuildInfo, path string) string {
	if info != nil {
		for _, dep := range info.Deps {
			if dep.Path == path {
				return dep.Version
			}
		}
	}
	return "unknown"
}

func processorModel() string {
	for line := range strings.Lines(readFile("/proc/cpuinfo")) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return runtime.GOARCH
}

// stolen returns the processor time that the hypervisor gave to others since the
// machine started, in seconds; 0 where that is not known.
func stolen() float64 {
	const column, ticksPerSecond = 8, 100
	line, _, _ := strings.Cut(readFile("/proc/stat"), "\n")
	fields := strings.Fields(line)
	if len(fields) <= column {
		return 0
	}
	ticks, err := strconv.ParseFloat(fields[column], 64)
	if err != nil {
		return 0
	}
	return ticks / ticksPerSecond
}

// readFile returns a file's text, or nothing: these files exist on Linux only.
func readFile(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

package throttle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

var update = flag.Bool("update", false, "write what the scenarios in testdata give")

// TestScenarios plays the scenarios in testdata in virtual time. A line "# ..." begins a scenario with its promise. Every other line has
// commands, separated by ";", and their result after "=>". A remark comes after "//". Indented lines belong to the line before: one quota
// of a limit each. Lines with "|" are a table: the scenario runs once for each row, and the row replaces the words of the first row.
//
// A result is words, such as "ok 100ms" or "quota tag=a retryafter=400ms 0s". "..." stands for all further words. 3..5, 3.. and ..5 are
// ranges of numbers or times. A line without "=>" must have no result, or one that begins with ok or waits.
//
// "+1s" lets time pass. "x10 take a 1" repeats a line, "x10/1s take a 1" once a second. Repeated words are counted: "ok*10".
//
// The commands are in scenario_words_test.go. A limiter is a name of limit, slots or all, or a tag of the first limit: a, a+b for both, -
// for none. tpm:a is a tag of the limit tpm. At the end the invariants of all limits are checked.
//
// A scenario with the line "# (it measures)" is skipped with -short and with the race detector.
//
// The flag -update rewrites lines with another result, except for ranges and tables.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			lines := strings.Split(string(text), "\n")
			for from, to := 0, 0; from < len(lines); from = to {
				for to = from + 1; to < len(lines) && (lines[to-1] != "" || !strings.HasPrefix(lines[to], "# ")); {
					to++
				}
				t.Run(strings.TrimLeft(lines[from], "# "), func(t *testing.T) { playTable(t, from+1, lines[from:to]) })
			}
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
			}
		})
	}
}

// playTable plays a scenario whose first line has this number: once, or once for each row of its table.
func playTable(t *testing.T, number int, lines []string) {
	t.Helper()
	if slices.Contains(lines, "# (it measures)") {
		testkit.SkipRace(t, "it measures")
		long(t)
	}
	var names []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if names == nil {
			names = cells
			continue
		}
		var pairs []string
		for i, cell := range cells {
			pairs = append(pairs, strings.TrimSpace(names[i]), strings.TrimSpace(cell))
		}
		t.Run(pairs[1], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playLines(t, number, lines, strings.NewReplacer(pairs...)) })
		})
	}
	if names == nil {
		synctest.Test(t, func(t *testing.T) { playLines(t, number, lines, nil) })
	}
}

// playLines plays the lines of a scenario, with the words of a row of its table if it has one.
func playLines(t *testing.T, number int, lines []string, row *strings.Replacer) {
	t.Helper()
	p := &play{
		t: t, limits: map[string]Limiter{}, sharers: map[string]*script{}, draws: map[string][]*drawing{}, services: map[string]*service{},
		crews: map[string]*crew{},
	}
	defer p.end()
	for i, line := range lines {
		if line == "" || strings.ContainsAny(line[:1], "#| ") {
			continue
		}
		step, remark, _ := strings.Cut(line, " //")
		for _, next := range lines[i+1:] {
			if !strings.HasPrefix(next, "  ") {
				break
			}
			step += "\n" + next
		}
		if row != nil {
			step = row.Replace(step)
		}
		step, more, _ := strings.Cut(step, "\n")
		before, want, says := strings.Cut(step, "=>")
		p.line, p.more = fmt.Sprint("line ", number+i), more
		got := p.play(before)
		switch {
		case says && fits(strings.Fields(want), strings.Fields(got)), !says && (got == "" || strings.HasPrefix(got, "ok") || strings.HasPrefix(got, "waits")):
		case says && *update && row == nil && !strings.Contains(want, ".."):
			lines[i] = strings.TrimRight(before, " ") + " => " + got
			if remark != "" {
				lines[i] += " //" + remark
			}
		default:
			t.Errorf("%s: %s=> %s, want%s //%s", p.line, before, got, want, remark)
		}
	}
}

// aRange is a word like 3..5 or retryafter=3s.. with the name, and both ends.
var aRange = regexp.MustCompile(`^(\w+=)?(.*)\.\.(.*)$`)

// fits reports whether words are as wanted: the same, or in a range.
func fits(want, got []string) bool {
	for i, w := range want {
		m := aRange.FindStringSubmatch(w)
		switch {
		case w == "...":
			return true
		case i >= len(got), m == nil && w != got[i]:
			return false
		case m == nil:
			continue
		}
		value, named := strings.CutPrefix(got[i], m[1])
		is, ok := figure(value)
		least, lower := figure(m[2])
		most, upper := figure(m[3])
		if !named || !ok || lower && is < least || upper && is > most {
			return false
		}
	}
	return len(want) == len(got)
}

// figure returns the number in a word, or the seconds of a time.
func figure(word string) (f float64, ok bool) {
	if d, err := time.ParseDuration(word); err == nil {
		return d.Seconds(), true
	}
	f, err := strconv.ParseFloat(word, 64)
	return f, err == nil
}

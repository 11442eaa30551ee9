package scenario

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// Update is the flag -update, by which tests write what they compare with.
var Update = flag.Bool("update", false, "write what the scenarios in testdata give, and other files that tests compare with")

// A World is what the commands of one scenario act on.
type World interface {
	// Do carries out a command, and returns its result. It takes all words and settings of the order, and fails the test for a name that it
	// does not know.
	Do(name string, o *Order) string
	// End ends what is still going on, and checks what must hold in any scenario.
	End()
}

// Play plays the scenarios of the files, each in a World of its own.
func Play(t *testing.T, files string, begin func(t *testing.T, kind string) World, kinds ...string) {
	t.Helper()
	paths, err := filepath.Glob(files)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			lines := strings.Split(string(text), "\n")
			for from := 0; from < len(lines); {
				to := from + 1
				for to < len(lines) && (lines[to-1] != "" || !strings.HasPrefix(lines[to], "# ")) {
					to++
				}
				s := &script{number: from + 1, lines: lines[from:to], begin: begin, kinds: append(slices.Clone(kinds), "")}
				t.Run(strings.TrimLeft(lines[from], "# "), s.playKinds)
				from = to
			}
			if *Update {
				require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
			}
		})
	}
}

// A script is the text of one scenario.
type script struct {
	number int // of its first line
	lines  []string
	begin  func(t *testing.T, kind string) World
	kinds  []string // and an empty one at the end
}

// playKinds plays a script in the first kind of world, or in each.
func (s *script) playKinds(t *testing.T) {
	if slices.Contains(s.lines, "# (it measures)") {
		testkit.SkipRace(t, "it measures")
		testkit.SkipShort(t, "it measures")
	}
	if !slices.Contains(s.lines, "# (in each world)") {
		s.playTable(t, s.kinds[0])
		return
	}
	for _, kind := range testkit.Some(s.kinds[:len(s.kinds)-1]) {
		t.Run(kind, func(t *testing.T) { s.playTable(t, kind) })
	}
}

// playTable plays a script once, or once for each row of its table.
func (s *script) playTable(t *testing.T, kind string) {
	t.Helper()
	var names []string
	for _, line := range s.lines {
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
			synctest.Test(t, func(t *testing.T) { s.playLines(t, kind, strings.NewReplacer(pairs...)) })
		})
	}
	if names == nil {
		synctest.Test(t, func(t *testing.T) { s.playLines(t, kind, nil) })
	}
}

// playLines plays the lines of a script, with the words of a row of its table if it has one.
func (s *script) playLines(t *testing.T, kind string, row *strings.Replacer) {
	t.Helper()
	w := s.begin(t, kind)
	defer w.End()
	for i, line := range s.lines {
		if line == "" || strings.ContainsAny(line[:1], "#| ") {
			continue
		}
		step, remark, _ := strings.Cut(line, " //")
		for _, next := range s.lines[i+1:] {
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
		p := &player{t: t, world: w, line: fmt.Sprint("line ", s.number+i), more: more, want: want, says: says}
		got, ok := p.playUntil(before)
		switch {
		case ok:
		case says && *Update && row == nil && !strings.Contains(want, "..") && !p.timed:
			s.lines[i] = strings.TrimRight(before, " ") + " => " + got
			if remark != "" {
				s.lines[i] += " //" + remark
			}
		default:
			t.Errorf("%s: %s=> %s, want%s //%s", p.line, before, got, want, remark)
		}
	}
}

// A player plays one line.
type player struct {
	t                *testing.T
	world            World
	line, more, want string
	says             bool // it has a result
	timed            bool // it says when it has this result
}

// fits reports whether a result is as the line wants it.
func (p *player) fits(got string) bool {
	if p.says {
		return Fits(strings.Fields(p.want), strings.Fields(got))
	}
	return got == "" || strings.HasPrefix(got, "ok") || strings.HasPrefix(got, "waits")
}

// playUntil plays a line once, or as often as within or during say. It returns the last result and whether the line has been as wanted.
func (p *player) playUntil(line string) (got string, ok bool) {
	head, rest, _ := strings.Cut(line, " ")
	span, rest, _ := strings.Cut(rest, " ")
	switch p.timed = true; head {
	case "within":
		return p.within(span, rest)
	case "during":
		long, step, _ := strings.Cut(span, "/")
		for end := time.Now().Add(p.time(long)); time.Now().Before(end); time.Sleep(p.time(step)) {
			if got = p.play(rest); !p.fits(got) {
				return got, false
			}
		}
		return got, true
	}
	p.timed = false
	got = p.play(line)
	return got, p.fits(got)
}

// within plays a line until it has its result.
func (p *player) within(span, line string) (got string, ok bool) {
	least, most, ranged := strings.Cut(span, "..")
	if !ranged {
		least, most = "0s", span
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		got = p.play(line)
		took := time.Since(began)
		if p.fits(got) {
			return fmt.Sprint(got, " after ", took), took >= p.time(least)
		}
		if took >= p.time(most) {
			return got, false
		}
	}
}

func (p *player) time(word string) time.Duration {
	return (&Order{T: p.t, Line: p.line}).Time(word)
}

// play runs the commands of a line, and returns their results.
func (p *player) play(line string) string {
	times, every := 1, time.Duration(0)
	if head, rest, _ := strings.Cut(line, " "); len(head) > 1 && head[0] == 'x' && head[1] >= '0' && head[1] <= '9' {
		n, d, _ := strings.Cut(head[1:], "/")
		times, every, line = int(p.time(n).Seconds()), p.time(d), rest
	}
	var words []string
	for range times {
		for command := range strings.SplitSeq(line, ";") {
			o := NewOrder(p.t, p.line, command)
			o.More = p.more
			name := o.Word("")
			if after, ok := strings.CutPrefix(name, "+"); ok {
				time.Sleep(o.Time(after))
				synctest.Wait()
			} else {
				words = append(words, strings.Fields(p.world.Do(name, o))...)
			}
			require.Zero(p.t, len(o.Set)+len(o.Words), "%s: %s: what are %v %v?", p.line, command, o.Words, o.Set)
		}
		time.Sleep(every)
	}
	synctest.Wait()
	return strings.Join(counted(words), " ")
}

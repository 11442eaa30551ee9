package brownout

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
	"github.com/numaproj-contrib/numathrottle/internal/short"
)

var update = flag.Bool("update", false, "write the figures of docs/limits.md anew")

// What is promised of the pool's law: 0.95 of what the service can do is used, less than one
// call in a hundred is refused, and 80 % is used again within ten seconds.
func TestFallAndReturn(t *testing.T) {
	for seed := range uint64(race.Fewer(10)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := Run(Shown(Shared, seed))
			require.NoError(t, r.promises())
		})
	}
}

// promises tells which promise a run breaks.
func (r *Result) promises() error {
	used, refused, back := r.Used(), r.RefusedPart(), r.Back(backAt, 0.8)
	switch {
	case used < 0.95:
		return fmt.Errorf("%.3f of what the service can do is used", used)
	case refused >= 0.01:
		return fmt.Errorf("%.2f %% of the calls are refused", 100*refused)
	case back > 10:
		return fmt.Errorf("80 %% are used again after %d s", back)
	}
	return nil
}

// The law does so for other numbers of processors, and deeper and shallower falls.
func TestOtherFalls(t *testing.T) {
	race.Skip(t, "its runs have one goroutine, and TestFallAndReturn has them too")
	for _, tc := range []struct {
		processors int
		low        float64
	}{{1, 50}, {2, 50}, {3, 50}, {8, 50}, {50, 50}, {20, 100}, {20, 180}, {20, 25}} {
		t.Run(fmt.Sprint(tc.processors, " processors, ", tc.low), func(t *testing.T) {
			p := Shown(Shared, 1)
			p.Processors, p.Service = tc.processors, Falls(200, tc.low, fallAt, backAt)
			r := Run(p)
			require.GreaterOrEqual(t, r.Used(), 0.88)
			require.Less(t, r.RefusedPart(), 0.02)
			require.LessOrEqual(t, r.Back(backAt, 0.8), 15)
		})
	}
}

// A service that was down altogether is found again.
func TestOutage(t *testing.T) {
	race.Skip(t, "its runs have one goroutine, and TestFallAndReturn has them too")
	p := Shown(Shared, 1)
	p.Service = Falls(200, 0, fallAt, backAt)
	r := Run(p)
	require.LessOrEqual(t, r.Back(backAt, 0.8), 25)
	require.Less(t, r.RefusedPart(), 0.02)
}

// A run is the same every time.
func TestRunsAreDeterministic(t *testing.T) {
	race.Skip(t, "its runs have one goroutine, and TestFallAndReturn has them too")
	for way := Fixed; way <= Shared; way++ {
		p := Shown(way, 7)
		p.Seconds = 80
		first := Run(p)
		require.Equal(t, first, Run(p))
	}
}

// The figures in the documentation are those of these runs. With -update it writes them.
func TestPage(t *testing.T) {
	short.Skip(t, "a run of half an hour for each row of the page")
	race.Skip(t, "its runs have one goroutine, and TestFallAndReturn has them too")
	const page = "../../../docs/limits.md"
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	want := string(content)
	for name, text := range map[string]string{"ways": Table(), "run": "```\n" + Plot(1) + "```\n"} {
		before, rest, found := strings.Cut(want, "<!-- "+name+":")
		require.True(t, found, "no %s in %s", name, page)
		comment, rest, _ := strings.Cut(rest, "\n")
		_, after, found := strings.Cut(rest, "<!-- end -->")
		require.True(t, found, "%s has no end in %s", name, page)
		want = before + "<!-- " + name + ":" + comment + "\n" + text + "<!-- end -->" + after
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./internal/ceiling/brownout -run TestPage -update")
}

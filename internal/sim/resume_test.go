package sim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/race"
	"github.com/numaproj-contrib/numathrottle/internal/short"
)

// part is how many seeds a sweep makes before it writes down what it has.
const part = 500

// A progressed is how far a sweep has come, on disk: a long one goes on after it was ended.
type progressed struct {
	// Of names what is simulated: a sweep of anything else begins anew.
	Of          string
	First, Next uint64 // seeds
	Processors  int
	Counters    Counters
	Healed      []time.Duration
	Broken      []uint64 // seeds; their runs are made again
	Real        time.Duration
}

// kept is the name of the figures by which a sweep goes on.
const kept = "simulation.kept"

// sweep is Sweep for the tests. With a folder for figures, and a name for what is simulated, it goes on where the last one
// ended that was of the same, and says how many runs that were.
func sweep(cfg Config, first uint64, n int, folder, of string) (sum *Summary, before int, err error) {
	const limit = 10
	if folder == "" || of == "" {
		cfg.Progress = progress(n, 0)
		return Sweep(cfg, first, n, limit), 0, nil
	}
	p := progressed{Of: of, First: first, Next: first, Processors: cfg.Processors}
	if err := p.load(folder); err != nil {
		return nil, 0, err
	}
	end := first + uint64(n)
	before = int(min(p.Next, end) - first)
	say := progress(n, uint64(before))
	sum = p.summary(cfg)
	for p.Next < end && len(sum.Violations) < limit {
		done := p.Next - first
		cfg.Progress = func(runs uint64) { say(done + runs) }
		next := min(p.Next+part, end)
		sum.merge(Sweep(cfg, p.Next, int(next-p.Next), limit-len(sum.Violations)))
		p.Next = next
		if err := p.save(folder, sum); err != nil {
			return nil, 0, err
		}
	}
	sum.Virtual = time.Duration(sum.Counters.Runs) * cfg.duration()
	return sum, before, nil
}

// merge adds what came of other runs.
func (s *Summary) merge(more *Summary) {
	s.Counters.Add(&more.Counters)
	s.Violations = append(s.Violations, more.Violations...)
	s.Healed = append(s.Healed, more.Healed...)
	slices.Sort(s.Healed)
	s.Real += more.Real
}

// load reads how far the last sweep has come, if it was of the same.
func (p *progressed) load(folder string) error {
	var last progressed
	err := proof.Load(folder, kept, &last)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case last.Of == p.Of && last.First == p.First && last.Processors == p.Processors:
		*p = last
	}
	return nil
}

// summary is what the runs came to that were made before.
func (p *progressed) summary(cfg Config) *Summary {
	s := &Summary{Counters: p.Counters, Healed: slices.Clone(p.Healed), Real: p.Real}
	for _, seed := range p.Broken {
		cfg.Seed = seed
		s.Violations = append(s.Violations, Run(cfg))
	}
	return s
}

// save writes it down.
func (p *progressed) save(folder string, s *Summary) error {
	p.Counters, p.Healed, p.Real, p.Broken = s.Counters, s.Healed, s.Real, nil
	for _, v := range s.Violations {
		p.Broken = append(p.Broken, v.Seed)
	}
	return proof.Save(folder, kept, p)
}

// A sweep that was ended comes to the same as one that was not; one of something else begins anew.
func TestASweepGoesOn(t *testing.T) {
	short.Skip(t, "several runs of the simulation")
	race.Skip(t, "a run has one goroutine, and more than one run is in TestSeeds")
	short := Config{Processors: 3, Duration: 10 * time.Second}
	whole := Sweep(short, 1, 2*part+100, 10)
	folder := t.TempDir()
	runs := func(n int, of string, before int) *Summary {
		sum, had, err := sweep(short, 1, n, folder, of)
		require.NoError(t, err)
		require.Equal(t, before, had)
		require.EqualValues(t, n, sum.Counters.Runs)
		return sum
	}
	first := runs(part, "this", 0)
	sum := runs(2*part+100, "this", part)
	require.Equal(t, whole.Counters, sum.Counters)
	require.Equal(t, whole.Healed, sum.Healed)
	require.Equal(t, whole.Virtual, sum.Virtual)
	require.Greater(t, sum.Real, first.Real)
	runs(100, "that", 0)
	require.NoError(t, os.WriteFile(filepath.Join(folder, kept+".json"), []byte("{"), 0o600))
	_, _, err := sweep(short, 1, 1, folder, "this")
	require.ErrorContains(t, err, kept)
}

// A promise that was broken before a sweep was ended is told at its end.
func TestASweepKeepsWhatBroke(t *testing.T) {
	folder := t.TempDir()
	p := progressed{Of: "this", First: 1, Next: 1}
	broken := &Summary{Violations: []Result{{Seed: 7}, {Seed: 3}}}
	require.NoError(t, p.save(folder, broken))
	var again progressed
	again.Of, again.First = "this", 1
	require.NoError(t, again.load(folder))
	sum := again.summary(Config{Processors: 3, Duration: time.Second})
	require.Len(t, sum.Violations, 2)
	require.EqualValues(t, 7, sum.Violations[0].Seed)
}

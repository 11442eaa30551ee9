package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The pictures and the table in the tree are those that `make pictures` makes.
func TestPicturesAreNew(t *testing.T) {
	made, err := draw()
	require.NoError(t, err)
	for name, text := range made.files {
		there, err := os.ReadFile(filepath.Join("../../docs/pictures", name))
		require.NoError(t, err)
		require.Equal(t, text, string(there), "%s is not what make pictures makes", name)
		require.Equal(t, text, wellFormed(t, text))
	}
	files, err := os.ReadDir("../../docs/pictures")
	require.NoError(t, err)
	require.Len(t, files, len(made.files), "a picture that nothing makes")
	page, err := os.ReadFile("../../docs/how-it-works.md")
	require.NoError(t, err)
	changed, err := withTable(string(page), made.table)
	require.NoError(t, err)
	require.Equal(t, changed, string(page), "docs/how-it-works.md has other figures than make pictures makes")
	for name := range made.files {
		require.Contains(t, string(page), "](pictures/"+name+")")
	}
}

// wellFormed returns a text if it is XML.
func wellFormed(t *testing.T, text string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text
		}
		require.NoError(t, err)
	}
}

// The command writes all of that into a folder.
func TestRun(t *testing.T) {
	docs := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(docs, "pictures"), 0o755))
	page := filepath.Join(docs, "how-it-works.md")
	require.Error(t, run([]string{"-docs", docs}, io.Discard), "there is no page")
	require.NoError(t, os.WriteFile(page, []byte("no markers"), 0o644))
	require.ErrorContains(t, run([]string{"-docs", docs}, io.Discard), "are missing")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o644))
	require.NoError(t, run([]string{"-docs", docs}, io.Discard))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "before\n"+begin+"| calls a second |")
	require.NotContains(t, string(text), "old")
	require.FileExists(t, filepath.Join(docs, "pictures", "shares.svg"))
}

// What the page says of the life of a pool is what the run does.
func TestLifeOfAPool(t *testing.T) {
	o, err := runPool(lifeOfAPool())
	require.NoError(t, err)
	at := func(pod int, at time.Duration) float64 { return o.shares[pod][at/tick] }
	for i := range o.calls {
		require.LessOrEqual(t, beneath(o, len(names), i), 1.0+1e-9, "tick %d", i)
	}
	require.LessOrEqual(t, worst(o.calls), limitPerSecond+burst+len(names))
	require.InDelta(t, 0.5, at(0, 9*time.Second), 1e-6)
	require.InDelta(t, 1.0/3, at(2, 12*time.Second), 1e-6, "two seconds after it came C has its part")
	require.Zero(t, at(1, 23*time.Second), "B is dead")
	require.InDelta(t, 1.0/3, at(0, 36*time.Second), 1e-6, "14 s after B died its share is nobody's")
	require.InDelta(t, 0.5, at(0, 39*time.Second), 1e-6, "17 s after it is A's and C's")
	require.InDelta(t, 1.0/3, at(1, 52*time.Second), 1e-6, "two seconds after it came back B has its part")
	require.InDelta(t, 0.5, at(0, 67*time.Second), 1e-6, "two seconds after C left its share is A's and B's")
}

// The same work goes as the page says: each way by its own rules.
func TestSameWork(t *testing.T) {
	work := sameWork()
	ours, err := runPool(work)
	require.NoError(t, err)
	divided, builtIn := runDivided(work), runBuiltIn(work)
	perSecond := func(calls []int, from, to time.Duration) float64 {
		return float64(within(calls, from, to)) / (to - from).Seconds()
	}
	for i, of := range []struct{ ours, divided, builtIn float64 }{{100, 100, 99}, {100, 33.3, 33}, {66.7, 66.7, 66}, {100, 66.7, 66}} {
		p := phases[i]
		require.InDelta(t, of.ours, perSecond(ours.calls, p.from, p.to), 1, p.name)
		require.InDelta(t, of.divided, perSecond(divided, p.from, p.to), 1, p.name)
		require.InDelta(t, of.builtIn, perSecond(builtIn, p.from, p.to), 1, p.name)
	}
	require.LessOrEqual(t, worst(ours.calls), limitPerSecond+burst+len(names))
	require.Equal(t, 198, worst(builtIn), "a second's tokens late in it, and the next second's")
	require.Zero(t, within(ours.calls, 0, 5900*time.Millisecond)+within(divided, 0, 5900*time.Millisecond)+within(builtIn, 0, 5900*time.Millisecond),
		"without work there are no calls")
}

// worst looks at every second, not only at those of the wall clock.
func TestWorst(t *testing.T) {
	calls := make([]int, 300)
	calls[50], calls[149], calls[150] = 3, 4, 5
	require.Equal(t, 9, worst(calls))
	require.Equal(t, 7, worst(calls[:150]))
	require.Equal(t, 3, within(calls, 0, time.Second))
}

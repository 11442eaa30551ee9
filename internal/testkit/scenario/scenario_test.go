package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestFits(t *testing.T) {
	for want, got := range map[string]string{
		"ok no": "ok no", "1..2 ..2 1.. ..": "1.5 2 1 7", "1s..2s": "1500ms", "a=1..2": "a=1", "no ...": "no 1 2 3", "...": "",
		"1..2*3 x": "1 2 1.5 x", "4*2": "4 4", "ok*2": "ok*2", "a=1..*2": "a=1 a=5",
	} {
		require.True(t, Fits(strings.Fields(want), strings.Fields(got)), "%s: %s", want, got)
	}
	for want, got := range map[string]string{
		"ok": "ok no", "ok no": "ok", "1..2": "2.1", "1s..2s": "999ms", "a=1..2": "b=1", "3..": "2", "..3": "x", "": "x", "x ...": "y",
		"1..2*3": "1 2", "1..2*2": "1 2 1", "4*2": "4 5", "ok*2": "ok*3", "bb=1..2": "b",
	} {
		require.False(t, Fits(strings.Fields(want), strings.Fields(got)), "%s: %s", want, got)
	}
	require.Equal(t, []string{"no*2", "1", "1", "ok", "no"}, counted([]string{"no", "no", "1", "1", "ok", "no"}))
}

// A toy is a world of two commands: how long it has been there, and a list of words.
type toy struct {
	kind  string
	began time.Time
	ended *[]string
}

func (w *toy) Do(name string, o *Order) string {
	switch name {
	case "old":
		return time.Since(w.began).String()
	case "say":
		return strings.Join(o.Rest(), " ")
	}
	require.Equal(o.T, "kind", name, o.Line)
	return w.kind
}

func (w *toy) End() { *w.ended = append(*w.ended, w.kind) }

func TestLines(t *testing.T) {
	for _, tc := range []struct {
		line, want string
		took       time.Duration
		ok         bool
	}{
		{"say ok 5s", "", 0, true},
		{"say waits; say no", "", 0, true},
		{"say no", "", 0, false},
		{"say 1 2 => 1 1..2", "", 0, true},
		{"say 1 2 => 1", "", 0, false},
		{"x3/2s say a => a*3", "", 6 * time.Second, true},
		{"+3s; old => 3s", "", 3 * time.Second, true},
		{"within 1s old => 500ms..", "500ms after 500ms", 500 * time.Millisecond, true},
		{"within 1s..2s old => 500ms..", "500ms after 500ms", 500 * time.Millisecond, false},
		{"within 1s..2s old => 1100ms..", "1.1s after 1.1s", 1100 * time.Millisecond, true},
		{"within 1s old => 1s..", "1s after 1s", time.Second, true},
		{"within 1s old => 1001ms..", "1s", time.Second, false},
		{"during 2s/100ms old => ..1900ms", "1.9s", 2 * time.Second, true},
		{"during 2s/100ms old => ..1800ms", "1.9s", 1900 * time.Millisecond, false},
		{"during 1s/300ms x2 say a => a*2", "a*2", 1200 * time.Millisecond, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			before, want, says := strings.Cut(tc.line, "=>")
			p := &player{t: t, world: &toy{began: time.Now()}, line: tc.line, want: want, says: says}
			began := time.Now()
			got, ok := p.playUntil(strings.TrimSpace(before))
			require.Equal(t, tc.ok, ok, "%s: %s", tc.line, got)
			require.Equal(t, tc.took, time.Since(began), tc.line)
			if tc.want != "" {
				require.Equal(t, tc.want, got, tc.line)
			}
		})
	}
}

// Tables and kinds of worlds repeat a scenario, and -update writes what it gives.
func TestPlay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txt")
	const before = "# one\nsay 1; say 1 => 2 // why\nkind => a\n\n# rows\nsay N => N\n| N\n| 1\n| 2\n\n# (in each world)\nkind => ...\n"
	require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
	*Update = true
	defer func() { *Update = false }()
	var ended []string
	Play(t, file, func(*testing.T, string) World { return &toy{kind: "a", ended: &ended} }, "a")
	*Update = false
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(before, "=> 2 //", "=> 1 1 //", 1), string(after))
	require.Len(t, ended, 4)
}

func TestKinds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("# one\nkind => a\n\n# two\n# (in each world)\nkind => ...\n"), 0o600))
	var ended []string
	Play(t, file, func(_ *testing.T, kind string) World { return &toy{kind: kind, ended: &ended} }, "a", "b")
	require.Equal(t, append([]string{"a"}, testkit.Some([]string{"a", "b"})...), ended)
}

// A record has fields of the types that commands fill and tell.
type record struct {
	Max    int
	Per    time.Duration
	Until  time.Time
	Hard   bool
	Mode   fmt.Stringer
	Share  int64
	Rate   float64
	Name   string
	Nested struct{ Deep int }
}

func (r record) Twice() int { return 2 * r.Max }

func (r record) End() time.Time { return r.Until }

func TestFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		o := NewOrder(t, "line 1", "max=3 hard per=2s until=1m mode=five share=0.5 rate=2.5 other=1 word nested.deep=7")
		o.Fill(&r, map[string]any{"five": 5 * time.Second})
		require.Equal(t, map[string]string{"other": "1"}, o.Set)
		require.Equal(t, []string{"word"}, o.Words)
		require.Equal(t, time.Minute, time.Until(r.Until))
		require.EqualValues(t, limit.WholeShare/2, r.Share)
		require.Equal(t, 5*time.Second, r.Mode)
		r.Until = time.Time{}
		require.Equal(t, "max=3 per=2s hard=true share=0.5 rate=2.5", NewOrder(t, "", "").Tell(r))
		require.Equal(t, "7 6 2s - 2.5", NewOrder(t, "", "nested.deep twice per name rate").Tell(r))
		require.Equal(t, "never", NewOrder(t, "", "until.left").Tell(r))
		r.Until, r.Mode = time.Now().Add(time.Second), nil
		require.Equal(t, "1s 1s none", NewOrder(t, "", "until.left end.left mode").Tell(r))
		o = NewOrder(t, "", "max")
		require.Equal(t, "none", o.TellIf(false, r))
		require.Empty(t, o.Words)
	})
}

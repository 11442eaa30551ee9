package taglevel_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

func TestNames(t *testing.T) {
	long, team := strings.Repeat("k", 70), strings.Repeat("t", 40)
	for _, c := range []struct{ first, second, want string }{
		{"team", "key", "team/key"},
		{"team", "", "team"},
		{"", "key", ""},
		{"", "", ""},
		{"team", "b/key", "team/b_key"},
		{"team", "/", "team/_"},
		{"team", "..", "team/.."},
		{"team", "team", "team/team"},
		{"team", long, "team/" + tagname.Hashed(long)},
		{"team", "k\n", "team/" + tagname.Hashed("k\n")},
		{"team", "\xff", "team/" + tagname.Hashed("\xff")},
		{"team", "größe", "team/größe"},
		{team, long, team + "/" + tagname.Hashed(long)},
		{team + "t", long, team + "t"},
		{team + "t", "k", team + "t/k"},
		{"\xff", "k", "\xff"},
	} {
		got, ok := taglevel.Name(c.first, c.second)
		require.True(t, ok)
		require.Equal(t, c.want, got, "%q, %q", c.first, c.second)
		require.Equal(t, c.first, taglevel.First(got))
	}
	for _, first := range []string{"team/key", "/", "team/", "/key"} {
		_, ok := taglevel.Name(first, "k")
		require.False(t, ok, "%q could be another team's", first)
		_, ok = taglevel.Name(first, "")
		require.False(t, ok, first)
	}
}

// Whatever a caller calls itself, its tag is one of its own team: it has no tag of another, and no way around the team's pattern.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"key", "team-b/key", "../team-b", "", "*", "[", "\x00", "\xff", strings.Repeat("x", 100)} {
		f.Add("team-a", s)
		f.Add(s, "key")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		tag, ok := taglevel.Name(first, second)
		if !ok {
			require.Contains(t, first, "/")
			return
		}
		require.Equal(t, first, taglevel.First(tag))
		if first != "team-a" || second == "" {
			return
		}
		matches, err := path.Match("team-a/*", tag)
		require.NoError(t, err)
		require.True(t, matches, tag)
		require.True(t, tagname.Valid(tag), tag)
	})
}

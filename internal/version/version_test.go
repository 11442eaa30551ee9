package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuild(t *testing.T) {
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "-trimpath", Value: "true"},
			{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
			{Key: "vcs.time", Value: "2026-11-22T03:00:00Z"},
			{Key: "vcs.modified", Value: modified},
		}
	}
	for _, c := range []struct {
		name, want string
		info       *debug.BuildInfo
	}{
		{"nothing is known", "(devel) (GO, OS)", nil},
		{"go test", "(devel) (GO, OS)", &debug.BuildInfo{}},
		{"a release, from the module proxy", "v1.2.3 (GO, OS)", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}},
		{
			"a release, from a checkout", "v1.2.3 (commit 0123456789ab, GO, OS)",
			&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: settings("false")},
		},
		{
			"changed files", "v1.2.4-0.20261122030000-0123456789ab+dirty (commit 0123456789ab with changes, GO, OS)",
			&debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261122030000-0123456789ab+dirty"}, Settings: settings("true")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := of(c.info)
			require.NotEmpty(t, b.Go)
			require.Contains(t, b.Platform, "/")
			b.Go, b.Platform = "GO", "OS"
			require.Equal(t, c.want, b.String())
		})
	}
	b := of(&debug.BuildInfo{Settings: settings("true")})
	require.Equal(t, "2026-11-22T03:00:00Z", b.Time)
	require.True(t, b.Modified)
}

// In a program of somebody else's this module has a version of its own, and the commit is not its.
func TestModule(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123"}}
	dep := func(m debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main: debug.Module{Path: "example.com/theirs", Version: "v9.9.9"}, Settings: commit,
			Deps: []*debug.Module{{Path: "example.com/other", Version: "v7.7.7"}, &m},
		}
	}
	for name, c := range map[string]struct {
		info              *debug.BuildInfo
		version, revision string
	}{
		"nothing is known":      {nil, "(devel)", ""},
		"a program of this one": {&debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "v1.2.3"}, Settings: commit}, "v1.2.3", "0123"},
		"imported":              {dep(debug.Module{Path: modulePath, Version: "v1.2.3"}), "v1.2.3", ""},
		"replaced by a fork": {
			dep(debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "fork", Version: "v1.2.4"}}), "v1.2.4", "",
		},
		"replaced by a folder":    {dep(debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "../x"}}), "(devel)", ""},
		"not there, as in a test": {&debug.BuildInfo{Main: debug.Module{Path: "example.com/theirs", Version: "v9.9.9"}}, "(devel)", ""},
	} {
		b := module(c.info)
		require.Equal(t, c.version, b.Version, name)
		require.Equal(t, c.revision, b.Revision, name)
		require.NotEmpty(t, b.Go)
	}
	require.NotEmpty(t, Module().Version)
}

func TestRead(t *testing.T) {
	require.NotEmpty(t, Read().Version)
}

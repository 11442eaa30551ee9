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

func TestRead(t *testing.T) {
	require.NotEmpty(t, Read().Version)
}

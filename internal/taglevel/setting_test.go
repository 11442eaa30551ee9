package taglevel_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
)

type settings struct{ Tag string }

var fields = []config.Field[*settings]{taglevel.MessageField("For whom a message draws", func(s *settings) *string { return &s.Tag })}

// load reads the setting from a file, or as the text of a flag.
func load(t *testing.T, file, flag string) (string, []error) {
	t.Helper()
	var s settings
	if flag != "" {
		faults := config.LoadFlags(fields, map[string]string{"tag": flag}, &s)
		return s.Tag, faults
	}
	name := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(name, []byte(file), 0o600))
	faults := config.Load(fields, []string{config.FileVariable + "=" + name}, &s)
	return s.Tag, faults
}

func TestTheSettingTag(t *testing.T) {
	for text, want := range map[string]struct {
		tag string
		two bool
	}{
		"header x-team":                      {"header x-team", false},
		"json user.tenant":                   {"json user.tenant", false},
		"[header x-team]":                    {"[header x-team]", false},
		"[header x-team, key 0]":             {"[header x-team, key 0]", true},
		`["header x-team", 'json user.key']`: {"[header x-team, json user.key]", true},
	} {
		got, faults := load(t, "", text)
		require.Empty(t, faults, text)
		require.Equal(t, want.tag, got)
		inFile, faults := load(t, "tag: "+text, "")
		require.Empty(t, faults, text)
		require.Equal(t, want.tag, inFile)
		rule, two := taglevel.Messages(got)
		require.NotNil(t, rule)
		require.Equal(t, want.two, two)
	}
	inFile, faults := load(t, "tag:\n- header x-team\n- key 0\n", "")
	require.Empty(t, faults)
	require.Equal(t, "[header x-team, key 0]", inFile)
	quoted, faults := load(t, `tag: "[header x-team, key 0]"`, "")
	require.Empty(t, faults)
	require.Equal(t, inFile, quoted)
}

func TestWrongSettings(t *testing.T) {
	for _, text := range []string{
		"[]", "[header a, header b, header c]", "[header a, head b]", "[header a, header A]", "[header a", "header", "[[header a], key 0]",
		"[header a, 5]", `["header a, key 0", key 1]`, "[header a, ]x", `[header a, ""]`,
	} {
		for _, in := range []string{"flag", "file"} {
			file, flag := "tag: "+text, ""
			if in == "flag" {
				flag = text
			}
			got, faults := load(t, file, flag)
			require.NotEmpty(t, faults, "%s in a %s", text, in)
			require.Empty(t, got)
			if in == "flag" {
				require.ErrorContains(t, faults[0], "tag is ", text)
				require.ErrorContains(t, faults[0], "a list of two of these, which differ", text)
			}
		}
	}
	_, faults := load(t, "tag: [header a, header b, header c]", "")
	require.ErrorContains(t, faults[0], `tag is "[header a, header b, header c]"`)
}

// A message has the tag of both levels; without a first, or with one that has a slash, it has none.
func TestTagsOfMessages(t *testing.T) {
	rule, two := taglevel.Messages("[header team, json key]")
	require.True(t, two)
	for team, want := range map[string]string{"a": "a/k", "": "", "a/b": "", "a/k": ""} {
		got := rule(nil, func() []byte { return []byte(`{"key":"k"}`) }, func() map[string]string { return map[string]string{"team": team} })
		require.Equal(t, want, got, team)
	}
	rule, two = taglevel.Messages("header team")
	require.False(t, two)
	got := rule(nil, nil, func() map[string]string { return map[string]string{"team": "a/b"} })
	require.Equal(t, "a/b", got, "one level has any name")
}

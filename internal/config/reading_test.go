package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// loadContent reads the content of a file.
func loadContent[C any](fields []Field[C], without []string, name string, content []byte, c C) []error {
	var r Reading
	readContent(bind(fields, c), others{without: without}, name, content, &r)
	return r.Faults()
}

type readSettings struct {
	max        int
	per        time.Duration
	store      string
	mode       string
	key, other string
}

func readTable() []Field[*readSettings] {
	return []Field[*readSettings]{
		NumberField("max", 0, 100, "0", "", func(c *readSettings) *int { return &c.max }),
		DurationField("per", time.Second, time.Hour, "1s", "", func(c *readSettings) *time.Duration { return &c.per }),
		{Key: "store", Value: Store(func(c *readSettings) *string { return &c.store })},
		ChoiceField("mode", "", func(c *readSettings) *string { return &c.mode }, "fair", "even"),
		TextField("apiKey", "a text", "none", "", func(c *readSettings) *string { return &c.key }),
		TextField("apiKeyFile", "a text", "none", "", func(c *readSettings) *string { return &c.other }),
	}
}

// reading reads a file and an environment.
func reading(t *testing.T, file string, environ ...string) (*Reading, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if file != "" {
		require.NoError(t, os.WriteFile(name, []byte(file), 0o600))
		environ = append(environ, FileVariable+"="+name)
	}
	var c readSettings
	return Read(readTable(), nil, environ, &c), name
}

func TestSourcesSettingErrors(t *testing.T) {
	r, name := reading(t, "# c\nmax: 5\nper: 2s\n", "NUMATHROTTLE_PER=3s")
	var c readSettings
	ReadFlags(readTable(), map[string]string{"mode": "even"}, &c, r)
	require.NoError(t, r.Err())
	require.Equal(t, []string{name + ":2", "NUMATHROTTLE_PER", "--mode", ""}, []string{r.Source("max"), r.Source("per"), r.Source("mode"), r.Source("store")})
	require.Equal(t, "even", c.mode)
}

// A fault of several settings names where each was set.
func TestFaultsAcrossSettingsNameWhereTheyCameFrom(t *testing.T) {
	r, name := reading(t, "max: 5\nstore: redis://h\n", "NUMATHROTTLE_API_KEY=k", "NUMATHROTTLE_API_KEY_FILE=/f")
	r.Note(
		&FieldError{Field: "apiKeyFile", Problem: "is set, and so is apiKey", Allowed: "one of them"},
		&FieldError{Field: "apiKey and apiKeyFile", Problem: "are set", Allowed: "one of them"},
		&FieldError{Field: "mode", Problem: `is "store", but the store is redis`},
		&SettingError{"max", &FieldError{Field: "limit", Problem: "is too much"}},
		&FieldError{Field: "max", Problem: "is known", Source: "elsewhere"},
	)
	require.EqualError(t, r.Err(),
		"numathrottle: apiKeyFile is set, and so is apiKey (NUMATHROTTLE_API_KEY_FILE; apiKey: NUMATHROTTLE_API_KEY), allowed: one of them\n"+
			"numathrottle: apiKey and apiKeyFile are set (NUMATHROTTLE_API_KEY; NUMATHROTTLE_API_KEY_FILE), allowed: one of them\n"+
			"numathrottle: mode is \"store\", but the store is redis (store: "+name+":2)\n"+
			"numathrottle: limit is too much ("+name+":1)\n"+
			"numathrottle: max is known (elsewhere)")
}

// What follows from a fault that is told already is not told.
func TestOneMessageForOneFault(t *testing.T) {
	unset := []error{
		&FieldError{Field: "mode", Problem: "is not set"}, &SettingError{"max", os.ErrInvalid},
		&FieldError{Field: "apiKey and apiKeyFile", Problem: "are not set"},
	}
	for _, tc := range []struct {
		file    string
		environ []string
		more    int
	}{
		{"max: x\nmode: x\napiKey: \"\"\n", nil, 0},
		{"maxx: 5\nmoed: fair\napi-key: k\n", nil, 0}, // misspelt names
		{"", []string{"NUMATHROTTLE_MAXX=5", "NUMATHROTTLE_MOED=fair", "NUMATHROTLE_API_KEY=k"}, 0},
		{"per: 60\n", nil, 3},
		{"max: 1\nhow: 2\n", nil, 3},
		{"max: 1\nmaxx: 2\n", nil, 3}, // max is set, too
	} {
		r, _ := reading(t, tc.file, tc.environ...)
		before := len(r.Faults())
		require.NotZero(t, before)
		r.Note(unset...)
		require.Len(t, r.Faults(), before+tc.more, "%q %v: %v", tc.file, tc.environ, r.Err())
	}
	for _, environ := range []string{FileVariable + "=/nowhere", FileVariable + "=", FileVariable + "=" + t.TempDir()} {
		r, _ := reading(t, "", environ)
		r.Note(unset...)
		require.Len(t, r.Faults(), 1, environ)
	}
}

func TestWordsGetSuggestions(t *testing.T) {
	r, _ := reading(t, "", "NUMATHROTTLE_MODE=FAIR")
	require.ErrorContains(t, r.Err(), `mode is "FAIR"; did you mean fair? (NUMATHROTTLE_MODE)`)
}

package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replayedBy runs whatif with files in a folder of its own.
func replayedBy(t *testing.T, args ...string) (out, dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"traffic.csv": "time,tag,rate\n2026-11-29T08:00:00Z,acme,20\n2026-11-29T08:01:00Z,acme,5\n2026-11-29T08:02:00Z,beta,1\n",
		"bad.csv":     "time,tag,rate\n2026-11-29T08:00:00Z,acme,-20\n",
		"new.yaml":    "max: 10\nstore: redis://nobody.invalid:6379\npool: p\n", "old.yaml": "max: 1000\n", "bad.yaml": "max: many\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	var b bytes.Buffer
	c := &CLI{Out: &b, Err: &b, Environ: []string{"NUMATHROTTLE_MAX=7"}}
	err = c.Run(t.Context(), append([]string{"whatif"}, args...))
	return b.String(), dir, err
}

func TestWhatif(t *testing.T) {
	out, dir, err := replayedBy(t, "--config", "new.yaml", "--before", "old.yaml", "--from", "traffic.csv")
	require.NoError(t, err, out)
	require.Contains(t, out, "new.yaml: 10 per 1s", "the variables do not count")
	require.Regexp(t, `(?m)^acme +1500 +\S+ % +\S+ % +0 +[0-9.]+ s`, out)
	require.Regexp(t, `(?m)^beta +60 `, out)
	page, err := os.ReadFile(filepath.Join(dir, "whatif.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "<!DOCTYPE html>")

	out, dir, err = replayedBy(t, "--config", "new.yaml", "--from", "traffic.csv", "--output", "other.html", "--pods", "2", "--max-wait", "1s")
	require.NoError(t, err, out)
	require.Contains(t, out, "2 pods")
	require.FileExists(t, filepath.Join(dir, "other.html"))
	require.NoFileExists(t, filepath.Join(dir, "whatif.html"))
}

func TestWhatifOfAPrometheusServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.ParseInt(r.FormValue("start"), 10, 64)
		assert.NoError(t, err)
		assert.Equal(t, "Bearer word-of-the-file", r.Header.Get("Authorization"))
		assert.Equal(t, "sum by (team) (rate(calls[1m]))", r.FormValue("query"))
		_, _ = fmt.Fprintf(w, `{"data": {"resultType": "matrix", "result": [{"metric": {"team": "acme"}, "values": [[%d, "20"]]}]}}`, from)
	}))
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("word-of-the-file\n"), 0o600))
	out, _, err := replayedBy(t, "--config", "new.yaml", "--prometheus", server.URL, "--query", "sum by (team) (rate(calls[1m]))", "--label", "team",
		"--since", "1h", "--token-file", token)
	require.NoError(t, err, out)
	require.Regexp(t, `(?m)^acme +1200 `, out)
}

func TestWrongWhatif(t *testing.T) {
	for says, args := range map[string][]string{
		"--config and either --from or --prometheus are needed":  {"--from", "traffic.csv"},
		`pods is 0 (--pods), allowed: 1`:                         {"--config", "new.yaml", "--from", "traffic.csv", "--pods", "0"},
		`arrivals is "odd" (--arrivals), allowed`:                {"--config", "new.yaml", "--from", "traffic.csv", "--arrivals", "odd"},
		`maxWait is "soon" (--max-wait)`:                         {"--config", "new.yaml", "--from", "traffic.csv", "--max-wait", "soon"},
		`traffic: line 2, rate is "-20", allowed: a number from`: {"--config", "new.yaml", "--from", "bad.csv"},
		`allowed: a CSV file, or - for standard input`:           {"--config", "new.yaml", "--from", "none.csv"},
		`max is "many"`: {"--config", "bad.yaml", "--from", "traffic.csv"},
		"none.yaml":     {"--config", "none.yaml", "--from", "traffic.csv"},
		`is no flag`:    {"--config", "new.yaml", "--sense", "x"},
		"--query is set, allowed: only with --prometheus": {"--config", "new.yaml", "--from", "traffic.csv", "--query", "x"},
		"either --from or --prometheus are needed":        {"--config", "new.yaml", "--from", "traffic.csv", "--prometheus", "http://x"},
		"--prometheus is no URL of a server":              {"--config", "new.yaml", "--prometheus", "me:pass@host"},
		`since is "1y" (--since)`:                         {"--config", "new.yaml", "--prometheus", "http://x", "--since", "1y"},
		"--token-file: open none":                         {"--config", "new.yaml", "--prometheus", "http://x", "--token-file", "none"},
	} {
		out, dir, err := replayedBy(t, args...)
		require.ErrorContains(t, err, says, out)
		require.Equal(t, ExitUsage, ExitCode(err), says)
		require.NoFileExists(t, filepath.Join(dir, "whatif.html"))
	}
	_, _, err := replayedBy(t, "--config", "new.yaml", "--from", "traffic.csv", "--output", "no/such/folder.html")
	require.ErrorContains(t, err, "--output")
	require.Equal(t, ExitFailed, ExitCode(err))
}

package cli

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// canary is in every secret of these tests. It must not come out anywhere.
const canary = "hunter2-canary"

// A terminal runs the command with variables of its own.
type terminal struct {
	*CLI

	out, errOut testkit.Book
}

// newTerminal returns one whose store is given; nil for the real one.
func newTerminal(store driver.Store, environ ...string) *terminal {
	t := &terminal{}
	t.CLI = &CLI{Out: &t.out, Err: &t.errOut, Environ: environ, open: opening.Store}
	if store != nil {
		t.open = func(context.Context, opening.Config) (driver.Store, error) { return store, nil }
	}
	return t
}

// run returns what the command has printed, and an error when it has failed.
func (tm *terminal) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	tm.out.Reset()
	tm.errOut.Reset()
	err := tm.Run(t.Context(), args)
	text := tm.out.String() + tm.errOut.String()
	if err != nil {
		text += err.Error()
	}
	require.NotContains(t, text, canary)
	return tm.out.String(), err
}

func requireGolden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run: go test ./internal/cli -update")
	require.Equal(t, string(want), got, "run: go test ./internal/cli -update, and look at what changes")
}

func TestHelp(t *testing.T) {
	for file, args := range map[string][]string{
		"help.golden": {"--help"}, "help-status.golden": {"status", "--help"}, "help-limit-set.golden": {"limit", "set", "--help"},
		"help-limit.golden": {"help", "limit"}, "help-quota-spent.golden": {"quota", "spent", "--help"},
	} {
		tm := newTerminal(nil)
		out, err := tm.run(t, args...)
		require.NoError(t, err)
		before, rest, found := strings.Cut(out, "VERSION:\n")
		if found { // it differs with every build
			_, rest, _ = strings.Cut(rest, "\n\n")
		}
		requireGolden(t, file, before+rest)
	}
}

func TestVersion(t *testing.T) {
	out, err := newTerminal(nil, "NUMATHROTTLE_STORE=ftp://x").run(t, "--version")
	require.NoError(t, err)
	require.Regexp(t, `^numathrottle version \S+ \(.*go1\..*\)\n$`, out)
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "pwsh"} {
		out, err := newTerminal(nil).run(t, "completion", shell)
		require.NoError(t, err)
		require.NotEmpty(t, out, shell)
	}
	store := memstore.New()
	for _, pool := range []string{"orders/in/a", "orders/in/b", "bad\x1bname"} {
		join(store, pool, "a", "", driver.Whole, 1).sync(t)
	}
	const pools = "orders/in/a\norders/in/b\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"limit"}, "set:"},
		{[]string{"limit", "set", "-"}, "--reason:"},
		{[]string{"--store", "redis://h", "status"}, pools},
		{[]string{"status", "--json", "orders/in/a"}, pools},
		{[]string{"limit", "set", "--pool"}, pools},
		{[]string{"--pool"}, pools},
		{[]string{"pause", "--config=/nowhere", "--pool"}, ""},
		{[]string{"status", "--every"}, ""},
	} {
		out, err := newTerminal(store).run(t, append(c.args, completionFlag)...)
		require.NoError(t, err)
		if c.want == pools || c.want == "" {
			require.Equal(t, c.want, out, c.args)
		}
		require.Contains(t, out, c.want, c.args)
	}
}

// Where pools stand for nothing they are not asked for.
func TestCompletionAsksNoStoreForCommands(t *testing.T) {
	tm := newTerminal(nil)
	tm.open = func(context.Context, opening.Config) (driver.Store, error) {
		require.Fail(t, "the store was opened")
		return nil, errors.New("no")
	}
	for _, args := range [][]string{{}, {"limit"}, {"limit", "set"}, {"status", "--store"}} {
		_, err := tm.run(t, append(args, completionFlag)...)
		require.NoError(t, err)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("max: 600\nper: 1m\nstore: redis://user:"+canary+"@h:6379/2\npool: p\nid: i\n"), 0o600))
	environ := []string{"NUMATHROTTLE_POOL=from the environment", "NUMATHROTTLE_STORE_SENTINEL_PASSWORD=" + canary}
	_, err := newTerminal(nil, environ...).run(t, "check", "--config", file)
	require.ErrorContains(t, err, "storeSentinelPassword is set, but the store is redis")
	require.Equal(t, ExitUsage, ExitCode(err), "also of settings that are good each by itself")

	out, err := newTerminal(nil, environ[:1]...).run(t, "check", "--config", file)
	require.NoError(t, err)
	requireGolden(t, "check.golden", strings.ReplaceAll(out, file, "c.yaml"))
	out, err = newTerminal(nil, environ[:1]...).run(t, "--pool=from a flag", "check", "--config", file)
	require.NoError(t, err)
	require.Contains(t, out, "pool: \"from a flag\"  # --pool\n")

	_, err = newTerminal(nil, "NUMATHROTTLE_MAX=1", "NUMATHROTTLE_STORE=nats://h", "NUMATHROTTLE_STORE_TOKEN_FILE="+dir+"/missing").run(t, "check")
	require.ErrorContains(t, err, "storeTokenFile is ", "as the limiter would find when it is opened")
	out, err = newTerminal(nil, "NUMATHROTTLE_MAX=-1", "NUMATHROTTLE_PEER=1s").run(t, "check")
	require.ErrorContains(t, err, `max is "-1" (NUMATHROTTLE_MAX)`)
	require.ErrorContains(t, err, "NUMATHROTTLE_PEER is not a variable of numathrottle; did you mean NUMATHROTTLE_PER?")
	require.Empty(t, out, "what would be in force is not what is meant")
	require.Equal(t, ExitUsage, ExitCode(err))
}

func TestCheckWarnsOfWhatWasHardlyMeant(t *testing.T) {
	for _, name := range []string{"NUMAFLOW_PIPELINE_NAME", "NUMAFLOW_VERTEX_NAME", "NUMAFLOW_MONO_VERTEX_NAME", "NUMAFLOW_POD"} {
		t.Setenv(name, "")
	}
	warned := func(environ ...string) (out, warnings string) {
		term := newTerminal(nil, environ...)
		out, err := term.run(t, "check")
		require.NoError(t, err)
		return out, term.errOut.String()
	}
	out, warnings := warned()
	require.Contains(t, out, "max: none (no limit)\n")
	require.Empty(t, warnings, "nothing is set, and this is no pod")
	out, warnings = warned("NUMATHROTTLE_STORE=redis://h")
	require.Contains(t, out, "max: none (no limit)\n")
	require.Contains(t, warnings, "warning: a store is set, but there is no limit: everything passes at once; set NUMATHROTTLE_MAX\n")
	_, err := newTerminal(nil, "NUMATHROTTLE_STORE=redis://h", "NUMATHROTTLE_MAX=3").run(t, "check")
	require.ErrorContains(t, err, "pool is not set: every service that uses this store and sets none would share one limit")
	require.Equal(t, ExitUsage, ExitCode(err))
	out, warnings = warned("NUMATHROTTLE_STORE=redis://h", "NUMATHROTTLE_MAX=3", "NUMATHROTTLE_POOL=default")
	require.NotContains(t, out, "max: none")
	require.Empty(t, warnings)

	t.Setenv("NUMAFLOW_POD", "simple-in-0")
	_, warnings = warned("NUMATHROTTLE_MAX=3")
	require.Contains(t, warnings, "warning: memory:// is not shared between pods")
	_, warnings = warned()
	require.Contains(t, warnings, "warning: this is a pod of Numaflow's, but there is no limit")
	require.NotContains(t, warnings, "memory://", "one thing at a time")

	_, err = newTerminal(nil, "NUMATHROTLE_MAX=3").run(t, "check")
	require.ErrorContains(t, err, "NUMATHROTLE_MAX is not a variable of numathrottle; did you mean NUMATHROTTLE_MAX?")
}

func TestWrongUsage(t *testing.T) {
	redis := "--store=redis://127.0.0.1:1"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"stauts"}, `numathrottle: "stauts" is no command or argument, allowed: pools, status, why, limit, file, pause, resume, debt, quota, top, ` +
			`console, check, whatif, proxy, stop-notice, version, completion; did you mean status?`},
		{[]string{"check", "it"}, `numathrottle check: "it" is no command or argument, allowed: none`},
		{[]string{"limit", "sett"}, `numathrottle limit: "sett" is no command or argument, allowed: show, set, clear; did you mean set?`},
		{[]string{"limit", "set", "100"}, `numathrottle limit set: "100" is no command or argument, allowed: none`},
		{[]string{"status", "--stor=x"}, "numathrottle status: --stor is no flag; did you mean --store?, allowed: those of numathrottle status --help"},
		{[]string{"status", "--wach"}, "--wach is no flag; did you mean --watch?, allowed: those of numathrottle status --help"},
		{[]string{"limit", "set", "--poll=x"}, "; did you mean --pool?"},
		{[]string{"pool"}, "; did you mean pools?"},
		{[]string{"whi"}, "; did you mean why?"},
		{
			[]string{"status", "--store-password", canary},
			"numathrottle status: --store-password is no flag, for all users of the machine would see it, " +
				"allowed: the variable NUMATHROTTLE_STORE_PASSWORD, or --store-password-file",
		},
		{[]string{"status", "--store-token=" + canary}, "--store-token is no flag"},
		{[]string{"limit", "set", "--max"}, "numathrottle limit set: flag needs an argument: --max"},
		{[]string{"limit", "set", "--max=1e3"}, `max is "1e3" (--max), allowed: a whole number, 1 to 1000000000`},
		{[]string{"limit", "set", "--max=-5"}, `max is "-5" (--max)`},
		{[]string{"limit", "set", "--max=0"}, "--max is 0, allowed: 1 to 1000000000; numathrottle limit clear ends an override"},
		{[]string{"limit", "set", "--per=1s"}, "--max is missing"},
		{[]string{"limit", "set", "--max=5", "--per=1"}, "per is \"1\"; did you mean 1s? (--per), allowed: a duration, `1ms` to `744h`"},
		{[]string{"limit", "set", "--max=5", "--per=1us"}, `per is "1us" (--per)`},
		{[]string{"status", "--timeout=1h", redis}, "timeout is \"1h\" (--timeout), allowed: a duration, `100ms` to `10m`"},
		{[]string{"status", "-o", "xml", redis}, `numathrottle status: --output is "xml", allowed: text, json`},
		{[]string{"status", "--json", "-o=text", redis}, "--output is text, but --json is given"},
		{[]string{"limit", "set", "--max=5", "--for=soon"}, `for is "soon" (--for)`},
		{[]string{"console", "--listen=0.0.0.0:0", redis}, `console: listen is "0.0.0.0:0", which others can reach, and there is no token`},
		{[]string{"console", "--listen=8090", redis}, `console: listen is "8090", allowed: HOST:PORT`},
		{[]string{"console", "--token-file=/nowhere", redis}, "the file with the token"},
		{[]string{"console", "--token=" + canary, redis}, "numathrottle console: --token is no flag"},
		{[]string{"status", "--every=0s", redis}, "every is \"0s\" (--every), allowed: a duration, `200ms` to `1h`"},
		{[]string{"status", "--every=1s", redis}, "numathrottle status: --every is set, but --watch is not"},
		{[]string{"top", "--every=1s", redis}, "numathrottle top: --every is set, but --watch is not"},
		{[]string{"-o", "json", "status"}, "numathrottle: -o is no flag, allowed: those of numathrottle --help"},
		{[]string{"status", "--store="}, "store is empty (--store), allowed: a store URL"},
		{[]string{"status", "--store=redis://u:" + canary + "@"}, "store has no host (host 1)"},
		{
			[]string{"status", "--store=redis://u:" + canary + "@h"},
			"store has a user name, password or token before an @, which all users of the machine would see (--store)",
		},
		{[]string{"status", "--store", "nats://" + canary + "@h"}, "store has a user name, password or token before an @"},
		{[]string{"limit", "set", "--max=5", "--store=rediss://:" + canary + "@h/3"}, "all users of the machine would see"},
		{[]string{"console", "--store=redis://:" + canary + "@h"}, "all users of the machine would see"},
		{[]string{"proxy", "permits", "--store=redis://:" + canary + "@h"}, "all users of the machine would see"},
		{[]string{"status", "--store-ca-file=/nowhere", redis}, "storeCAFile is set, but the store is redis"},
		{[]string{"status"}, "store is memory://, which nothing outside of a process can see, allowed: redis://"},
		{[]string{"status", "--store=static://?replicas=2"}, "store is static://"},
		{[]string{"status", "--config=/nowhere"}, `NUMATHROTTLE_CONFIG is "/nowhere", which cannot be read`},
	} {
		out, err := newTerminal(nil).run(t, c.args...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
		require.Equal(t, ExitUsage, ExitCode(err), "%q", c.args)
		require.Empty(t, out, "%q", c.args)
	}
}

// A store that does not answer is given up after the timeout.
func TestStoreThatCannotBeReached(t *testing.T) {
	for store, want := range map[string]string{
		"redis://127.0.0.1:1": "connection refused",
		"nats://127.0.0.1:1":  "no servers available",
	} {
		_, err := newTerminal(nil).run(t, "status", "--timeout=300ms", "--store", store)
		require.ErrorContains(t, err, want)
		require.Equal(t, ExitStore, ExitCode(err))
	}
}

// failing is a store whose every answer is an error.
type failing struct{ driver.Store }

func (failing) Load(context.Context, string) ([]driver.Document, []driver.RosterRow, error) {
	return nil, nil, errors.New("no such day")
}

func TestErrorsOfTheStore(t *testing.T) {
	for _, args := range [][]string{
		{"status"},
		{"pause", "show"},
		{"pause", "set"},
		{"resume"},
		{"limit", "show"},
		{"limit", "set", "--max=1"},
		{"limit", "clear"},
	} {
		_, err := newTerminal(failing{memstore.New()}, "NUMATHROTTLE_POOL=p").run(t, args...)
		require.ErrorContains(t, err, "no such day", args)
		require.Equal(t, ExitStore, ExitCode(err))
		_, err = newTerminal(memstore.New(), "NUMATHROTTLE_POOL=empty").run(t, args...)
		require.ErrorIs(t, err, driver.ErrNoPool, args)
		require.ErrorContains(t, err, `pool "empty"`, args)
		require.ErrorContains(t, err, "the store has no pool at all", args)
		require.Equal(t, ExitNotFound, ExitCode(err))
	}
}

// A full writer has no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

// Whatever a command prints: when the output is lost, it has failed and says why.
func TestOutputThatIsLost(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, _ *throttle.Throttle) {
		for _, args := range [][]string{
			{"--help"},
			{"--version"},
			{"help"},
			{"help", "limit"},
			{"proxy", "http", "--help"},
			{"version"},
			{"check"},
			{"proxy", "permits", "--check"},
			{"completion", "bash"},
			{"pools"},
			{"pools", "--json"},
			{"status"},
			{"status", "--json"},
			{"why"},
			{"top"},
			{"quota", "get", "acme"},
			{"limit", "set", "--max", "50"},
			{},
		} {
			tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100")
			_, err := tm.run(t, args...)
			require.NoError(t, err, args)
			tm.Out = full{}
			err = tm.Run(t.Context(), args)
			require.ErrorIs(t, err, errFull, args)
			require.Equal(t, ExitFailed, ExitCode(err), args)
		}
	})
	tm := newTerminal(nil)
	tm.Out = full{}
	require.EqualError(t, tm.Run(t.Context(), []string{"--help"}), "numathrottle: the output is lost: no space left")
}

package program_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

const canary = "hunter2-canary"

type settings struct {
	greeting string
	key      numathrottle.Secret
	pool     opening.Config
}

var errServed = errors.New("served")

// greeter is a program that serves by failing.
func greeter() *program.Program[settings] {
	fields := config.WithPrefix("GREETER_",
		config.TextField("greeting", "a text", "none", "What it says", func(s *settings) *string { return &s.greeting }),
		config.Field[*settings]{Key: "key", Value: config.Secret(
			func(s *settings, text string) { s.key = numathrottle.NewSecret(text) }, func(s *settings) string { return s.key.Reveal() },
		)},
	)
	pool := func(s *settings) *opening.Config { return &s.pool }
	return &program.Program[settings]{
		Name: "greeter", Prefix: "GREETER_", Fields: fields, Pool: pool,
		Finish: func(*settings, *config.Reading) {},
		NoLimit: func(s *settings) string {
			if s.greeting == "unbounded" {
				return "greet less"
			}
			return ""
		},
		Serve: func(_ context.Context, s *settings, log *slog.Logger) error {
			log.Info("serving", "greeting", s.greeting)
			return errServed
		},
	}
}

func run(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = greeter().Run(t.Context(), args, &o, &e)
	require.NotContains(t, o.String()+e.String(), canary)
	return o.String(), e.String(), err
}

func TestServes(t *testing.T) {
	t.Setenv("GREETER_GREETING", "good morning")
	out, log, err := run(t)
	require.ErrorIs(t, err, errServed)
	require.Empty(t, out)
	require.Contains(t, log, "good morning")
}

// Who limits nothing is told, by --check and at the start.
func TestNoLimitIsSaid(t *testing.T) {
	t.Setenv("GREETER_GREETING", "unbounded")
	const warning = `level=WARN msg="there is no limit: greet less"`
	_, log, err := run(t, "--check")
	require.NoError(t, err)
	require.Contains(t, log, warning)
	_, log, err = run(t)
	require.ErrorIs(t, err, errServed)
	require.Contains(t, log, warning)
}

func TestCheckShowsWhatIsInForceAndNoSecret(t *testing.T) {
	t.Setenv("GREETER_GREETING", "good\tmorning")
	t.Setenv("GREETER_KEY", canary)
	t.Setenv("NUMATHROTTLE_STORE", "redis://u:"+canary+"@h")
	t.Setenv("NUMATHROTTLE_POOL", "p")
	t.Setenv("NUMATHROTTLE_ID", "i")
	out, _, err := run(t, "--check")
	require.ErrorContains(t, err, "greeting is", "a line without control characters is what it takes")
	require.Empty(t, out, "with a fault nobody knows what is in force")
	t.Setenv("GREETER_GREETING", `good "morning"`)
	out, log, err := run(t, "--check")
	require.NoError(t, err)
	require.Empty(t, log)
	require.Equal(t, `greeting: "good \"morning\""  # GREETER_GREETING`+"\nkey: (set, not shown)  # GREETER_KEY\n"+
		"# The pool of the limits:\nstore: \"redis://h\"  # NUMATHROTTLE_STORE\npool: \"p\"  # NUMATHROTTLE_POOL\nid: \"i\"  # NUMATHROTTLE_ID\n"+
		"lease: \"10s\"  # default\npolicy: \"fair\"  # default\nonStoreLoss: \"degrade\"  # default\nstateDir: \"none\"  # default\n"+
		"storeUsername: \"u\"  # NUMATHROTTLE_STORE\nstorePassword: (set, not shown)  # NUMATHROTTLE_STORE\n", out)
	t.Setenv("NUMATHROTTLE_POOL", "")
	t.Setenv("NUMATHROTTLE_MAX", "")
	out, _, err = run(t, "--check")
	require.Empty(t, out)
	require.ErrorContains(t, err, "pool is empty")
	require.Equal(t, 2, strings.Count(err.Error(), "\n")+1, "one message for each fault: %v", err)
}

func TestVersionNeedsNoSettings(t *testing.T) {
	t.Setenv("NUMATHROTTLE_STORE", "ftp://nowhere")
	out, _, err := run(t, "--version")
	require.NoError(t, err)
	require.Regexp(t, `^greeter \S+ \(.*go1\..*\)\n$`, out)
}

func TestArguments(t *testing.T) {
	_, help, err := run(t, "--help")
	require.NoError(t, err)
	require.Contains(t, help, "-check")
	for arg, want := range map[string]string{
		"serve":     `greeter: "serve" is no flag, allowed: --check, --version; settings come from variables GREETER_* and NUMATHROTTLE_*`,
		"--chekc":   "greeter: flag provided but not defined: -chekc; did you mean --check?",
		"--Version": "greeter: flag provided but not defined: -Version; did you mean --version?",
		"--banana":  "greeter: flag provided but not defined: -banana",
		"--check=x": `greeter: invalid boolean value "x" for -check`,
	} {
		_, _, err := run(t, arg)
		require.ErrorContains(t, err, want)
	}
}

// The program and its limits log at the level and in the form that are set.
func TestLogging(t *testing.T) {
	t.Setenv("GREETER_GREETING", "hi")
	t.Setenv("NUMATHROTTLE_LOG_FORMAT", "json")
	_, log, err := run(t)
	require.ErrorIs(t, err, errServed)
	require.Contains(t, log, `"level":"INFO","msg":"serving","greeting":"hi"}`)
	t.Setenv("NUMATHROTTLE_LOG_LEVEL", "warn")
	_, log, err = run(t)
	require.ErrorIs(t, err, errServed)
	require.Empty(t, log)
	t.Setenv("NUMATHROTTLE_LOG_LEVEL", "WARNING")
	t.Setenv("NUMATHROTTLE_LOG_FORMAT", "xml")
	_, _, err = run(t)
	require.ErrorContains(t, err, "logLevel is \"WARNING\"; did you mean warn? (NUMATHROTTLE_LOG_LEVEL), allowed: `debug`, `info`, `warn` or `error`")
	require.ErrorContains(t, err, "logFormat is \"xml\" (NUMATHROTTLE_LOG_FORMAT), allowed: `text` or `json`")
}

// A full writer has no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestOutputThatIsLost(t *testing.T) {
	for _, arg := range []string{"--help", "--version", "--check"} {
		require.ErrorIs(t, greeter().Run(t.Context(), []string{arg}, full{}, full{}), errFull, arg)
	}
}

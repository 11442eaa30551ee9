package program_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/open"
)

const canary = "hunter2-canary"

type settings struct {
	greeting string
	key      numathrottle.Secret
	pool     numathrottle.Config
}

var errServed = errors.New("served")

// greeter is a program that serves by failing.
func greeter() *program.Program[settings] {
	fields := config.WithPrefix("GREETER_",
		config.TextField("greeting", "a text", "none", "What it says", func(s *settings) *string { return &s.greeting }),
		config.Field[settings]{Key: "key", Value: config.Secret(
			func(s *settings, text string) { s.key = numathrottle.NewSecret(text) }, func(s *settings) string { return s.key.Reveal() },
		)},
	)
	pool := func(s *settings) *numathrottle.Config { return &s.pool }
	return &program.Program[settings]{
		Name: "greeter", Prefix: "GREETER_", Fields: fields, Pool: pool,
		Load: func() (s settings, err error) {
			return s, config.Join(open.LoadWith(fields, pool, &s))
		},
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
	require.NotContains(t, out, "greeting")
	t.Setenv("GREETER_GREETING", `good "morning"`)
	out, log, err := run(t, "--check")
	require.NoError(t, err)
	require.Empty(t, log)
	require.Equal(t, `greeting: "good \"morning\""`+"\nkey: (set, not shown)\n"+
		"pool of the limits: {store: redis://h, pool: p, id: i, lease: 10s, policy: fair, onStoreLoss: degrade, stateDir: none, "+
		"storeUsername: u, storePassword: (set, not shown)}\n", out)
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
		"--chekc":   "greeter: flag provided but not defined: -chekc",
		"--check=x": `greeter: invalid boolean value "x" for -check`,
	} {
		_, _, err := run(t, arg)
		require.ErrorContains(t, err, want)
	}
}

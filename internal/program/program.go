package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	_ "time/tzdata" // TZ counts in an image, too, which has no time zones of its own

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/version"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Program is a ready-made function whose settings are an S.
type Program[S any] struct {
	// Name is that of the binary.
	Name string
	// Prefix is what the variables of its own settings begin with.
	Prefix string
	// Fields are its own settings, in the order in which they are shown.
	Fields []config.Field[S]
	// Pool is where S holds the settings of the pool.
	Pool func(s *S) *numathrottle.Config
	// Load returns the settings in force. With an error, which has a line for each fault, it
	// returns what could be read.
	Load func() (S, error)
	// NoLimit says what happens and what to set where valid settings limit nothing; empty: they limit something.
	NoLimit func(s *S) string
	// Serve is the work: it returns when ctx has ended, or what keeps it from going on.
	Serve func(ctx context.Context, s *S, log *slog.Logger) error
}

// Main runs the program until it is done, gets SIGINT or SIGTERM, or its pod is being stopped, and exits: with 1 when Run
// has failed, after it has printed why.
func (p *Program[S]) Main() {
	MuteTransports()
	ctx, stop := numathrottle.StopContext(context.Background())
	err := p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Run does what the arguments say; see the package. What is asked for goes to out, help and the
// log to errOut. Errors: a flag that is not known, a fault of the settings, and those
// of Serve. None shows a secret.
func (p *Program[S]) Run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(errOut)
	check := flags.Bool("check", false, "print the settings in force, without secrets, and what is wrong with them")
	tell := flags.Bool("version", false, "print which build this is")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil // it was printed
	} else if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("%s: %.60q is no flag, allowed: --check, --version; settings come from variables %s* and %s*",
			p.Name, flags.Arg(0), p.Prefix, config.Prefix)
	case *tell:
		_, err := fmt.Fprintln(out, p.Name, version.Read())
		return err
	}
	s, err := p.Load()
	if *check {
		_, _ = io.WriteString(out, p.Effective(&s)) // nobody reads it
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errOut, nil))
	if warning := p.NoLimit(&s); warning != "" {
		log.Warn("there is no limit: " + warning) //nolint:sloglint // one of two sentences
	}
	if *check {
		return nil
	}
	return p.Serve(ctx, &s, log)
}

// Effective is every setting that differs from its zero value, without secrets, a line each, and the pool with its
// defaults.
func (p *Program[S]) Effective(s *S) string {
	var b strings.Builder
	for _, f := range config.Show(p.Fields, s) {
		value := f.Value
		if value != config.Redacted {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, "%s: %s\n", f.Key, value)
	}
	pool := p.Pool(s).Effective()
	pool.Limit = throttle.Limit{} // it stands among the program's own settings
	fmt.Fprintf(&b, "pool of the limits: %s\n", pool)
	return b.String()
}

// SecretField is a setting that is never printed.
func SecretField[S any](key, doc string, at func(*S) *numathrottle.Secret) config.Field[S] {
	return config.Field[S]{Key: key, Allowed: "a text, never printed", Default: "none", Doc: doc, Value: config.Secret(
		func(s *S, text string) { *at(s) = numathrottle.NewSecret(text) },
		func(s *S) string { return at(s).Reveal() },
	)}
}

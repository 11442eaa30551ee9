package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	_ "time/tzdata" // TZ counts in an image, too, which has no time zones of its own

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/version"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Program is a ready-made function whose settings are an S.
type Program[S any] struct {
	// Name is the name of the binary.
	Name string
	// Prefix is the prefix of the variables of its own settings.
	Prefix string
	// Fields are its own settings, in display order.
	Fields []config.Field[*S]
	// Pool returns the pool's settings in S.
	Pool func(s *S) *opening.Config
	// Finish fills in the defaults of the settings as read, and notes faults that no single field shows.
	Finish func(s *S, r *config.Reading)
	// Open opens and closes the limits of the settings. Its ctx is opening.Planning: it is called for a changed file. nil: none is followed.
	Open func(ctx context.Context, s *S, log *slog.Logger) error
	// Live are the own settings that a changed file changes without a restart; see opening.Following.
	Live []string
	// NoLimit returns a warning with a remedy if valid settings limit nothing; empty: they limit something.
	NoLimit func(s *S) string
	// Serve does the work: it returns when ctx has ended, or with the error that prevents it from continuing.
	Serve func(ctx context.Context, s *S, log *slog.Logger) error
}

// Main runs the program until it is done, gets SIGINT or SIGTERM, or its pod is being stopped, and exits. If Run fails, it prints the error
// and exits with 1.
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

// Run obeys the arguments; see the package. Requested output goes to out, help and the log to errOut. Errors: an unknown flag, a fault of
// the settings, output that cannot be written, and those of Serve. None shows a secret.
func (p *Program[S]) Run(ctx context.Context, args []string, out, errOut io.Writer) error {
	reported := NewOutput(out)
	return reported.Err(p.Name, p.run(ctx, args, reported, errOut))
}

func (p *Program[S]) run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	help := NewOutput(errOut)
	flags.SetOutput(help)
	check := flags.Bool("check", false, "print the settings in force, without secrets, and where they come from; or what is wrong with them")
	tell := flags.Bool("version", false, "print which build this is")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return help.Err(p.Name, nil) // it was printed
	} else if err != nil {
		return fmt.Errorf("%s: %w%s", p.Name, err, meantFlag(flags, err))
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("%s: %.60q is no flag, allowed: --check, --version; settings come from variables %s* and %s*",
			p.Name, flags.Arg(0), p.Prefix, config.Prefix)
	case *tell:
		_, err := fmt.Fprintln(out, p.Name, version.Read())
		return err
	}
	s, r := p.Read()
	if err := r.Err(); err != nil { // the settings that would be in force are not the intended ones
		return err
	}
	if *check {
		_, _ = io.WriteString(out, p.Effective(&s, r)) // an Output remembers the error
	}
	log := opening.NewLogger(p.Pool(&s), errOut, slog.LevelInfo)
	if warning := p.NoLimit(&s); warning != "" {
		log.Warn("there is no limit: " + warning) //nolint:sloglint // one of two sentences
	}
	if *check {
		return nil
	}
	f := p.follow(ctx, s, log)
	stop := f.Start()
	defer stop()
	return p.Serve(f.In(ctx), &s, log)
}

// follow follows the settings file, if there is one.
func (p *Program[S]) follow(ctx context.Context, s S, log *slog.Logger) *opening.Follower {
	if p.Open == nil {
		return nil
	}
	return opening.Follow(ctx, opening.Following[*S]{
		Path: os.Getenv(config.FileVariable), Fields: opening.ProgramFields(p.Fields, p.Pool), New: func() *S { return new(S) },
		Load: func(s *S) (r *config.Reading) {
			*s, r = p.Read()
			return r
		},
		Pool: p.Pool, Live: p.Live,
		Open: func(ctx context.Context, s *S) error { return p.Open(ctx, s, slog.New(slog.DiscardHandler)) },
	}, &s, log)
}

// Read returns the settings in force, from the file in NUMATHROTTLE_CONFIG and the environment, and their sources. With faults it returns the
// readable settings.
func (p *Program[S]) Read() (s S, r *config.Reading) {
	r = opening.LoadWith(p.Fields, p.Pool, &s)
	p.Finish(&s, r)
	return s, r
}

// Effective returns every setting that differs from its zero value, without secrets, one per line with its source, and the pool with its
// defaults.
func (p *Program[S]) Effective(s *S, r *config.Reading) string {
	var b strings.Builder
	_ = opening.Show(&b, p.Fields, s, r) // a Builder takes everything
	pool := p.Pool(s).Effective()
	pool.Limit, pool.Quotas = throttle.Limit{}, throttle.Quotas{} // they are among the program's own settings
	b.WriteString("# The pool of the limits:\n")
	_ = opening.Show(&b, opening.Fields(), &pool, r)
	return b.String()
}

// meantFlag suggests the flag that an unknown one was most likely meant for.
func meantFlag(flags *flag.FlagSet, err error) string {
	unknown, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: ")
	if !ok {
		return ""
	}
	var known []string
	flags.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
	return config.DidYouMean(unknown, known)
}

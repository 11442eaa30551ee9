package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/version"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const name = "numathrottle"

// A CLI is one run of the command.
type CLI struct {
	// Out receives the output, and Err the log and the help on wrong usage.
	Out, Err io.Writer
	// Environ holds the environment variables, in the form of os.Environ.
	Environ []string
	// user is the user of the command unless a variable names one.
	user string
	// terminal reports whether Out is a terminal, which can be redrawn.
	terminal bool
	// open opens the store of a configuration: open.Store except in tests.
	open func(context.Context, opening.Config) (driver.Store, error)
}

// New returns the command for use in a terminal.
func New() *CLI {
	info, err := os.Stdout.Stat()
	return &CLI{
		Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), user: systemUser(), open: opening.Store,
		terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}
}

// Run runs the command in args, which exclude the program's name, until it is done or ctx ends. Errors: wrong usage, with the flag, its
// value and the allowed ones; a fault of the configuration; those of the store; output that cannot be written. None shows a secret. ExitCode
// distinguishes them.
func (c *CLI) Run(ctx context.Context, args []string) error {
	out := program.NewOutput(c.Out)
	own := *c
	own.Out = out
	return out.Err(name, own.execute(ctx, args))
}

func (c *CLI) execute(ctx context.Context, args []string) error {
	if c.completePools(ctx, args) {
		return nil
	}
	if len(args) > 0 && args[0] == helpName && !slices.Contains(args, completionFlag) {
		args = append(slices.Clone(args[1:]), "--help")
	}
	root := &ucli.Command{
		Name:  name,
		Usage: "look at the pools of numathrottle, change their limits, quotas and pauses, and put a limit in front of other programs",
		Description: "Settings come from flags, else from variables " + config.Prefix + "*, else from the YAML file that " +
			config.FileVariable + " or --config names. Passwords and tokens are no flags.\n\n" +
			"Exit codes: 1 failed, 2 wrong usage or settings, 3 no such pool, 4 refused by the pool, 5 the store cannot be reached.",
		Version:               version.Read().String(),
		Writer:                c.Out,
		ErrWriter:             c.Err,
		EnableShellCompletion: true,
		HideHelpCommand:       true,
		ConfigureShellCompletionCommand: func(cmd *ucli.Command) {
			cmd.Hidden, cmd.Usage = false, "print a script that completes commands, flags and pools: bash, zsh, fish or pwsh"
		},
		Flags: append([]ucli.Flag{configFlag(), timeoutFlag()}, storeFlags()...),
		Commands: []*ucli.Command{
			c.poolsCommand(), c.statusCommand(), c.whyCommand(), c.limitCommand(), c.fileCommand(), c.pauseCommand(), c.resumeCommand(), c.debtCommand(),
			c.quotaCommand(), c.topCommand(), c.consoleCommand(), c.checkCommand(), c.whatifCommand(), c.proxyCommand(), c.stopNoticeCommand(),
			c.versionCommand(),
			{Name: helpName, Usage: "show the help of a command", ArgsUsage: "[COMMAND ...]"},
		},
		ArgValidator:   noArguments,
		OnUsageError:   wrongUsage,
		ExitErrHandler: func(context.Context, *ucli.Command, error) {}, // the caller handles errors
	}
	inherit(root)
	return root.Run(ctx, append([]string{name}, args...))
}

// inherit gives the subcommands of cmd the settings that the library does not pass down.
func inherit(cmd *ucli.Command) {
	for _, sub := range cmd.Commands {
		sub.OnUsageError, sub.HideHelpCommand = cmd.OnUsageError, true
		inherit(sub)
	}
}

// The flags of all commands appear only in the help of the root.
func init() { //nolint:gochecknoinits // the library has its templates in variables
	ucli.CommandHelpTemplate = withoutCommon(ucli.CommandHelpTemplate)
	ucli.SubcommandHelpTemplate = withoutCommon(ucli.SubcommandHelpTemplate)
}

// withoutCommon removes the common flags from a template.
func withoutCommon(template string) string {
	own, _, found := strings.Cut(template, "{{if .VisiblePersistentFlags}}")
	if !found {
		return template
	}
	return own + "\n\nThe flags that say which store and pool stand in: " + name + " --help\n"
}

// The flags of every command that are not settings.
const (
	configName  = "config"
	helpName    = "help"
	timeoutName = "timeout"
)

func configFlag() ucli.Flag {
	return &ucli.StringFlag{Name: configName, Usage: "the YAML file with settings (" + config.FileVariable + ")"}
}

func timeoutFlag() ucli.Flag {
	return &ucli.StringFlag{Name: timeoutName, Usage: "how long the store may take, 100ms to 10m", DefaultText: defaultTimeout.String()}
}

const defaultTimeout = 10 * time.Second

// isStoreSetting reports whether a setting names a pool or store, or the access to it.
func isStoreSetting(key string) bool { return key == "pool" || strings.HasPrefix(key, "store") }

// storeFlags returns the flags of these settings.
func storeFlags() []ucli.Flag {
	var flags []ucli.Flag
	fields := opening.Fields()
	for i := range fields {
		f := &fields[i]
		if flag, ok := f.Flag(); ok && isStoreSetting(f.Key) {
			// The library takes a text in backquotes for the name of the value.
			doc := strings.ReplaceAll(config.Plain(f.Doc), "`", "")
			flags = append(flags, &ucli.StringFlag{Name: flag, Usage: doc + " (" + f.Variable() + ")"})
		}
	}
	return flags
}

// given returns the given flags of settings, by the keys of their settings.
func given(cmd *ucli.Command) map[string]string {
	flags := map[string]string{}
	fields := opening.Fields()
	for i := range fields {
		f := &fields[i]
		if flag, ok := f.Flag(); ok && isStoreSetting(f.Key) && cmd.IsSet(flag) {
			flags[f.Key] = cmd.String(flag)
		}
	}
	return flags
}

// load returns the configuration of the pods, whatever program they run, and the quotas of each of their pools. With an error it returns the
// settings that it could read.
func (c *CLI) load(cmd *ucli.Command) (opening.Config, func(pool string) throttle.Quotas, error) {
	conf, of, r := opening.ReadPods(c.environ(cmd), given(cmd), isStoreSetting, account.QuotaLimits)
	r.Note(storeLogin(cmd))
	conf.Logger = opening.NewLogger(&conf, c.Err, slog.LevelWarn)
	quotas := func(pool string) throttle.Quotas {
		if q, ok := of[account.QuotaKey(pool)]; ok {
			return q
		}
		return conf.Quotas
	}
	if err := r.Err(); err != nil {
		return conf, quotas, &kindError{err, errUsage} // also of combinations of valid settings
	}
	return conf, quotas, nil
}

// read returns the configuration in force, as numathrottle.FromEnv takes it, and where the settings came from.
func (c *CLI) read(cmd *ucli.Command) (opening.Config, *config.Reading) {
	conf, r := opening.ReadFlags(c.environ(cmd), given(cmd))
	r.Note(storeLogin(cmd))
	conf.Logger = opening.NewLogger(&conf, c.Err, slog.LevelWarn)
	return conf, r
}

// environ returns the variables, with the file that the flag names.
func (c *CLI) environ(cmd *ucli.Command) []string {
	environ := withoutConsole(c.Environ)
	if cmd.IsSet(configName) {
		environ = append(slices.Clip(environ), config.FileVariable+"="+cmd.String(configName))
	}
	return environ
}

// An access is a command's access to a store.
type access struct {
	operate.Pool // the one in the settings

	quotas  func(pool string) throttle.Quotas // of the settings
	named   bool                              // the settings name a pool
	timeout time.Duration
	listed  []string // the pools of the store; nil: nobody has asked for them yet
}

// connect opens the store for a command. Close its store.
func (c *CLI) connect(ctx context.Context, cmd *ucli.Command) (*access, error) {
	s := &access{timeout: defaultTimeout}
	if err := s.setTimeout(cmd); err != nil {
		return nil, err
	}
	conf, quotas, err := c.load(cmd)
	if err != nil {
		return nil, err
	}
	s.quotas = quotas
	s.use(conf.Pool)
	s.named = cmd.IsSet("pool") || conf.Pool != unnamedPool
	s.Store, err = c.open(ctx, conf)
	return s, ofOpening(err)
}

// use makes a pool that of the commands from now on.
func (s *access) use(pool string) { s.Name, s.Quotas = pool, s.quotas(pool) }

// unnamedPool is the pool of a process whose settings name none.
const unnamedPool = "default"

func (s *access) setTimeout(cmd *ucli.Command) error {
	if !cmd.IsSet(timeoutName) {
		return nil
	}
	field := config.DurationField(timeoutName, 100*time.Millisecond, 10*time.Minute, "", "", func(s *access) *time.Duration { return &s.timeout })
	return config.Join(config.LoadFlags([]config.Field[*access]{field}, map[string]string{timeoutName: cmd.String(timeoutName)}, s))
}

// overview loads the overview of a pool's record.
func (s *access) overview(ctx context.Context, pool string) (o protocol.Overview, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		o, err = protocol.LoadOverview(ctx, s.Store, pool)
		return err
	})
	return o, err
}

// call runs one call of the store.
func (s *access) call(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return ofStore(f(ctx))
}

// noArguments refuses arguments that are not commands.
func noArguments(_ context.Context, cmd *ucli.Command) error {
	if !cmd.Args().Present() {
		return nil
	}
	var names []string
	for _, sub := range cmd.VisibleCommands() {
		names = append(names, sub.Name)
	}
	allowed := "none"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return &kindError{fmt.Errorf("%s: %.60q is no command or argument, allowed: %s%s", cmd.FullName(), cmd.Args().First(), allowed,
		config.DidYouMean(cmd.Args().First(), names)), errUsage}
}

// wrongUsage describes the fault of a flag.
func wrongUsage(_ context.Context, cmd *ucli.Command, err error, _ bool) error {
	return &kindError{usageText(cmd, err), errUsage}
}

func usageText(cmd *ucli.Command, err error) error {
	text := err.Error()
	if flag, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		flag = strings.TrimLeft(flag, "-")
		fields := opening.Fields()
		for i := range fields {
			f := &fields[i]
			if _, isFlag := f.Flag(); !isFlag && strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(f.Variable(), config.Prefix)), "_", "-") == flag {
				return fmt.Errorf("%s: --%s is no flag, for all users of the machine would see it, allowed: the variable %s, or --%s-file",
					cmd.FullName(), flag, f.Variable(), flag)
			}
		}
		dashes := "--"
		if len(flag) == 1 {
			dashes = "-"
		}
		return fmt.Errorf("%s: %s%.60s is no flag%s, allowed: those of %s --help", cmd.FullName(), dashes, flag,
			config.DidYouMean("--"+flag, flagNames(cmd)), cmd.FullName())
	}
	return errors.New(cmd.FullName() + ": " + text + "; see --help")
}

// flagNames returns the flags that a command accepts, including those of its parents, with their dashes.
func flagNames(cmd *ucli.Command) []string {
	var names []string
	for _, at := range cmd.Lineage() {
		for _, f := range at.Flags {
			for _, name := range f.Names() {
				if len(name) > 1 {
					names = append(names, "--"+name)
				}
			}
		}
	}
	return names
}

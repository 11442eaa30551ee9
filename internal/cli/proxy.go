package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
)

// checkName is the flag of a proxy that only checks its settings.
const checkName = "check"

func (c *CLI) proxyCommand() *ucli.Command {
	return &ucli.Command{
		Name:        "proxy",
		Usage:       "put the limit in front of programs in any language",
		Description: "A proxy runs until it is told to stop. It is a pod of its pool, as a Go program with the library is.",
		Commands:    []*ucli.Command{c.handlerProxyCommand(), c.httpProxyCommand(), c.permitsCommand()},
	}
}

func (c *CLI) handlerProxyCommand() *ucli.Command {
	part := proxyPart[handlerproxy.Config]{
		name:  "handler",
		usage: "stand between the platform and a Numaflow handler",
		about: "The platform calls the proxy's socket, and the proxy calls the handler's. What the handler writes into its server-info file, " +
			"the platform reads in the proxy's. Every other message passes as it came.",
		fields:   handlerproxy.Fields(),
		pool:     func(conf *handlerproxy.Config) *opening.Config { return (*opening.Config)(&conf.Pool) },
		validate: handlerproxy.Config.Validate,
		live:     []string{maxName, perName, "quotas"},
		open: func(ctx context.Context, conf *handlerproxy.Config, log *slog.Logger) error {
			pool := conf.Pool
			pool.Logger = log
			th, err := numathrottle.Open(ctx, pool)
			if err != nil {
				return err
			}
			return th.Close()
		},
		run: func(ctx context.Context, conf handlerproxy.Config, log *slog.Logger) error {
			conf.Logger = log
			ctx, stop := numathrottle.StopContext(ctx) // the pod's stop, which no signal reports
			defer stop()
			return handlerproxy.Run(ctx, conf)
		},
	}
	return part.command(c)
}

// A proxyPart is a proxy with settings C of its own, besides those of its pool.
type proxyPart[C any] struct {
	name, usage, about string
	fields             []config.Field[*C]
	pool               func(conf *C) *opening.Config
	// checked returns the pool to check; nil: pool.
	checked func(conf *C) opening.Config
	// validate finds faults of its own settings.
	validate func(conf C) error
	// open opens and closes its limits, and live are its settings that a changed file changes without a restart; see opening.Following.
	open func(ctx context.Context, conf *C, log *slog.Logger) error
	live []string
	// run runs the proxy until ctx ends.
	run func(ctx context.Context, conf C, log *slog.Logger) error
}

func (p *proxyPart[C]) command(c *CLI) *ucli.Command {
	check := &ucli.BoolFlag{Name: checkName, Usage: "print the settings in force, without secrets, and what is wrong with them"}
	return &ucli.Command{
		Name: p.name, Usage: p.usage, Description: p.about, Flags: append([]ucli.Flag{check}, p.flags()...),
		Action: func(ctx context.Context, cmd *ucli.Command) error {
			conf, r := p.load(c, cmd)
			if err := r.Err(); err != nil { // the settings that would be in force are not the intended ones
				return err
			}
			if cmd.Bool(checkName) {
				return p.show(c, &conf, r)
			}
			log := opening.NewLogger(p.pool(&conf), c.Err, slog.LevelInfo)
			p.pool(&conf).Logger = log
			f := p.follow(ctx, c, cmd, conf, log)
			stop := f.Start()
			defer stop()
			return p.run(f.In(ctx), conf, log)
		},
	}
}

// follow follows the settings file, if there is one.
func (p *proxyPart[C]) follow(ctx context.Context, c *CLI, cmd *ucli.Command, conf C, log *slog.Logger) *opening.Follower {
	path := c.variable(config.FileVariable)
	if cmd.IsSet(configName) {
		path = cmd.String(configName)
	}
	return opening.Follow(ctx, opening.Following[*C]{
		Path: path, Fields: p.all(), New: func() *C { return new(C) },
		Load: func(conf *C) (r *config.Reading) {
			*conf, r = p.load(c, cmd)
			return r
		},
		Pool: p.pool, Live: p.live,
		Open: func(ctx context.Context, conf *C) error { return p.open(ctx, conf, slog.New(slog.DiscardHandler)) },
	}, &conf, log)
}

// all returns all settings: its own, and those of the pool.
func (p *proxyPart[C]) all() []config.Field[*C] {
	pool := slices.DeleteFunc(config.Lift(opening.Fields(), p.pool), func(f config.Field[*C]) bool {
		return slices.ContainsFunc(p.fields, func(own config.Field[*C]) bool { return own.Variable() == f.Variable() })
	})
	return slices.Concat(p.fields, pool)
}

// flags returns the flags of the settings that not every command has.
func (p *proxyPart[C]) flags() []ucli.Flag {
	var flags []ucli.Flag
	fields := p.all()
	for i := range fields {
		f := &fields[i]
		if flag, ok := f.Flag(); ok && !isStoreSetting(f.Key) {
			flags = append(flags, &ucli.StringFlag{Name: flag, Usage: strings.ReplaceAll(config.Plain(f.Doc), "`", "") + " (" + f.Variable() + ")"})
		}
	}
	return flags
}

// load returns the settings in force and where they came from. With faults it returns the settings that it could read.
func (p *proxyPart[C]) load(c *CLI, cmd *ucli.Command) (C, *config.Reading) {
	var conf C
	fields, environ := p.all(), c.Environ
	if cmd.IsSet(configName) {
		environ = append(slices.Clip(environ), config.FileVariable+"="+cmd.String(configName))
	}
	r := config.Read(fields, nil, environ, &conf)
	flags := map[string]string{}
	for i := range fields {
		f := &fields[i]
		if flag, ok := f.Flag(); ok && cmd.IsSet(flag) {
			flags[f.Key] = cmd.String(flag)
		}
	}
	config.ReadFlags(fields, flags, &conf, r)
	pool := *p.pool(&conf)
	if p.checked != nil {
		pool = p.checked(&conf)
	}
	r.Note(storeLogin(cmd), p.validate(conf), pool.Validate())
	r.Note(opening.CheckUnlimited(p.pool(&conf))...)
	return conf, r
}

// show prints the settings that differ from their zero value, and where they came from.
func (p *proxyPart[C]) show(c *CLI, conf *C, r *config.Reading) error {
	*p.pool(conf) = p.pool(conf).Effective()
	return opening.Show(c.Out, p.all(), conf, r)
}

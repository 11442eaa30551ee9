package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/open"
)

// checkName is the flag of a proxy that only looks at its settings.
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
		pool:     func(conf *handlerproxy.Config) *numathrottle.Config { return &conf.Pool },
		validate: handlerproxy.Config.Validate,
		run: func(ctx context.Context, conf handlerproxy.Config, log *slog.Logger) error {
			conf.Logger = log
			ctx, stop := numathrottle.StopContext(ctx) // the pod's stop, which no signal tells
			defer stop()
			return handlerproxy.Run(ctx, conf)
		},
	}
	return part.command(c)
}

// A proxyPart is a proxy with settings C of its own, beside those of its pool.
type proxyPart[C any] struct {
	name, usage, about string
	fields             []config.Field[C]
	pool               func(conf *C) *numathrottle.Config
	// validate finds what is wrong with its own settings.
	validate func(conf C) error
	// run works until ctx ends.
	run func(ctx context.Context, conf C, log *slog.Logger) error
}

func (p *proxyPart[C]) command(c *CLI) *ucli.Command {
	check := &ucli.BoolFlag{Name: checkName, Usage: "print the settings in force, without secrets, and what is wrong with them"}
	return &ucli.Command{
		Name: p.name, Usage: p.usage, Description: p.about, Flags: append([]ucli.Flag{check}, p.flags()...),
		Action: func(ctx context.Context, cmd *ucli.Command) error {
			conf, err := p.load(c, cmd)
			if cmd.Bool(checkName) {
				p.show(c, &conf)
				return err
			}
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(c.Err, nil))
			p.pool(&conf).Logger = log
			return p.run(ctx, conf, log)
		},
	}
}

// all is every setting: its own, and those of the pool.
func (p *proxyPart[C]) all() []config.Field[C] {
	return slices.Concat(p.fields, config.Lift(open.Fields(), p.pool))
}

// flags are the settings, but for those that every command has.
func (p *proxyPart[C]) flags() []ucli.Flag {
	var flags []ucli.Flag
	fields := p.all()
	for i := range fields {
		f := &fields[i]
		if flag, ok := f.Flag(); ok && !isStoreSetting(f.Key) {
			flags = append(flags, &ucli.StringFlag{Name: flag, Usage: strings.ReplaceAll(f.Doc, "`", "") + " (" + f.Variable() + ")"})
		}
	}
	return flags
}

// load returns the settings in force. With an error, which has a line for each fault, it returns what could be read.
func (p *proxyPart[C]) load(c *CLI, cmd *ucli.Command) (C, error) {
	var conf C
	fields, environ := p.all(), c.Environ
	if cmd.IsSet(configName) {
		environ = append(slices.Clip(environ), config.FileVariable+"="+cmd.String(configName))
	}
	faults := config.Load(fields, environ, &conf)
	flags := map[string]string{}
	for i := range fields {
		f := &fields[i]
		if flag, ok := f.Flag(); ok && cmd.IsSet(flag) {
			flags[f.Key] = cmd.String(flag)
		}
	}
	faults = append(faults, config.LoadFlags(fields, flags, &conf)...)
	if fault := storeLogin(cmd); fault != nil {
		faults = append(faults, fault)
	}
	if err := p.validate(conf); err != nil {
		faults = append(faults, config.Split(err)...)
	}
	if err := p.pool(&conf).Validate(); err != nil {
		faults = append(faults, config.Split(err)...)
	}
	return conf, config.Join(faults)
}

// show prints the settings that differ from their zero value.
func (p *proxyPart[C]) show(c *CLI, conf *C) {
	*p.pool(conf) = p.pool(conf).Effective()
	for _, s := range config.Show(p.all(), conf) {
		value := s.Value
		if value != config.Redacted {
			value = strconv.Quote(value)
		}
		_, _ = fmt.Fprintf(c.Out, "%s: %s\n", s.Key, value) // nobody reads it
	}
}

package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/console"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
)

// consolePrefix begins the variables of the console, which are not settings of a limiter.
const consolePrefix = config.Prefix + "CONSOLE_"

// The flags of the console and their variables.
const (
	listenName    = "listen"
	tokenFileName = "token-file"
	hostNamesName = "host-names"

	listenVariable    = consolePrefix + "LISTEN"
	tokenVariable     = consolePrefix + "TOKEN"
	tokenFileVariable = consolePrefix + "TOKEN_FILE"
	hostNamesVariable = consolePrefix + "HOST_NAMES"
)

func (c *CLI) consoleCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "console",
		Usage: "show the pools in a browser, and let those with a token change them",
		Description: "It runs until it is told to stop. Without a token it only shows, and listens on loopback alone. " +
			"The token is the variable " + tokenVariable + ", or the content of a file, and no flag: all users of the machine would see it.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: listenName, Usage: "where to listen, HOST:PORT (" + listenVariable + ")", DefaultText: console.DefaultListen},
			&ucli.StringFlag{Name: tokenFileName, Usage: "the file with the token, at least 16 bytes, read anew when it changes (" + tokenFileVariable + ")"},
			&ucli.StringFlag{Name: hostNamesName, Usage: "the names by which it may be called on loopback, beside localhost (" + hostNamesVariable + ")"},
		},
		Action: c.console,
	}
}

func (c *CLI) console(ctx context.Context, cmd *ucli.Command) error {
	conf, quotas, err := c.load(cmd)
	if err != nil {
		return err
	}
	k := console.Config{
		StoreURL: config.ShowStore(conf.Store), Quotas: quotas, Listen: c.setting(cmd, listenName, listenVariable),
		Logger: opening.NewLogger(&conf, c.Err, slog.LevelInfo),
	}
	if k.Token, k.TokenFile, err = c.consoleToken(cmd); err != nil {
		return err
	}
	if names := c.setting(cmd, hostNamesName, hostNamesVariable); names != "" {
		var ok bool
		if k.HostNames, ok = listen.ParseNames(names); !ok {
			return &kindError{fmt.Errorf("%s: %s is %.80q, allowed: %s", cmd.FullName(), hostNamesName, names, listen.AllowedNames), errUsage}
		}
	}
	if err := k.Validate(); err != nil {
		return &kindError{err, errUsage}
	}
	if k.Store, err = c.open(ctx, conf); err != nil {
		return err
	}
	defer func() { _ = k.Store.Close() }() // changes are on record
	return console.Serve(ctx, k, func(addr net.Addr) {
		what := "it only shows: there is no token"
		if k.Token != "" {
			what = "log in with the token"
		}
		_, _ = fmt.Fprintf(c.Out, "console: http://%s (%s)\n", addr, what)
	})
}

// setting returns the value of a flag, else of a variable.
func (c *CLI) setting(cmd *ucli.Command, flag, variable string) string {
	if cmd.IsSet(flag) {
		return cmd.String(flag)
	}
	return c.variable(variable)
}

func (c *CLI) variable(name string) string {
	for _, v := range c.Environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// consoleToken returns the token of the console and its file; empty: none.
func (c *CLI) consoleToken(cmd *ucli.Command) (token, file string, err error) {
	file, token = c.setting(cmd, tokenFileName, tokenFileVariable), c.variable(tokenVariable)
	switch {
	case file == "":
		return token, "", nil
	case token != "":
		return "", "", &kindError{fmt.Errorf("%s: the token is given twice: by %s and by a file", cmd.FullName(), tokenVariable), errUsage}
	}
	if token, err = config.ReadSecretFile(file); err != nil {
		return "", "", &kindError{fmt.Errorf("%s: the file with the token: %w", cmd.FullName(), err), errUsage}
	}
	return token, file, nil
}

// withoutConsole removes the variables of the console: a limiter would take them for misspelt ones of its own.
func withoutConsole(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, consolePrefix) })
}

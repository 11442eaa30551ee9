package cli

import (
	"context"
	"log/slog"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/httpproxy"
)

func (c *CLI) httpProxyCommand() *ucli.Command {
	part := proxyPart[httpproxy.Config]{
		name:  "http",
		usage: "an HTTP proxy that draws for each request",
		about: "With --upstream it stands for one service, and clients change their base URL; with --forward it is what HTTP_PROXY names. " +
			"It listens at " + httpproxy.DefaultListen + ". A CONNECT draws once for its connection. Callers elsewhere need a token, which is no flag.",
		fields:   append(httpproxy.Fields(), httpproxy.MaxField(), httpproxy.QuotasField()),
		pool:     func(conf *httpproxy.Config) *opening.Config { return (*opening.Config)(&conf.Limits.Pool) },
		checked:  func(conf *httpproxy.Config) opening.Config { return opening.Config(conf.CheckedPool()) },
		validate: func(conf httpproxy.Config) error { return conf.Validate() },
		live:     append(account.LiveKeys(), maxName, perName, "quotas"),
		open:     func(ctx context.Context, conf *httpproxy.Config, log *slog.Logger) error { return conf.Plan(ctx, log) },
		run: func(ctx context.Context, conf httpproxy.Config, log *slog.Logger) error {
			conf.Logger = log
			return httpproxy.Run(ctx, conf)
		},
	}
	return part.command(c)
}

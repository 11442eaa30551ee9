package cli

import (
	"context"
	"log/slog"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/permits"
)

func (c *CLI) permitsCommand() *ucli.Command {
	part := proxyPart[permits.Config]{
		name:  "permits",
		usage: "hand out permits over HTTP, and answer Envoy's rate limit service",
		about: "For calls that are not HTTP, in any language. It listens at " + permits.DefaultListen +
			"; GET /v1/openapi.yaml describes it. With --rls-listen Envoy, Istio, Contour and Emissary can ask it.",
		fields:   append(permits.Fields(), proxy.QuotasField(nil, func(c *permits.Config) *proxy.LimitConfig { return &c.Limits })),
		pool:     func(conf *permits.Config) *opening.Config { return (*opening.Config)(&conf.Limits.Pool) },
		validate: func(conf permits.Config) error { return conf.Validate() },
		live:     []string{maxName, perName, "quotas", "requestsPerMinute"},
		open: func(ctx context.Context, conf *permits.Config, log *slog.Logger) error {
			limits, err := proxy.OpenLimits(ctx, &conf.Limits, log)
			if err != nil {
				return err
			}
			return limits.Close()
		},
		run: func(ctx context.Context, conf permits.Config, log *slog.Logger) error {
			conf.Logger = log
			return permits.Run(ctx, conf)
		},
	}
	return part.command(c)
}

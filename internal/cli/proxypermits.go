package cli

import (
	"context"
	"log/slog"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/permitserver"
)

func (c *CLI) permitsCommand() *ucli.Command {
	part := proxyPart[permitserver.Config]{
		name:  "permits",
		usage: "hand out permits over HTTP, and answer Envoy's rate limit service",
		about: "For calls that are not HTTP, in any language. It listens at " + permitserver.DefaultListen +
			"; GET /v1/openapi.yaml describes it. With --rls-listen Envoy, Istio, Contour and Emissary can ask it.",
		fields:   permitserver.Fields(),
		pool:     func(conf *permitserver.Config) *numathrottle.Config { return &conf.Limits.Pool },
		validate: func(conf permitserver.Config) error { return conf.Validate() },
		run: func(ctx context.Context, conf permitserver.Config, log *slog.Logger) error {
			conf.Logger = log
			return permitserver.Run(ctx, conf)
		},
	}
	return part.command(c)
}

// Package open opens limiters from one configuration. As with drivers of database/sql, the program imports the stores that it needs.
// Package [github.com/numaproj-contrib/numathrottle] is this package with all stores.
//
//	import (
//		"github.com/numaproj-contrib/numathrottle/pkg/open"
//		_ "github.com/numaproj-contrib/numathrottle/pkg/open/redis"
//	)
//
//	limiter, err := open.FromEnv(ctx)
//	if err != nil {
//		return err
//	}
//	defer limiter.Close() // leaves the pool; after the server has stopped
//	permit, err := limiter.Acquire(ctx, 1)
//
// [FromEnv] reads the environment and a file, [Open] takes a [Config], and [InFlight] limits calls in flight instead of a rate.
//
// The packages to import:
//
//   - pkg/open/redis: redis://, rediss:// and their forms for Sentinel and Cluster
//   - pkg/open/nats: nats:// and tls://
//   - pkg/open/telemetry: [Config.HealthAddr], and the exporters that the variables OTEL_* select
//
// memory:// and static:// need no import. A store or a HealthAddr without its package is an error that names the import. Without
// pkg/open/telemetry the variables OTEL_* are ignored; metrics and spans go to [Config.MeterProvider] and TracerProvider, or to the global
// providers.
package open

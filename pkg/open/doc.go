// Package open opens limiters from one configuration, with the stores that the program imports, as database/sql does with
// drivers. Package numathrottle is this package with all of them.
//
//	import (
//		"github.com/numaproj-contrib/numathrottle/pkg/open"
//		_ "github.com/numaproj-contrib/numathrottle/pkg/open/redis"
//	)
//
//	th, err := open.FromEnv(ctx)
//	if err != nil { ... }
//	defer th.Close() // leaves the pool; after the server has stopped
//
// The packages to import:
//
//   - pkg/open/redis: redis://, rediss:// and their forms for Sentinel and Cluster
//   - pkg/open/nats: nats:// and tls://
//   - pkg/open/telemetry: Config.HealthAddr, and the exporters that the variables OTEL_* ask for
//
// memory:// and static:// need none. A store or a HealthAddr whose package is missing is an error that names the import.
// Without pkg/open/telemetry the variables OTEL_* are not read; metrics and spans go to Config.MeterProvider and
// TracerProvider, or to the global providers.
package open

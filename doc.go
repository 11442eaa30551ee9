// Package numathrottle puts one rate limit over many processes, such as the pods of a Numaflow vertex. It opens a [throttle.Throttle] from one
// configuration, with the store that the processes share:
//
//	limiter, err := numathrottle.Open(ctx, numathrottle.Config{
//		Limit: throttle.Limit{Max: 600, Per: time.Minute},
//		Store: "redis://redis:6379", // or nats://nats:4222
//		Pool:  "geocoder",
//	})
//	if err != nil {
//		return err
//	}
//	defer limiter.Close() // leaves the pool; after the server has stopped
//	server := mapsdk.NewServer(mapper.Wrap(handler, limiter))
//	return server.Start(ctx)
//
// # How to choose
//
//   - [FromEnv] reads everything from the environment: the variables NUMATHROTTLE_* and the YAML file that NUMATHROTTLE_CONFIG names. It suits
//     containers that are configured from outside.
//   - [Open] takes a [Config] in Go, [Load] returns what [FromEnv] would open. The names are the same everywhere: [Config.OnStoreLoss] is onStoreLoss
//     in the file and NUMATHROTTLE_ON_STORE_LOSS in the environment. docs/configuration.md lists all of them.
//   - [OpenInFlight] limits the calls in flight at once instead of their rate. [throttle.All] combines limits.
//   - [OpenStore] only opens the store, for [github.com/numaproj-contrib/numathrottle/pkg/operate]: pauses, overrides, quotas.
//
// The limit goes in front of a handler with [github.com/numaproj-contrib/numathrottle/pkg/mapper],
// [github.com/numaproj-contrib/numathrottle/pkg/sinker] or [github.com/numaproj-contrib/numathrottle/pkg/sourcer], and in front of an HTTP client
// with [github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle]. Everything else calls [throttle.Limiter] directly.
//
// # Size
//
// This package is [github.com/numaproj-contrib/numathrottle/pkg/open] with everything that it can open: the drivers of all stores, exporters and
// the health server. A program that needs one store imports pkg/open and that store's package instead, and is half as large.
package numathrottle

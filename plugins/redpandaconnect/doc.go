// Package redpandaconnect is a rate limit for Redpanda Connect (Benthos) whose processes share one limit. Import it for its effect in a
// program that runs Connect:
//
//	import (
//		"github.com/redpanda-data/benthos/v4/public/service"
//		_ "github.com/redpanda-data/connect/public/bundle/free/v4"
//
//		_ "github.com/numaproj-contrib/numathrottle/plugins/redpandaconnect"
//	)
//
//	func main() { service.RunCLI(context.Background()) }
//
// It adds the rate limit numathrottle:
//
//	rate_limit_resources:
//	  - label: geocoder
//	    numathrottle:
//	      max: 600
//	      per: 1m
//	      pool: geocoder
//	      store: redis://redis:6379
//
// All settings of package numathrottle apply, as variables NUMATHROTTLE_* or in the file that NUMATHROTTLE_CONFIG names. Fields of a resource
// override them.
//
// The package is a module of its own, so that no other user of numathrottle resolves Connect's dependencies.
package redpandaconnect

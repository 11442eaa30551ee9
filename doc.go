// Package numathrottle puts one rate limit over many processes: it opens a
// throttle.Throttle from one configuration, with the store behind it.
//
//	th, err := numathrottle.FromEnv(ctx)
//	if err != nil { ... }
//	defer th.Close() // leaves the pool; after the server has stopped
//	permit, err := th.Acquire(ctx, 1)
//
// FromEnv reads the variables NUMATHROTTLE_* and the YAML file that
// NUMATHROTTLE_CONFIG names; Open takes a Config. Both have the same names:
// Config.OnStoreLoss is onStoreLoss in the file and NUMATHROTTLE_ON_STORE_LOSS in
// the environment. docs/configuration.md lists all of them.
//
// This package is pkg/open with everything that it can open: the drivers of all stores, exporters and the health server.
// A program that needs one store imports pkg/open and that store's package instead, and is half as large.
package numathrottle

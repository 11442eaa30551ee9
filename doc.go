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
// This package imports the drivers of all stores. A program that shall carry one
// driver only puts the parts together by itself: a store from below
// pkg/consensus, consensus.Join, throttle.New.
package numathrottle

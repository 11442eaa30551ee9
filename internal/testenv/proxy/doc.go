// Package proxy is a TCP proxy on loopback that stands for a bad network between programs under test.
//
// It listens on a port of its own and connects everyone who comes to one target. Each direction can be delayed or
// swallowed by itself, and the whole can be cut; Heal ends all of that. Up is the way from who connected to the
// target, and down the way back.
//
//	p, err := proxy.Start(ctx, server.Addr())
//	p.Addr()                         // where to connect
//	p.Delay(0, 20*time.Millisecond)  // answers are late
//	p.Swallow(true, false)           // nothing reaches the target, connections stay open
//	p.Cut()                          // connections are reset, new ones refused
//	p.Heal()                         // all is well again
//
// In tests, package testenv wraps Start with a cleanup at the end of the test.
//
// All methods may be called from any goroutine. They hold for the connections that are open and for those to come.
package proxy

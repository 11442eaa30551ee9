// Package proxy is a TCP proxy on loopback that simulates a bad network between programs under test.
//
// It listens on its own port and connects all clients to one target. Each direction can be delayed or swallowed separately, and the whole
// can be cut; Heal ends all of that. Up is the direction from the client to the target, and down the reverse.
//
//	p, err := proxy.Start(ctx, server.Addr())
//	p.Addr()                         // where to connect
//	p.Delay(0, 20*time.Millisecond)  // answers are late
//	p.Swallow(true, false)           // nothing reaches the target, connections stay open
//	p.Cut()                          // connections are reset, new ones refused
//	p.Heal()                         // normal again
//
// In tests, package testenv wraps Start with a cleanup at the end of the test.
//
// All methods may be called from any goroutine. They hold for the connections that are open and for those to come.
package proxy

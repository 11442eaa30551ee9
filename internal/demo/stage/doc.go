// Package stage is what the demos have in common: a store, a service on a loopback port,
// processes that are fed over their sockets, and the verdict at the end.
package stage

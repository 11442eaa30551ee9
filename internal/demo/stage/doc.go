// Package stage has the common parts of the demos: a store, a service on a loopback port, processes fed over their sockets, and the final
// verdict.
package stage

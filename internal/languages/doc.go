// Package languages runs handlers of Numaflow's SDKs in other languages behind the proxy, and drives them over real
// sockets, as processes of their own. It holds tests only:
//
//	go test ./internal/languages
//
// Python is a part of make test. Rust and Java take minutes to fetch and compile: make languages runs all of them.
package languages

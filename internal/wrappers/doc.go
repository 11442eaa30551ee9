// Package wrappers tries each promise of the wrappers with each kind of handler: map, batch map, stream map, source transformer, sink and
// source. It holds tests only:
//
//	go test ./internal/wrappers
//
// A kind is an adapter. It makes a handler of numaflow-go from the suite's own, and wraps it. It sends messages by a call, as numaflow-go
// does, or over the socket of a real server. Behind a socket the suite also tries the handler proxy, whose settings mean the same as the
// wrappers' options. Promises that only one kind makes stand in the tests of its package.
package wrappers

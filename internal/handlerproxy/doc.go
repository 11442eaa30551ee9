// Package handlerproxy puts the limit in front of a Numaflow handler of any language. It stands
// between the platform and the handler: it serves the platform's socket, and calls the handler on
// another one.
//
//	platform  --map.sock-->  proxy: draws  --map.sock in another folder-->  handler
//
// # What it decides
//
// For every message the proxy calls the wrappers of pkg/mapper, pkg/sinker and pkg/sourcer. The
// handler that they wrap sends the message on and waits for its answer. So waiting, refusing and
// draining are those of a Go handler, by the same code.
//
// # What it leaves alone
//
// Messages pass as the bytes that came. The proxy reads an ID, an end mark, and what a cost or a
// tag needs; it writes only answers of its own, and the size of a source's read. Fields that it
// does not know pass, and so do methods that carry no messages, such as IsReady and AckFn.
//
// # When a side dies
//
// Each stream of the platform has a stream to the handler of its own. When one ends early, the other
// fails with the same status, and the platform delivers again what had no answer. An answer is passed on
// once: a second one for the same message is left out, and logged.
package handlerproxy
